"""A circuit breaker.

After several failures a server gets no requests for a while, then one as a probe.
"""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

# At most this many failures of one caller count for other callers. If all counted, somebody whose requests
# make the server fail could open the breaker for everyone.
OF_ANOTHER = 2


class CircuitOpen(Exception):
    """Nothing was sent: the breaker is open for another `seconds` (0 while a probe is running)."""

    def __init__(self, seconds: float) -> None:
        super().__init__("The server is not called for a while after failures.")
        self.seconds = seconds


class CircuitBreaker:
    """Counts the failures of one server in one process; thread-safe.

    After `failures` failures within `window` seconds, no request is sent for `rest` seconds, or for longer if
    the server asks for it, up to `max_rest`. Then one request at a time probes whether the server is back.

    All failures of a caller's requests count for that caller, but at most OF_ANOTHER of them count for any
    other caller. The breaker may therefore be open for one caller and closed for all others. Failures without
    a caller count for everyone.
    """

    def __init__(self, *, failures: int, rest: float, max_rest: float, window: float = float("inf")) -> None:
        self._limit = failures
        self._rest = rest
        self._max_rest = max_rest
        self._window = window
        self._lock = threading.Lock()
        self._failures: list[tuple[float, str]] = []  # time and caller of each failure
        self._open_until = 0.0
        self._paused_until = 0.0
        self._probing = False

    def is_open(self, caller: str = "") -> bool:
        """Whether there were too many failures for this caller (for everyone, if no caller is given).

        Still true when the next request may probe the server.
        """
        of_each = Counter(who for _, who in self._failures)
        counted = sum(
            number if who in ("", caller) else min(number, OF_ANOTHER) for who, number in of_each.items()
        )
        return counted >= self._limit

    def is_probing(self, caller: str = "") -> bool:
        """Whether a probe is running whose result decides about this caller's next request."""
        return self._probing and self.is_open(caller)

    @contextmanager
    def request(self, caller: str = "") -> Iterator[None]:
        """The context of one request, to keep open until its response begins. Raises CircuitOpen."""
        now = time.monotonic()
        with self._lock:
            is_probe = self.is_open(caller)
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
        """Record that the server works, even if it refused the request."""
        with self._lock:
            self._failures.clear()
            self._paused_until = 0.0

    def record_failure(self, retry_after: float | None = None, caller: str = "") -> None:
        """Record that the server failed or was unreachable.

        `retry_after` is the pause that the server asked for. `caller` made the request that failed.
        """
        now = time.monotonic()
        with self._lock:
            if not self.is_open(caller):
                self._failures = [each for each in self._failures if each[0] > now - self._window]
                self._failures.append((now, caller))
            self._open_until = now + min(max(self._rest, retry_after or 0.0), self._max_rest)

    def pause(self, seconds: float) -> None:
        """Send nothing for this long, because the server asked for it; `is_open` does not change."""
        with self._lock:
            self._paused_until = time.monotonic() + min(seconds, self._max_rest)
