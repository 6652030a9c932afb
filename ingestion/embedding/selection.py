"""Which model embeds: by its name one that runs here, or else one that a server knows."""

import functools
import threading
from dataclasses import dataclass

from django.conf import settings
from django.utils.module_loading import import_string

from .base import BUILT_IN_DIMENSIONS, BUILT_IN_NAME, Embedder

ENDPOINT = "ingestion.embedding.endpoint.EndpointEmbedder"

_loading = threading.Lock()


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A model that runs in this process: the path of its class, and the length of its vectors."""

    path: str
    dimensions: int


LOCAL = {BUILT_IN_NAME: LocalModel("ingestion.embedding.built_in.WordLlamaEmbedder", BUILT_IN_DIMENSIONS)}


def configured() -> tuple[str, int]:
    """Name and dimensions of the model that the settings name; it is not loaded for this."""
    name = settings.EMBEDDING_MODEL or BUILT_IN_NAME
    return name, LOCAL[name].dimensions if name in LOCAL else settings.EMBEDDING_DIMENSIONS


def is_built_in(name: str = "") -> bool:
    """Whether this model, else the configured one, is the one that comes with the site."""
    return (name or configured()[0]) == BUILT_IN_NAME


def embedder(name: str = "", dimensions: int = 0) -> Embedder:
    """The model of this name and size, else the configured one, loaded once for the process."""
    if not name:
        name, dimensions = configured()
    with _loading:
        if name in LOCAL:
            return _loaded(LOCAL[name].path)
        return _loaded(ENDPOINT, name, dimensions, settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY)


@functools.lru_cache(maxsize=4)
def _loaded(path: str, *arguments: object) -> Embedder:
    model: Embedder = import_string(path)(*arguments)
    return model
