"""Selects the embedding model: a local one (built in or from a folder), or one on a server."""

import functools
import threading
from dataclasses import dataclass

from django.conf import settings
from django.utils.module_loading import import_string

from ingestion.embedding_folder import PREFIX, FolderError, is_static, model_name
from ingestion.embedding_folder import dimensions as dimensions_of_folder

from .embedder import BUILT_IN_DIMENSIONS, BUILT_IN_NAME, Embedder, EmbeddingError

ENDPOINT = "ingestion.embedding.endpoint.EndpointEmbedder"
BERT = "ingestion.embedding.bert.BertEmbedder"
STATIC = "ingestion.embedding.token_tables.StaticEmbedder"

_loading = threading.Lock()


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A model that runs in this process: the path of its class, and the length of its vectors."""

    path: str
    dimensions: int


LOCAL = {BUILT_IN_NAME: LocalModel("ingestion.embedding.built_in.WordLlamaEmbedder", BUILT_IN_DIMENSIONS)}


def configured() -> tuple[str, int]:
    """Name and dimensions of the configured model, without loading it."""
    if folder := settings.EMBEDDING_MODEL_DIR:
        return model_name(folder), dimensions_of_folder(folder)
    name = settings.EMBEDDING_MODEL or BUILT_IN_NAME
    return name, LOCAL[name].dimensions if name in LOCAL else settings.EMBEDDING_DIMENSIONS


def is_built_in(name: str = "") -> bool:
    """Whether this model (by default the configured one) is the built-in one."""
    return (name or configured()[0]) == BUILT_IN_NAME


def is_from_folder(name: str) -> bool:
    """Whether this is the name of a model from a folder, which may have been removed."""
    return name.startswith(PREFIX)


def runs_here() -> bool:
    """Whether the configured model needs no server."""
    return bool(settings.EMBEDDING_MODEL_DIR) or is_built_in()


def embedder(name: str = "", dimensions: int = 0) -> Embedder:
    """The model with this name, by default the configured one; loaded once per process."""
    if not name:
        name, dimensions = configured()
    with _loading:
        if name in LOCAL:
            return _loaded(LOCAL[name].path)
        if is_from_folder(name):
            folder = settings.EMBEDDING_MODEL_DIR
            if folder and model_name(folder) == name:
                try:
                    return _loaded(STATIC if is_static(folder) else BERT, folder)
                except FolderError as error:
                    raise EmbeddingError(str(error), temporary=False) from error
            # The folder was removed or now contains another model. Without a URL and a key, the embedder
            # raises EmbeddingError instead of sending the texts to the configured server.
            return _loaded(ENDPOINT, name, dimensions, "", "")
        return _loaded(ENDPOINT, name, dimensions, settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY)


@functools.lru_cache(maxsize=4)
def _loaded(path: str, *arguments: object) -> Embedder:
    model: Embedder = import_string(path)(*arguments)
    return model
