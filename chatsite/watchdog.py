"""Finding what blocks the event loop: a thread looks whether it still comes round, and says what it does.

Waiting for a processor does not count, so a busy machine is no block: on Linux that time is known.
"""

import asyncio
import logging
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

logger = logging.getLogger(__name__)

BLOCKED = "The event loop was blocked for %.2f s at:\n%s"
FRAMES = 12  # innermost ones that are told


@contextmanager
def watched(seconds: float) -> Iterator[None]:
    """Log a warning with the stack when the running loop does one thing for longer. 0 watches nothing."""
    if not seconds:
        yield
        return
    watchdog = Watchdog(asyncio.get_running_loop(), seconds)
    watchdog.start()
    try:
        yield
    finally:
        watchdog.stop()


class Watchdog:
    """Made on the loop's own thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        self._loop = loop
        self._seconds = seconds
        self._interval = seconds / 4
        self._thread = threading.get_ident()
        self._waits = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat")
        self._over = threading.Event()
        self._beat = self._now()

    def start(self) -> None:
        self._came_round()
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    def stop(self) -> None:
        self._over.set()
        self._next.cancel()

    def _came_round(self) -> None:
        self._beat = self._now()
        self._next = self._loop.call_later(self._interval, self._came_round)

    def _watch(self) -> None:
        told = 0.0
        while not self._over.wait(self._interval):
            beat = self._beat
            late = self._now() - beat - self._interval
            if late > self._seconds and beat != told:
                told = beat
                logger.warning(BLOCKED, late, self._stack())

    def _now(self) -> float:
        """Seconds, without those in which the loop's thread waited for a processor."""
        return time.monotonic() - self._waited()

    def _waited(self) -> float:
        try:
            return int(self._waits.read_bytes().split()[1]) / 1e9
        except (OSError, LookupError, ValueError):
            return 0.0

    def _stack(self) -> str:
        frame = sys._current_frames().get(self._thread)
        return "".join(traceback.format_stack(frame)[-FRAMES:]) if frame else ""
