"""Texts to vectors: a model from the installed wheel, or any OpenAI-compatible server."""

from .protocol import Embedder, EmbeddingError, Vectors
from .selection import embedder, is_built_in
from .spaces import active_space

__all__ = ["Embedder", "EmbeddingError", "Vectors", "active_space", "embedder", "is_built_in"]
