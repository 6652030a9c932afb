"""A sentence-embedding model of the BERT family, with numpy only.

Weights are memory-mapped, so that all processes share them. Nothing is downloaded.
"""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from ingestion.embedding_folder import FolderError, architecture, model_name

from .embedder import Vectors, unit

HEADER = 8  # bytes of a safetensors file with the length of its header
MAX_HEADER = 10_000_000
TOKENS_PER_BATCH = 2_048
KINDS = {"F32": "<f4", "F16": "<f2", "BF16": "<u2"}
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
    """A BERT encoder; a text's vector is the mean of its tokens' vectors, or the first one."""

    batch = 32

    def __init__(self, folder: str) -> None:
        path = Path(folder)
        self.name = model_name(folder)
        self._shape = architecture(folder)
        self.dimensions = self._shape.dimensions
        try:
            self._tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
        except Exception as error:  # the library raises no specific exceptions
            raise FolderError(f"tokenizer.json cannot be read: {error}") from error
        self._tokenizer.enable_truncation(self._shape.max_tokens)
        self._tokenizer.no_padding()
        self._weights = _read_weights(path / "model.safetensors")
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
        # Texts of similar length together, because padding is computed as well.
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
                wide = wide * np.float32(0.5) * (1 + _erf(wide / np.float32(math.sqrt(2))))
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
        scores = query @ key.transpose(0, 1, 3, 2) / np.float32(math.sqrt(width // heads)) + unseen
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        result: Numbers = (scores @ value).transpose(0, 2, 1, 3).reshape(texts, length, width)
        return result

    def _linear(self, hidden: Numbers, name: str) -> Numbers:
        result: Numbers = hidden @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]
        return result

    def _normalized(self, hidden: Numbers, name: str) -> Numbers:
        centred = hidden - hidden.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + np.float32(self._shape.epsilon))
        result: Numbers = centred / spread * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]
        return result

    @property
    def _vocabulary(self) -> int:
        return len(self._weights["embeddings.word_embeddings.weight"])


def _read_weights(path: Path) -> dict[str, Numbers]:
    """The arrays of a safetensors file by name; single-precision ones are memory-mapped. Raises
    FolderError."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(HEADER), "little")
            if length > MAX_HEADER:
                raise FolderError(f"{path.name} is not a safetensors file.")
            header: dict[str, Any] = json.loads(file.read(length))
        weights = {}
        for name, told in header.items():
            if name == "__metadata__" or told["dtype"] not in KINDS:
                continue
            start = HEADER + length + int(told["data_offsets"][0])
            mapped: NDArray[Any] = np.memmap(path, KINDS[told["dtype"]], "r", start, tuple(told["shape"]))
            if told["dtype"] == "BF16":  # the upper half of single precision
                values: Numbers = (mapped.astype(np.uint32) << 16).view(np.float32)
            else:
                values = np.asarray(mapped, dtype=np.float32)
            weights[name.removeprefix("bert.")] = values
    except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise FolderError(f"{path.name} cannot be read: {error}") from error
    return weights


def _erf(values: Numbers) -> Numbers:
    """The error function, by formula 7.1.26 of Abramowitz and Stegun, with an error of at most 1.5e-7."""
    size = np.abs(values)
    step = 1 / (1 + np.float32(0.3275911) * size)
    series = step * (
        0.254829592
        + step * (-0.284496736 + step * (1.421413741 + step * (-1.453152027 + step * 1.061405429)))
    )
    result: Numbers = np.copysign(1 - series * np.exp(-size * size), values).astype(np.float32)
    return result
