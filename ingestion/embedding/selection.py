"""Which model embeds: the one that the settings name, loaded once."""

import functools
import threading

from django.conf import settings
from django.utils.module_loading import import_string

from .protocol import Embedder

BUILT_IN = "ingestion.embedding.built_in.WordLlamaEmbedder"
ENDPOINT = "ingestion.embedding.endpoint.EndpointEmbedder"

_loading = threading.Lock()


def is_built_in() -> bool:
    return not settings.EMBEDDING_MODEL


def embedder() -> Embedder:
    """The configured model, loaded once for the process and imported only when it is first needed."""
    with _loading:
        if is_built_in():
            return _loaded(BUILT_IN)
        return _loaded(
            ENDPOINT,
            settings.EMBEDDING_MODEL,
            settings.EMBEDDING_DIMENSIONS,
            settings.OPENAI_BASE_URL,
            settings.OPENAI_API_KEY,
        )


@functools.lru_cache(maxsize=2)
def _loaded(path: str, *configuration: object) -> Embedder:
    """`configuration` tells models of different settings apart; they read it themselves."""
    model: Embedder = import_string(path)()
    return model
