"""A thread that detects a blocked event loop and logs its stack.

On Linux, time in which threads of the process waited for a CPU does not count, so a busy machine causes no
warning. Time in which the whole process was stopped does not count either.
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
FRAMES = 12  # innermost frames in the log
TASKS = Path("/proc/self/task")  # on Linux: the threads of this process


@contextmanager
def watched(seconds: float) -> Iterator[None]:
    """Log the stack whenever the running loop is blocked for longer than `seconds`; 0 disables this."""
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
    """Watches an event loop from a thread of its own. Create it in the thread of the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        self._loop = loop
        self._seconds = seconds
        self._interval = seconds / 4
        self._thread = threading.get_ident()
        self._rounds = 0
        # Nanoseconds that each thread, including ended ones, waited for a CPU.
        self._waited: dict[str, int] = {}
        self._over = threading.Event()

    def start(self) -> None:
        self._tick()
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    def stop(self) -> None:
        self._over.set()
        self._next.cancel()

    def _tick(self) -> None:
        self._rounds += 1
        self._next = self._loop.call_later(self._interval, self._tick)

    def _watch(self) -> None:
        seen, reported = 0, 0
        since = before = self._now()
        worked = time.process_time()
        while not self._over.wait(self._interval):
            now = self._now()
            # If this thread is delayed and no CPU time was used, the process was stopped. A call that holds
            # the interpreter's lock also delays this thread, but uses CPU time.
            delay = now - before - self._interval
            cpu_time = time.process_time() - worked - self._interval
            since += max(0.0, delay - max(0.0, cpu_time))
            before, worked = now, time.process_time()
            if self._rounds != seen:
                seen, since = self._rounds, now
            elif now - since > self._seconds and reported != seen:
                reported = seen
                logger.warning(BLOCKED, now - since, self._stack())

    def _now(self) -> float:
        """Monotonic seconds, minus the time during which threads of the process waited for a CPU.

        Every thread but this one counts, because a waiting thread may hold the interpreter's lock.
        """
        now = time.monotonic()  # taken first, so that reading the files does not count
        own = str(threading.get_native_id())
        for file in TASKS.glob("*/schedstat"):
            if file.parent.name == own:
                continue
            try:
                self._waited[file.parent.name] = int(file.read_bytes().split()[1])
            except (OSError, LookupError, ValueError):
                continue
        return now - sum(self._waited.values()) / 1e9

    def _stack(self) -> str:
        frame = sys._current_frames().get(self._thread)
        return "".join(traceback.format_stack(frame)[-FRAMES:]) if frame else ""
