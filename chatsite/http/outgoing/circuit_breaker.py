"""A circuit breaker.

After several failures a server gets no requests for a while, then one as a probe.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class CircuitOpen(Exception):
    """The breaker is open for another `seconds`: nothing was sent."""

    def __init__(self, seconds: float) -> None:
        super().__init__("The server is left alone after failures.")
        self.seconds = seconds


class CircuitBreaker:
    """Counts the failures of one server in one process; thread-safe.

    After `failures` failures within `window` seconds, no request is sent for `rest` seconds, or for longer if
    the server asks for it, up to `max_rest`. Then one request at a time probes whether the server is back.
    """

    def __init__(self, *, failures: int, rest: float, max_rest: float, window: float = float("inf")) -> None:
        self._limit = failures
        self._rest = rest
        self._max_rest = max_rest
        self._window = window
        self._lock = threading.Lock()
        self._failures: list[float] = []
        self._open_until = 0.0
        self._paused_until = 0.0
        self._probing = False

    @property
    def is_open(self) -> bool:
        """Whether there were too many failures.

        Still true when the next request may probe the server.
        """
        return len(self._failures) >= self._limit

    @property
    def is_probing(self) -> bool:
        """Whether a probe is under way."""
        return self._probing

    @contextmanager
    def request(self) -> Iterator[None]:
        """A context for each request, until the head of its response arrives. Raises CircuitOpen."""
        now = time.monotonic()
        with self._lock:
            is_probe = self.is_open
            wait = self._paused_until - now
            if is_probe:
                wait = max(wait, self._open_until - now)
            if wait > 0 or (is_probe and self._probing):
                raise CircuitOpen(max(0.0, wait))
            self._probing = self._probing or is_probe
        try:
            yield
        finally:
            if is_probe:
                self._probing = False

    def record_success(self) -> None:
        """Record that the server responded, whatever the status of the response is."""
        with self._lock:
            self._failures.clear()
            self._paused_until = 0.0

    def record_failure(self, retry_after: float | None = None) -> None:
        """Record that the server failed or was unreachable.

        `retry_after` is the pause that it asked for.
        """
        now = time.monotonic()
        with self._lock:
            if not self.is_open:
                self._failures = [moment for moment in self._failures if moment > now - self._window]
                self._failures.append(now)
            self._open_until = now + min(max(self._rest, retry_after or 0.0), self._max_rest)

    def pause(self, seconds: float) -> None:
        """Send nothing for this long, because the server asked; `is_open` does not change."""
        with self._lock:
            self._paused_until = time.monotonic() + min(seconds, self._max_rest)
