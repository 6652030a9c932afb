"""Embedding while somebody waits: for a short time only, and not again and again where it fails."""

import threading
import time
from collections.abc import Sequence
from weakref import WeakKeyDictionary

from django.conf import settings

from .base import Embedder, EmbeddingError, Vectors

FAILURES = 3  # one after the other, after which the model is left alone
PAUSE_SECONDS = 30.0
MAX_PAUSE_SECONDS = 300.0  # however long a server asks for


class _Breaker:
    """Counts failures of one model; after some of them nobody waits for it until a pause is over."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._failures = 0
        self._closed_until = 0.0

    def may_try(self) -> bool:
        """After the pause one at a time: whether the model is back is found out by one question."""
        with self._lock:
            now = time.monotonic()
            if now < self._closed_until:
                return False
            if self._failures >= FAILURES:
                self._closed_until = now + PAUSE_SECONDS
            return True

    def succeeded(self) -> None:
        with self._lock:
            self._failures, self._closed_until = 0, 0.0

    def failed(self, retry_after: float | None) -> None:
        with self._lock:
            self._failures += 1
            pause = min(retry_after or 0.0, MAX_PAUSE_SECONDS)
            if self._failures >= FAILURES:
                pause = max(pause, PAUSE_SECONDS)
            self._closed_until = max(self._closed_until, time.monotonic() + pause)


_breakers: WeakKeyDictionary[Embedder, _Breaker] = WeakKeyDictionary()
_making = threading.Lock()


def embed_question(model: Embedder, texts: Sequence[str]) -> Vectors:
    """As `model.embed`, within seconds (EMBEDDING_QUESTION_SECONDS), or at once an EmbeddingError."""
    with _making:
        breaker = _breakers.setdefault(model, _Breaker())
    if not breaker.may_try():
        raise EmbeddingError(
            "The embedding service has failed and is left alone for a while.", temporary=True
        )
    try:
        vectors = model.embed(texts, settings.EMBEDDING_QUESTION_SECONDS)
    except EmbeddingError as error:
        breaker.failed(error.retry_after)
        raise
    breaker.succeeded()
    return vectors
