"""The model that comes with the site: word vectors in an installed wheel, no network."""

import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import wordllama

from .names import BUILT_IN_DIMENSIONS, BUILT_IN_NAME
from .protocol import Vectors, unit

PADDED = 64  # texts that the tokenizer fills up to one length


class WordLlamaEmbedder:
    """Averages of word vectors that come with the package: small, fast, English, no network."""

    name = BUILT_IN_NAME
    dimensions = BUILT_IN_DIMENSIONS
    batch = 512

    def __init__(self) -> None:
        # The tokenizer lies in tokenizers/ of the package but is looked for in tokenizer/, and then in
        # tokenizers/ of the cache: the package is its own cache, and nothing is ever downloaded.
        package = Path(wordllama.__file__).parent
        self._model = wordllama.WordLlama.load(
            dim=BUILT_IN_DIMENSIONS, cache_dir=package, disable_download=True
        )
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str], seconds: float | None = None) -> Vectors:
        if not texts:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        with self._lock:  # the tokenizer's padding is state
            vectors = self._model.embed([text or " " for text in texts], batch_size=PADDED)
        return unit(np.asarray(vectors, dtype=np.float32))
