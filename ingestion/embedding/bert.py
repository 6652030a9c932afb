"""A sentence-embedding model of the BERT family, with numpy only.

Weights in single precision are memory-mapped, so that all processes share them. Nothing is downloaded.
"""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ingestion.embedding_folder import FolderError, architecture, model_name

from .arrays import arrays, tokenizer_of
from .embedder import Vectors, unit

TOKENS_PER_BATCH = 512  # more would not fit into the processor's caches
GELU = tuple(map(np.float32, (0.79782828, 0.0364684959, -1.24702107e-4, -3.06106037e-5, 1.12076040e-6)))
GELU_SQUARE = np.float32(36)  # for larger squares, Φ is practically 0 or 1
GELU_ROWS = 64
LAYER_MODULES = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "attention.output.LayerNorm",
    "intermediate.dense",
    "output.dense",
    "output.LayerNorm",
)

Numbers = NDArray[np.float32]


class BertEmbedder:
    """A BERT encoder. A text's vector is that of its first token, or the mean over all tokens."""

    batch = 32
    is_remote = False

    def __init__(self, folder: str) -> None:
        path = Path(folder)
        self.name = model_name(folder)
        self._shape = architecture(folder)
        self.dimensions = self._shape.dimensions
        self._tokenizer = tokenizer_of(path)
        self._tokenizer.enable_truncation(self._shape.max_tokens)
        self._tokenizer.no_padding()
        found = arrays(path / "model.safetensors")
        self._weights: dict[str, Numbers] = {
            name.removeprefix("bert."): np.asarray(values, dtype=np.float32) for name, values in found.items()
        }
        layers = range(self._shape.layers)
        modules = [f"encoder.layer.{number}.{module}" for number in layers for module in LAYER_MODULES]
        needed = [f"embeddings.{kind}_embeddings.weight" for kind in ("word", "position", "token_type")]
        for module in ("embeddings.LayerNorm", *modules):
            needed += [f"{module}.weight", f"{module}.bias"]
        for name in needed:
            if name not in self._weights:
                raise FolderError(f"model.safetensors has no “{name}”.")

    def embed(self, texts: Sequence[str], seconds: float | None = None) -> Vectors:
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        filled = [index for index, text in enumerate(texts) if text.strip()]
        encoded = self._tokenizer.encode_batch_fast([texts[index] for index in filled])
        tokens = {index: item.ids for index, item in zip(filled, encoded, strict=True)}
        # Batch texts of similar length, because padding also costs computing time.
        waiting = sorted(filled, key=lambda index: len(tokens[index]))
        while waiting:
            longest = len(tokens[waiting[-1]])
            count = max(1, TOKENS_PER_BATCH // longest)
            part, waiting = waiting[-count:], waiting[:-count]
            ids = np.zeros((len(part), longest), dtype=np.int64)
            mask = np.zeros((len(part), longest), dtype=np.float32)
            for row, index in enumerate(part):
                ids[row, : len(tokens[index])] = tokens[index]
                mask[row, : len(tokens[index])] = 1
            vectors[part] = self._pooled(self._encoded(ids, mask), mask)
        return unit(vectors)

    def _pooled(self, hidden: Numbers, mask: Numbers) -> Numbers:
        if self._shape.first_token:
            return hidden[:, 0]
        result: Numbers = (hidden * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        return result

    def _encoded(self, ids: NDArray[np.int64], mask: Numbers) -> Numbers:
        """The last layer's vector of each token."""
        weights = self._weights
        hidden = (
            weights["embeddings.word_embeddings.weight"][np.minimum(ids, self._vocabulary - 1)]
            + weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
            + weights["embeddings.token_type_embeddings.weight"][0]
        ).astype(np.float32)
        hidden = self._normalized(hidden, "embeddings.LayerNorm")
        unseen = (1 - mask[:, None, None, :]) * np.float32(-1e9)
        for number in range(self._shape.layers):
            layer = f"encoder.layer.{number}"
            attended = self._linear(self._attended(hidden, unseen, layer), f"{layer}.attention.output.dense")
            hidden = self._normalized(hidden + attended, f"{layer}.attention.output.LayerNorm")
            wide = self._linear(hidden, f"{layer}.intermediate.dense")
            if self._shape.activation == "relu":
                wide = np.maximum(wide, 0)
            else:
                _gelu(wide)
            hidden = self._normalized(
                hidden + self._linear(wide, f"{layer}.output.dense"), f"{layer}.output.LayerNorm"
            )
        return hidden

    def _attended(self, hidden: Numbers, unseen: Numbers, layer: str) -> Numbers:
        """Scaled dot-product attention of all heads, before the output projection."""
        texts, length, width = hidden.shape
        heads = self._shape.heads
        query, key, value = (
            self._linear(hidden, f"{layer}.attention.self.{part}")
            .reshape(texts, length, heads, width // heads)
            .transpose(0, 2, 1, 3)
            for part in ("query", "key", "value")
        )
        query *= np.float32(1 / math.sqrt(width // heads))
        scores: Numbers = query @ key.transpose(0, 1, 3, 2)
        scores += unseen
        scores -= scores.max(axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        mixed: Numbers = scores @ value
        mixed /= scores.sum(axis=-1, keepdims=True)
        return mixed.transpose(0, 2, 1, 3).reshape(texts, length, width)

    def _linear(self, hidden: Numbers, name: str) -> Numbers:
        weight, bias = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        # One matrix product for all texts: numpy would compute one per text, which is a quarter slower.
        result: Numbers = hidden.reshape(-1, hidden.shape[-1]) @ weight.T
        result += bias
        return result.reshape(*hidden.shape[:-1], len(bias))

    def _normalized(self, hidden: Numbers, name: str) -> Numbers:
        """Normalise each token's vector, in place."""
        hidden -= hidden.mean(axis=-1, keepdims=True)
        spread = np.einsum("...i,...i->...", hidden, hidden) / np.float32(hidden.shape[-1])
        hidden /= np.sqrt(spread + np.float32(self._shape.epsilon))[..., None]
        hidden *= self._weights[f"{name}.weight"]
        hidden += self._weights[f"{name}.bias"]
        return hidden

    @property
    def _vocabulary(self) -> int:
        return len(self._weights["embeddings.word_embeddings.weight"])


def _gelu(values: Numbers) -> None:
    """Replace each value x by x · Φ(x), with an error of at most 4e-6.

    Φ, the normal distribution function, is approximated by the hyperbolic tangent of a fitted polynomial,
    which is four times as fast as formulas with exponentials. Rows are processed in blocks that fit into the
    processor's cache.
    """
    rows = values.reshape(-1, values.shape[-1])
    for start in range(0, len(rows), GELU_ROWS):
        part = rows[start : start + GELU_ROWS]
        square = np.minimum(part * part, GELU_SQUARE)
        series = np.full_like(square, GELU[-1])
        for coefficient in GELU[-2::-1]:
            series *= square
            series += coefficient
        series *= part
        np.tanh(series, out=series)
        series += 1
        part *= series
        part *= np.float32(0.5)
