"""Vectors of single words from the built-in model, regardless of the settings.

Each word gets a number, under which its vector is cached. When the cache is full, it is emptied: a new
generation of numbers begins, and earlier numbers become invalid. Number 0 means no word and has a vector of
zeros.
"""

import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .embedder import BUILT_IN_DIMENSIONS, BUILT_IN_NAME, Vectors
from .selection import embedder

MAX_CACHED = 40_000  # words, a kilobyte each; computing a vector takes far longer than a look-up here

Numbers = NDArray[np.int32]

_places: dict[str, int] = {}
# The operating system allocates this array's memory only as rows are filled.
_kept = np.zeros((MAX_CACHED + 1, BUILT_IN_DIMENSIONS), dtype=np.float32)
_generation = 0
_keeping = threading.Lock()


def generation() -> int:
    """The current generation; only its numbers are valid."""
    return _generation


def word_numbers(words: Sequence[str]) -> Numbers:
    """The number of each word; may begin a new generation. At most MAX_CACHED different words."""
    with _keeping:
        return _numbered(words)


def numbered_vectors(numbers: Numbers, of_generation: int) -> Vectors | None:
    """The vectors for these numbers, as rows of length 1; None if their generation has ended."""
    with _keeping:
        if of_generation != _generation:
            return None
        rows: Vectors = _kept[numbers]
    return rows


def word_vectors(words: Sequence[str]) -> Vectors:
    """An array (words, dimensions) of rows of length 1, for at most MAX_CACHED different words."""
    with _keeping:
        rows: Vectors = _kept[_numbered(words)]
    return rows


def _numbered(words: Sequence[str]) -> Numbers:
    global _generation  # noqa: PLW0603 (changed under the lock, like the places that it counts)
    missing = [word for word in dict.fromkeys(words) if word not in _places]
    if missing:
        if len(_places) + len(missing) > MAX_CACHED:
            _places.clear()
            _generation += 1
            missing = list(dict.fromkeys(words))
        first, end = len(_places) + 1, len(_places) + len(missing) + 1
        _kept[first:end] = embedder(BUILT_IN_NAME).embed(missing)
        _places.update(zip(missing, range(first, end), strict=True))
    return np.array([_places[word] for word in words], np.int32)
