"""Embedding models: local ones, or any OpenAI-compatible server."""

from .breaker import embed_question
from .embedder import BUILT_IN_NAME, Embedder, EmbeddingError, Vectors
from .model_languages import is_english_only
from .selection import configured, embedder, is_built_in, is_from_folder, runs_here
from .spaces import active_space, embedder_of, lock_active, pending_change

__all__ = [
    "BUILT_IN_NAME",
    "Embedder",
    "EmbeddingError",
    "Vectors",
    "active_space",
    "configured",
    "embed_question",
    "embedder",
    "embedder_of",
    "is_built_in",
    "is_english_only",
    "is_from_folder",
    "lock_active",
    "pending_change",
    "runs_here",
]
