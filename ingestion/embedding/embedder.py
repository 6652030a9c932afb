"""The interface of embedding models."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


class EmbeddingError(Exception):
    """The embedding model returned no usable vectors.

    The text is for people and contains no URL or key. `temporary` says whether a retry may help;
    `retry_after` is the number of seconds to wait, if the server gave one.
    """

    def __init__(self, message: str, *, temporary: bool, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.temporary = temporary
        self.retry_after = retry_after


class Embedder(Protocol):
    """A model that turns texts into vectors of length 1, which are compared by their angle."""

    name: str
    dimensions: int
    batch: int  # the best number of texts per call
    is_remote: bool  # whether a call waits for a server instead of computing

    def embed(self, texts: Sequence[str], seconds: float | None = None) -> Vectors:
        """An array (texts, dimensions); rows of empty texts may be zero. Raises EmbeddingError.

        `seconds` limits each batch of a remote model.
        """
        ...


def unit(vectors: Vectors) -> Vectors:
    """Normalise each row to length 1; rows of zeros are unchanged."""
    # The same as np.linalg.norm, which takes several times as long for the vector of one question.
    lengths = np.sqrt(np.add.reduce(vectors * vectors, axis=1, keepdims=True))
    result: Vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return result


BUILT_IN_NAME = "wordllama-l2-supercat-256"
BUILT_IN_DIMENSIONS = 256
