"""The built-in model: word vectors of an installed wheel, no network.

Only the package's files are used: its own code would keep a copy of the vectors as 64-bit numbers in each
process, and its imports take as much memory again. Here the vectors are memory-mapped and shared by all
processes.
"""

import json
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from .embedder import BUILT_IN_DIMENSIONS, BUILT_IN_NAME, Vectors, unit

TEXTS_PER_BATCH = 8  # tokenized together: tokens take far more memory than the texts
HEADER = 8  # bytes of a safetensors file with the length of its header


class WordLlamaEmbedder:
    """Averages of word vectors: small, fast, English, no network."""

    name = BUILT_IN_NAME
    dimensions = BUILT_IN_DIMENSIONS
    batch = 512

    def __init__(self) -> None:
        spec = find_spec("wordllama")
        assert spec is not None
        assert spec.origin is not None
        package = Path(spec.origin).parent
        words = package / "tokenizers" / "l2_supercat_tokenizer_config.json"
        self._tokenizer = Tokenizer.from_file(str(words))
        self._tokenizer.no_truncation()
        self._table = _table(package / "weights" / f"l2_supercat_{BUILT_IN_DIMENSIONS}.safetensors")

    def embed(self, texts: Sequence[str], seconds: float | None = None) -> Vectors:
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for start in range(0, len(texts), TEXTS_PER_BATCH):
            part = [text or " " for text in texts[start : start + TEXTS_PER_BATCH]]
            encoded = self._tokenizer.encode_batch_fast(part, add_special_tokens=False)
            for row, text in enumerate(encoded, start):
                vectors[row] = self._sum(text.ids)
        return unit(vectors)

    def _sum(self, tokens: Sequence[int]) -> NDArray[np.float32]:
        """The sum of a text's token vectors, which normalised equals their mean.

        Each distinct token's vector is read once, however often it occurs.
        """
        known = np.clip(np.asarray(tokens, dtype=np.int64), 0, len(self._table) - 1)
        distinct, counts = np.unique(known, return_counts=True)
        rows = self._table[distinct].astype(np.float32)
        result: NDArray[np.float32] = counts.astype(np.float32) @ rows
        return result


def _table(path: Path) -> NDArray[np.float16]:
    """The only array of a safetensors file, memory-mapped."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(HEADER), "little")
        header: dict[str, Any] = json.loads(file.read(length))
    weights = header["embedding.weight"]
    assert weights["dtype"] == "F16"
    offset = HEADER + length + weights["data_offsets"][0]
    return np.asarray(np.memmap(path, "<f2", "r", offset, tuple(weights["shape"])))
