"""Name and architecture of a sentence-embedding model in a folder (EMBEDDING_MODEL_DIR).

The folder has the format of sentence-transformers (`config.json`, `tokenizer.json`, `model.safetensors`, and
optionally `1_Pooling/config.json` and `sentence_bert_config.json`) with a BERT model, such as
all-MiniLM-L6-v2, or the format of model2vec, in which `model.safetensors` has a table of token vectors
(`embeddings`) instead of an encoder.
"""

import functools
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PREFIX = "folder:"  # prefix of the names of models from a folder; no model on a server has it
NAME_LENGTH = 120
HASHED = 1_000_000  # first bytes of each file, which are hashed to distinguish models
MAX_TOKENS = 512
VECTORS = "embeddings"  # name of the tensor by which models of model2vec are recognised

_HEADER = 8  # bytes of a safetensors file that hold the length of its header
_MAX_HEADER = 10_000_000


class FolderError(Exception):
    """The folder has no usable model; the text is the reason."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """The architecture of a BERT model.

    A text's vector is that of its first token if `first_token` is true, otherwise the mean over all tokens.
    """

    dimensions: int
    layers: int
    heads: int
    epsilon: float
    activation: str
    max_tokens: int
    first_token: bool


@dataclass(frozen=True, slots=True)
class Tensor:
    """An array in a safetensors file: type name, shape, and offset of the first byte."""

    kind: str
    shape: tuple[int, ...]
    start: int


def tensors(path: Path) -> dict[str, Tensor]:
    """The arrays of a safetensors file by name, without their contents. Raises FolderError."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(_HEADER), "little")
            if length > _MAX_HEADER:
                raise FolderError(f"{path.name} is not a safetensors file.")
            header: dict[str, Any] = json.loads(file.read(length))
        return {
            name: Tensor(
                str(entry["dtype"]),
                tuple(map(int, entry["shape"])),
                _HEADER + length + int(entry["data_offsets"][0]),
            )
            for name, entry in header.items()
            if name != "__metadata__"
        }
    except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise FolderError(f"{path.name} cannot be read: {error}") from error


@functools.lru_cache(maxsize=4)
def is_static(folder: str) -> bool:
    """Whether the model is a table of token vectors. Raises FolderError."""
    return VECTORS in tensors(Path(folder) / "model.safetensors")


def dimensions(folder: str) -> int:
    """The length of the model's vectors. Raises FolderError."""
    if not is_static(folder):
        return architecture(folder).dimensions
    shape = tensors(Path(folder) / "model.safetensors")[VECTORS].shape
    if len(shape) != 2 or not all(shape):
        raise FolderError(f"“{VECTORS}” in model.safetensors is not a table.")
    return shape[1]


@functools.lru_cache(maxsize=4)
def model_name(folder: str) -> str:
    """The folder's name with a digest of its files, read once per process. Raises FolderError."""
    path = Path(folder)
    digest = hashlib.sha256()
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        try:
            with (path / name).open("rb") as file:
                digest.update(file.read(HASHED))
        except OSError as error:
            raise FolderError(f"{name} cannot be read: {error.strerror}.") from error
    return f"{PREFIX}{path.resolve().name[:NAME_LENGTH]}-{digest.hexdigest()[:8]}"


@functools.lru_cache(maxsize=4)
def architecture(folder: str) -> Architecture:
    """Read the architecture from the folder's files. Raises FolderError."""
    path = Path(folder)
    config = _json(path / "config.json")
    if config is None:
        raise FolderError("There is no config.json.")
    kind, positions = config.get("model_type"), config.get("position_embedding_type", "absolute")
    if kind != "bert" or positions != "absolute":
        raise FolderError(
            f"Models of the kind “{kind}” ({positions} positions) are not supported, only “bert”."
        )
    pooling = _json(path / "1_Pooling" / "config.json") or {}
    sentences = _json(path / "sentence_bert_config.json") or {}
    try:
        shape = Architecture(
            dimensions=int(config["hidden_size"]),
            layers=int(config["num_hidden_layers"]),
            heads=int(config["num_attention_heads"]),
            epsilon=float(config.get("layer_norm_eps", 1e-12)),
            activation=str(config.get("hidden_act", "gelu")),
            max_tokens=min(
                MAX_TOKENS,
                int(config["max_position_embeddings"]),
                int(sentences.get("max_seq_length") or MAX_TOKENS),
            ),
            first_token=bool(pooling.get("pooling_mode_cls_token")),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise FolderError(f"config.json does not describe a BERT model: {error}") from error
    if shape.activation not in ("gelu", "relu"):
        raise FolderError(f"The activation “{shape.activation}” is not supported, only “gelu” and “relu”.")
    if shape.heads < 1 or shape.dimensions % shape.heads or min(shape.layers, shape.max_tokens) < 1:
        raise FolderError("config.json does not describe a BERT model: its sizes are inconsistent.")
    return shape


def _json(path: Path) -> dict[str, Any] | None:
    """The object in a JSON file; None if the file does not exist. Raises FolderError."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise FolderError(f"{path.name} cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise FolderError(f"{path.name} is not an object.")
    return found
