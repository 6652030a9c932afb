"""What the site asks of an embedding model."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


class EmbeddingError(Exception):
    """The embedding model gives no usable vectors; the text is for people and names no address or key."""

    def __init__(self, message: str, *, passing: bool) -> None:
        super().__init__(message)
        self.passing = passing  # whether trying again later may help


class Embedder(Protocol):
    """A model that turns texts into vectors of length 1, which are compared by their angle."""

    name: str
    dimensions: int

    def embed(self, texts: Sequence[str]) -> Vectors:
        """An array (texts, dimensions); the row of an empty text is zero. Raises EmbeddingError."""
        ...


def unit(vectors: Vectors) -> Vectors:
    """Each row at length 1; a row of zeros stays."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    result: Vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return result
