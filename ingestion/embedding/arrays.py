"""The files of a model: the arrays of a safetensors file, memory-mapped, and the tokenizer."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from ingestion.embedding_folder import FolderError, tensors

KINDS = {"F32": "<f4", "F16": "<f2", "BF16": "<u2", "I8": "i1", "I32": "<i4", "I64": "<i8"}


def arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of a safetensors file by name, memory-mapped so that all processes share them.

    Arrays of bfloat16 are converted, and therefore not shared. Arrays of unknown types are left out. Raises
    FolderError.
    """
    found: dict[str, NDArray[Any]] = {}
    for name, tensor in tensors(path).items():
        if tensor.kind not in KINDS:
            continue
        try:
            mapped: NDArray[Any] = np.memmap(path, KINDS[tensor.kind], "r", tensor.start, tensor.shape)
        except (OSError, ValueError) as error:
            raise FolderError(f"{path.name} cannot be read: {error}") from error
        if tensor.kind == "BF16":  # bfloat16 is the upper half of single precision
            mapped = (mapped.astype(np.uint32) << 16).view(np.float32)
        found[name] = np.asarray(mapped)
    return found


def tokenizer_of(folder: Path) -> Tokenizer:
    """The folder's tokenizer, without padding. Raises FolderError."""
    try:
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    except Exception as error:  # the library raises no specific exceptions
        raise FolderError(f"tokenizer.json cannot be read: {error}") from error
    tokenizer.no_padding()
    return tokenizer
