"""Embeddings from an OpenAI-compatible server."""

import asyncio
import atexit
import functools
import json
import threading
from collections.abc import Sequence
from typing import Any

import httpx2
import numpy as np
import openai

from chatsite.event_loops import close_all
from chatsite.http.outgoing.model_server import model_server, retry_after_of

from .embedder import EmbeddingError, Vectors, unit

BATCH = 128
SECONDS = 60.0
CONNECT_SECONDS = 5.0
CLOSE_SECONDS = 1.0
CHARACTERS = 8_000  # characters of a text; models truncate or refuse longer ones
WIDEST = 4_096  # maximum dimensions of a vector before it is shortened
NUMBER_BYTES = 40  # maximum bytes of JSON for one number
SPARE_BYTES = 1_000_000
BUSY = frozenset({408, 409, 425, 429})

SILENT = "The embedding service does not answer."
SLOW = "The embedding service took too long to answer."
INVALID_RESPONSE = "The embedding service did not return vectors."
GONE = "The settings no longer name an embedding service."


class EndpointEmbedder:
    """Calls an OpenAI-compatible `/embeddings` in batches, and validates the responses."""

    batch = BATCH
    is_remote = True

    def __init__(self, name: str, dimensions: int, base_url: str, api_key: str) -> None:
        self.name = name
        self.dimensions = dimensions
        # Whether the settings no longer name this model's server. With neither a URL nor a key, nothing is
        # sent, because the library's default server is OpenAI's.
        self._is_gone = not (base_url or api_key)
        self._base_url = base_url
        self._api_key = api_key
        self._shortened = False  # whether requests ask the server for vectors with `dimensions` numbers

    def embed(self, texts: Sequence[str], seconds: float | None = None) -> Vectors:
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        filled = [index for index, text in enumerate(texts) if text.strip()]
        for start in range(0, len(filled), BATCH):
            batch = filled[start : start + BATCH]
            vectors[batch] = self._vectors([texts[index][:CHARACTERS] for index in batch], seconds or SECONDS)
        return unit(vectors)

    def _vectors(self, texts: list[str], seconds: float) -> Vectors:
        vectors = self._asked(texts, seconds)
        if vectors.shape[1:] > (self.dimensions,) and not self._shortened:
            # Ask for shortened vectors; models that cannot shorten them refuse the request.
            self._shortened = True
            vectors = self._asked(texts, seconds)
        if vectors.shape != (len(texts), self.dimensions):
            raise EmbeddingError(
                f"The embedding service returned vectors that do not have {self.dimensions} numbers.",
                temporary=False,
            )
        if not np.isfinite(vectors).all():
            raise EmbeddingError(INVALID_RESPONSE, temporary=True)
        return vectors

    def _asked(self, texts: list[str], seconds: float) -> Vectors:
        """Request the vectors of a batch: one row for each text, in order."""
        if self._is_gone:
            raise EmbeddingError(GONE, temporary=True)
        body: dict[str, Any] = {"model": self.name, "input": texts, "encoding_format": "float"}
        if self._shortened:
            body["dimensions"] = self.dimensions
        data = asyncio.run_coroutine_threadsafe(self._sent(body, seconds), _loop()).result()
        try:
            items = sorted(json.loads(data)["data"], key=lambda item: item["index"])
            if [item["index"] for item in items] != list(range(len(items))):
                raise EmbeddingError(INVALID_RESPONSE, temporary=True)
            # Values that are too large become infinite; `_vectors` refuses these.
            with np.errstate(over="ignore"):
                vectors = np.asarray([item["embedding"] for item in items], dtype=np.float32)
        except (ValueError, TypeError, LookupError, OverflowError, RecursionError):
            raise EmbeddingError(INVALID_RESPONSE, temporary=True) from None
        if vectors.ndim != 2:
            raise EmbeddingError(INVALID_RESPONSE, temporary=True)
        return vectors

    async def _sent(self, body: dict[str, Any], seconds: float) -> bytes:
        """Send a request, and return the response body.

        Errors omit the server's message, which may repeat the key.
        """
        limit = len(body["input"]) * max(self.dimensions, WIDEST) * NUMBER_BYTES + SPARE_BYTES
        try:
            # One deadline for the whole request: a slow server might never exceed the limit of a single read.
            async with asyncio.timeout(seconds):
                server = model_server(self._base_url, self._api_key, CONNECT_SECONDS)
                return await server.post("embeddings", body, limit)
        except (TimeoutError, openai.APITimeoutError):
            raise EmbeddingError(SLOW, temporary=True) from None
        except openai.APIStatusError as error:
            status = error.status_code
            if status in BUSY or status >= 500:
                raise EmbeddingError(
                    f"{SILENT[:-1]} ({status}).", temporary=True, retry_after=retry_after_of(error)
                ) from None
            raise EmbeddingError(
                f"The embedding service refuses the request ({status}).", temporary=False
            ) from None
        except openai.APIConnectionError:
            raise EmbeddingError(SILENT, temporary=True) from None
        except (httpx2.InvalidURL, ValueError):
            raise EmbeddingError(INVALID_RESPONSE, temporary=True) from None


@functools.cache
def _loop() -> asyncio.AbstractEventLoop:
    """An event loop in its own thread, which holds the connections for all calling threads."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="embedding", daemon=True).start()
    atexit.register(lambda: asyncio.run_coroutine_threadsafe(close_all(), loop).result(CLOSE_SECONDS))
    return loop
