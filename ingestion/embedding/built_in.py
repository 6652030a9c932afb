"""The built-in model: small and fast English word vectors from an installed package.

It needs no network. Only the data files of the package are used: its code would keep a copy of the vectors as
64-bit numbers in each process, and its imports would take as much memory again. Here, the vectors are
memory-mapped and shared by all processes.
"""

from importlib.util import find_spec
from pathlib import Path

from tokenizers import Tokenizer

from .arrays import arrays
from .embedder import BUILT_IN_DIMENSIONS, BUILT_IN_NAME
from .token_tables import TokenTable


class WordLlamaEmbedder(TokenTable):
    """The vectors and the tokenizer of the package wordllama."""

    def __init__(self) -> None:
        spec = find_spec("wordllama")
        assert spec is not None
        assert spec.origin is not None
        package = Path(spec.origin).parent
        words = package / "tokenizers" / "l2_supercat_tokenizer_config.json"
        weights = package / "weights" / f"l2_supercat_{BUILT_IN_DIMENSIONS}.safetensors"
        super().__init__(BUILT_IN_NAME, Tokenizer.from_file(str(words)), arrays(weights)["embedding.weight"])
