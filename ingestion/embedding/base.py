"""What the site asks of an embedding model."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


class EmbeddingError(Exception):
    """The embedding model gives no usable vectors; the text is for people and names no address or key.

    `temporary` says whether trying again later may help, `retry_after` after how many seconds, where the
    server has said so.
    """

    def __init__(self, message: str, *, temporary: bool, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.temporary = temporary
        self.retry_after = retry_after


class Embedder(Protocol):
    """A model that turns texts into vectors of length 1, which are compared by their angle."""

    name: str
    dimensions: int
    batch: int  # texts that are best embedded at once

    def embed(self, texts: Sequence[str], seconds: float | None = None) -> Vectors:
        """An array (texts, dimensions); the row of an empty text is zero. Raises EmbeddingError.

        `seconds` is the most that each batch may take, where the model is somewhere else.
        """
        ...


def unit(vectors: Vectors) -> Vectors:
    """Each row at length 1; a row of zeros stays."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    result: Vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return result


BUILT_IN_NAME = "wordllama-l2-supercat-256"
BUILT_IN_DIMENSIONS = 256
