"""Texts to vectors: a model from the installed wheel, or any OpenAI-compatible server."""

import functools
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import openai
import wordllama
from django.conf import settings
from django.db import connection, transaction
from numpy.typing import NDArray

from .models import EmbeddingSpace

Vectors = NDArray[np.float32]

SPACE_LOCK = 0x636861740001  # PostgreSQL's advisory lock for making a space, any number of our own
INDEXED_DIMENSIONS = 4_000  # the most that an index on halfvec takes; above, search scans
WORDLLAMA_DIMENSIONS = 256
WORDLLAMA_BATCH = 64
ENDPOINT_BATCH = 128
ENDPOINT_SECONDS = 60
ENDPOINT_CHARACTERS = 8_000  # of one text; models cut longer ones or refuse them


class EmbeddingError(Exception):
    """The embedding model gives no usable vectors; the text is for people and names no address or key."""

    def __init__(self, message: str, *, passing: bool) -> None:
        super().__init__(message)
        self.passing = passing  # whether trying again later may help


class Embedder(Protocol):
    """A model that turns texts into vectors of length 1, which are compared by their angle."""

    name: str
    dimensions: int

    def embed(self, texts: Sequence[str]) -> Vectors:
        """An array (texts, dimensions); the row of an empty text is zero. Raises EmbeddingError."""
        ...


class WordLlamaEmbedder:
    """Averages of word vectors that come with the package: small, fast, English, no network."""

    name = "wordllama-l2-supercat-256"
    dimensions = WORDLLAMA_DIMENSIONS

    def __init__(self) -> None:
        # The tokenizer lies in tokenizers/ of the package but is looked for in tokenizer/, and then in
        # tokenizers/ of the cache: the package is its own cache, and nothing is ever downloaded.
        package = Path(wordllama.__file__).parent
        self._model = wordllama.WordLlama.load(
            dim=WORDLLAMA_DIMENSIONS, cache_dir=package, disable_download=True
        )
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        with self._lock:  # the tokenizer's padding is state
            vectors = self._model.embed([text or " " for text in texts], batch_size=WORDLLAMA_BATCH)
        return _unit(np.asarray(vectors, dtype=np.float32))


class EndpointEmbedder:
    """An OpenAI-compatible `/embeddings`, called in batches; what comes back is checked before it is used."""

    def __init__(self, name: str, dimensions: int, client: openai.OpenAI) -> None:
        self.name = name
        self.dimensions = dimensions
        self._client = client

    def embed(self, texts: Sequence[str]) -> Vectors:
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        filled = [index for index, text in enumerate(texts) if text.strip()]
        for start in range(0, len(filled), ENDPOINT_BATCH):
            batch = filled[start : start + ENDPOINT_BATCH]
            vectors[batch] = self._call([texts[index][:ENDPOINT_CHARACTERS] for index in batch])
        return _unit(vectors)

    def _call(self, texts: list[str]) -> Vectors:
        try:
            answer = self._client.embeddings.create(model=self.name, input=texts, encoding_format="float")
            rows = [item.embedding for item in sorted(answer.data, key=lambda item: item.index)]
            vectors = np.asarray(rows, dtype=np.float32)
        except (openai.APIConnectionError, openai.RateLimitError, openai.InternalServerError) as error:
            raise EmbeddingError("The embedding service does not answer.", passing=True) from error
        except openai.APIStatusError as error:
            raise EmbeddingError("The embedding service refuses the request.", passing=False) from error
        except (openai.OpenAIError, ValueError, TypeError, AttributeError) as error:
            raise EmbeddingError(
                "The embedding service answers with something else.", passing=True
            ) from error
        if vectors.shape != (len(texts), self.dimensions):
            raise EmbeddingError(
                f"The embedding service answers with vectors of another size than {self.dimensions} numbers.",
                passing=False,
            )
        if not np.isfinite(vectors).all():
            raise EmbeddingError(
                "The embedding service answers with something else than numbers.", passing=True
            )
        return vectors


def _unit(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    result: Vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return result


_making = threading.Lock()


def embedder() -> Embedder:
    """The configured model, loaded once for the process."""
    with _making:
        if not settings.EMBEDDING_MODEL:
            return _built_in()
        return _endpoint(
            settings.EMBEDDING_MODEL,
            settings.EMBEDDING_DIMENSIONS,
            settings.OPENAI_BASE_URL,
            settings.OPENAI_API_KEY,
        )


@functools.cache
def _built_in() -> WordLlamaEmbedder:
    return WordLlamaEmbedder()


@functools.lru_cache(maxsize=1)
def _endpoint(model: str, dimensions: int, base_url: str, api_key: str) -> EndpointEmbedder:
    client = openai.OpenAI(
        api_key=api_key or "none", base_url=base_url or None, max_retries=0, timeout=ENDPOINT_SECONDS
    )
    return EndpointEmbedder(model, dimensions, client)


def active_space() -> EmbeddingSpace:
    """The space of the configured model; made and indexed on first use, and from then on the active one."""
    name, dimensions = _configured()
    space = EmbeddingSpace.objects.filter(name=name, dimensions=dimensions, active=True).first()
    return space or _activate(name, dimensions)


def _configured() -> tuple[str, int]:
    # Without loading the model: search by words alone needs the space but no vectors.
    if settings.EMBEDDING_MODEL:
        return settings.EMBEDDING_MODEL, settings.EMBEDDING_DIMENSIONS
    return WordLlamaEmbedder.name, WordLlamaEmbedder.dimensions


def _activate(name: str, dimensions: int) -> EmbeddingSpace:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [SPACE_LOCK])
        space, created = EmbeddingSpace.objects.get_or_create(name=name, dimensions=dimensions)
        if not space.active:
            EmbeddingSpace.objects.filter(active=True).update(active=False)
            EmbeddingSpace.objects.filter(pk=space.pk).update(active=True)
            space.active = True
        if created and dimensions <= INDEXED_DIMENSIONS:
            # Whole numbers of our own: identifiers and types cannot be parameters.
            cursor.execute(
                f"CREATE INDEX vector_space_{space.pk:d} ON ingestion_vector"
                f" USING hnsw ((vector::halfvec({dimensions:d})) halfvec_cosine_ops)"
                f" WITH (m = 16, ef_construction = 200) WHERE space_id = {space.pk:d}"
            )
    return space
