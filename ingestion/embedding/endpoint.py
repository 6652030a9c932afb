"""Embeddings of an OpenAI-compatible server."""

from collections.abc import Sequence

import numpy as np
import openai
from django.conf import settings

from .protocol import EmbeddingError, Vectors, unit

BATCH = 128
SECONDS = 60
CHARACTERS = 8_000  # of one text; models cut longer ones or refuse them


class EndpointEmbedder:
    """An OpenAI-compatible `/embeddings`, called in batches; what comes back is checked before it is used."""

    def __init__(self) -> None:
        self.name: str = settings.EMBEDDING_MODEL
        self.dimensions: int = settings.EMBEDDING_DIMENSIONS
        self._client = openai.OpenAI(
            api_key=settings.OPENAI_API_KEY or "none",
            base_url=settings.OPENAI_BASE_URL or None,
            max_retries=0,
            timeout=SECONDS,
        )

    def embed(self, texts: Sequence[str]) -> Vectors:
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        filled = [index for index, text in enumerate(texts) if text.strip()]
        for start in range(0, len(filled), BATCH):
            batch = filled[start : start + BATCH]
            vectors[batch] = self._call([texts[index][:CHARACTERS] for index in batch])
        return unit(vectors)

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
