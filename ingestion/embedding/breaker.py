"""Embeds questions within a short time limit, behind a circuit breaker."""

import threading
from collections.abc import Sequence
from weakref import WeakKeyDictionary

from django.conf import settings

from chatsite import metrics
from chatsite.http.outgoing.circuit_breaker import CircuitBreaker, CircuitOpen

from .embedder import Embedder, EmbeddingError, Vectors

FAILURES = 3  # consecutive failures after which the model gets no requests for a while
REST_SECONDS = 30.0
MAX_REST_SECONDS = 300.0  # longest pause, even if a server asks for a longer one

_breakers: WeakKeyDictionary[Embedder, CircuitBreaker] = WeakKeyDictionary()
_making = threading.Lock()
metrics.BREAKERS_OPEN.read_from(
    lambda: {("embedding",): float(any(breaker.is_open() for breaker in list(_breakers.values())))}
)


def embed_question(model: Embedder, texts: Sequence[str], caller: str = "") -> Vectors:
    """Like `model.embed`, but within EMBEDDING_QUESTION_SECONDS; fails at once if the breaker is open.

    `caller` is the person whose texts these are. The texts may cause a failure, so `CircuitBreaker` limits
    how many failures of one caller count for others.
    """
    with _making:
        if model not in _breakers:
            _breakers[model] = new_breaker()
        breaker = _breakers[model]
    try:
        with breaker.request(caller):
            vectors = model.embed(texts, settings.EMBEDDING_QUESTION_SECONDS)
    except CircuitOpen:
        raise EmbeddingError(
            "The embedding service has failed and is not called again for a while.", temporary=True
        ) from None
    except EmbeddingError as error:
        breaker.record_failure(error.retry_after, caller)
        if error.retry_after:
            breaker.pause(error.retry_after)
        raise
    breaker.record_success()
    return vectors


def new_breaker() -> CircuitBreaker:
    return CircuitBreaker(failures=FAILURES, rest=REST_SECONDS, max_rest=MAX_REST_SECONDS)
