"""Vectors of single words from the built-in model, regardless of the settings."""

import threading
from collections.abc import Sequence

import numpy as np

from .embedder import BUILT_IN_DIMENSIONS, BUILT_IN_NAME, Vectors
from .selection import embedder

MAX_CACHED = 40_000  # words, a kilobyte each: computing a vector is far more expensive than a cache hit

_places: dict[str, int] = {}
_kept = np.zeros((MAX_CACHED, BUILT_IN_DIMENSIONS), dtype=np.float32)  # uses memory only as it fills
_keeping = threading.Lock()


def word_vectors(words: Sequence[str]) -> Vectors:
    """An array (words, dimensions) of rows of length 1, for at most MAX_CACHED different words."""
    with _keeping:
        missing = [word for word in dict.fromkeys(words) if word not in _places]
        if missing:
            if len(_places) + len(missing) > MAX_CACHED:
                _places.clear()
                missing = list(dict.fromkeys(words))
            first, end = len(_places), len(_places) + len(missing)
            _kept[first:end] = embedder(BUILT_IN_NAME).embed(missing)
            _places.update(zip(missing, range(first, end), strict=True))
        rows: Vectors = _kept[[_places[word] for word in words]]
    return rows
