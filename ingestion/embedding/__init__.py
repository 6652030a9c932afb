"""Texts to vectors: a model that runs here, or any OpenAI-compatible server."""

from .protocol import Embedder, EmbeddingError, Vectors
from .questions import embed_soon
from .selection import configured, embedder, is_built_in
from .spaces import active_space, embedder_of, pending_change, stays_active

__all__ = [
    "Embedder",
    "EmbeddingError",
    "Vectors",
    "active_space",
    "configured",
    "embed_soon",
    "embedder",
    "embedder_of",
    "is_built_in",
    "pending_change",
    "stays_active",
]
