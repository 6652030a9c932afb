"""Models that consist of a table with a vector for each token.

A text's vector is the mean of its tokens' vectors. Such models are small and fast, because they have no
layers to compute. Examples are the built-in model, and models that model2vec distils from a
sentence-embedding model.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from ingestion.embedding_folder import VECTORS, FolderError, dimensions, model_name

from .arrays import arrays, tokenizer_of
from .embedder import Vectors, unit

TEXTS_PER_BATCH = 8  # texts that are tokenized together: tokens take far more memory than texts
SHORT_TEXT = 64  # up to this number of tokens, Python counts faster than NumPy


class TokenTable:
    """An embedder from a token table. Tokens with numbers beyond the table get the vector of the last row."""

    batch = 512
    is_remote = False

    def __init__(self, name: str, tokenizer: Tokenizer, table: NDArray[Any]) -> None:
        self.name = name
        self.dimensions = int(table.shape[1])
        self._tokenizer = tokenizer
        self._tokenizer.no_truncation()
        self._table = table

    def embed(self, texts: Sequence[str], seconds: float | None = None) -> Vectors:
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for start in range(0, len(texts), TEXTS_PER_BATCH):
            part = [text or " " for text in texts[start : start + TEXTS_PER_BATCH]]
            encoded = self._tokenizer.encode_batch_fast(part, add_special_tokens=False)
            for row, text in enumerate(encoded, start):
                tokens, counts = _counted(text.ids)
                vectors[row] = self._sum(tokens, counts)
        return unit(vectors)

    def _sum(self, tokens: NDArray[np.int64], counts: Vectors) -> Vectors:
        """The sum of a text's token vectors; it has the same direction as their mean."""
        rows = self._table[np.minimum(tokens, len(self._table) - 1)].astype(np.float32)
        result: Vectors = counts @ rows
        return result


def _counted(numbers: list[int]) -> tuple[NDArray[np.int64], Vectors]:
    """The distinct tokens of a text, sorted, and how often each occurs.

    The vector of a repeated token is then read only once.
    """
    if len(numbers) > SHORT_TEXT:
        tokens, counts = np.unique(np.asarray(numbers, dtype=np.int64), return_counts=True)
        return tokens, counts.astype(np.float32)
    distinct = sorted(set(numbers))
    return np.array(distinct, np.int64), np.array([numbers.count(each) for each in distinct], np.float32)


class StaticEmbedder(TokenTable):
    """A model of model2vec from a folder.

    Its file has an array `embeddings`, and, if the vocabulary was quantised, a `mapping` from tokens to rows
    and `weights` of tokens. Unknown tokens are ignored.
    """

    def __init__(self, folder: str) -> None:
        path = Path(folder)
        tokenizer = tokenizer_of(path)
        found = arrays(path / "model.safetensors")
        if VECTORS not in found:
            raise FolderError(f"“{VECTORS}” in model.safetensors has an unknown type.")
        dimensions(folder)  # raises FolderError if the array's shape is wrong
        super().__init__(model_name(folder), tokenizer, found[VECTORS])
        size = tokenizer.get_vocab_size()
        rows, weights = found.get("mapping"), found.get("weights")
        self._rows: NDArray[Any] = np.arange(len(self._table)) if rows is None else rows
        self._weights = np.ones(size, dtype=np.float32) if weights is None else weights
        shortest = min(len(self._rows), len(self._weights))
        if shortest < size or self._rows.min() < 0 or self._rows.max() >= len(self._table):
            raise FolderError("model.safetensors has no vector for each token of tokenizer.json.")
        described = json.loads(tokenizer.to_str())["model"]
        unknown = described.get("unk_id", tokenizer.token_to_id(described.get("unk_token") or ""))
        self._unknown = -1 if unknown is None else int(unknown)

    def _sum(self, tokens: NDArray[np.int64], counts: Vectors) -> Vectors:
        known = tokens != self._unknown
        tokens, counts = tokens[known], counts[known]
        rows = self._table[self._rows[tokens]].astype(np.float32)
        result: Vectors = (counts * self._weights[tokens].astype(np.float32)) @ rows
        return result
