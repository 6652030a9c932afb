"""Sparing a server that is down: after some failures in a row it is left alone, then asked once to see.

One circuit for each server and model, in each process. It counts what says that the server cannot be reached
or is out of order; a server that refuses, or is slow, is at work.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from .base import ModelError

FAILURES = 5  # in a row
WINDOW_SECONDS = 30.0  # in which they must fall
LONGEST_REST = 60.0  # seconds, whatever the server asks for


class CircuitOpen(ModelError):
    """The server is left alone just now: nothing was asked, and asking again at once makes no sense."""

    def __init__(self, seconds: float) -> None:
        super().__init__("upstream_unavailable", max(1.0, seconds), detail="left alone after failures")


class Circuit:
    """`rest` is for how long the server is left alone, in seconds, where it does not say itself."""

    def __init__(self, rest: float) -> None:
        self._rest = rest
        self._failures: list[float] = []
        self._closed_until = 0.0
        self._probing = False

    @property
    def down(self) -> bool:
        """Whether the server was out of order when it was asked last."""
        return len(self._failures) >= FAILURES

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Around each question, up to the head of the answer.

        Raises ModelError at once while the server is left alone; afterwards one question finds out whether it
        is back, and until that is known all others are refused.
        """
        probe = self.down
        if probe and (self._probing or time.monotonic() < self._closed_until):
            raise CircuitOpen(self._closed_until - time.monotonic())
        self._probing = self._probing or probe
        try:
            yield
        finally:
            if probe:
                self._probing = False

    def answered(self) -> None:
        """The server is at work, whatever it said."""
        self._failures.clear()

    def failed(self, retry_after: float | None) -> None:
        """It could not be reached, or is out of order; `retry_after` is what it asked for itself."""
        now = time.monotonic()
        if not self.down:
            self._failures = [moment for moment in self._failures if moment > now - WINDOW_SECONDS]
            self._failures.append(now)
        self._closed_until = now + min(max(self._rest, retry_after or 0.0), LONGEST_REST)
