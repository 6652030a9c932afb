"""Waking the followers of runs that other processes write, and stopping those that are written here.

Who waits for a conversation hears when an answer in it begins or ends, in whichever process.

One task of each web process listens. While it cannot, followers look twice a second, and a stop is heard
with the next flush.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager
from uuid import UUID
from weakref import WeakKeyDictionary

from . import carriers

logger = logging.getLogger(__name__)

PAUSE = 0.5  # seconds between two looks where nothing is heard
LONGEST_PAUSE = 1.0  # where news comes by itself: a message may be lost on its way
AGAIN_SECONDS = 1.0  # between two tries to listen


class Wakeup:
    """The news of one run, or of one conversation, for one follower."""

    def __init__(self, hub: "Hub") -> None:
        self._hub = hub
        self.came = asyncio.Event()

    async def wait(self) -> None:
        """Until news comes, or for so long that a lost message does not show."""
        try:
            async with asyncio.timeout(LONGEST_PAUSE if self._hub.listening else PAUSE):
                await self.came.wait()
        except TimeoutError:
            return
        self.came.clear()

    async def comes(self) -> None:
        """Until news comes, however long that takes."""
        await self.came.wait()
        self.came.clear()


class Hub:
    """Those who wait for news on one event loop."""

    def __init__(self) -> None:
        self.listening = False
        self.left = False  # this process ends: nobody is to wait for other processes any more
        self._waiting: dict[UUID, set[Wakeup]] = {}

    @contextmanager
    def waiting(self, awaited: UUID) -> Iterator[Wakeup]:
        """Hear of one run, or of one conversation, for the length of the block."""
        wakeup = Wakeup(self)
        self._waiting.setdefault(awaited, set()).add(wakeup)
        try:
            yield wakeup
        finally:
            self._waiting[awaited].discard(wakeup)
            if not self._waiting[awaited]:
                del self._waiting[awaited]

    def leave(self) -> None:
        """Nobody waits any longer."""
        self.left = True
        self._wake(list(self._waiting))

    async def listen(self, stop: Callable[[UUID], None]) -> None:
        """Until cancelled; `stop` is called with each run that is to end."""
        while True:
            try:
                async with aclosing(carriers.heard()) as heard:
                    async for message in heard:
                        self._take(message, stop)
            except Exception as error:  # whatever the carrier raises, the database is asked instead
                if self.listening:
                    logger.warning("News of other processes is not heard: %s", type(error).__name__)
            self.listening = False
            await asyncio.sleep(AGAIN_SECONDS)

    def _take(self, message: str, stop: Callable[[UUID], None]) -> None:
        if not message:
            self.listening = True
            self._wake(list(self._waiting))
            return
        kind, run_ids = carriers.understood(message)
        if kind == "news":
            self._wake(run_ids)
        elif kind == "stop":
            for run_id in run_ids:
                stop(run_id)

    def _wake(self, run_ids: list[UUID]) -> None:
        for run_id in run_ids:
            for wakeup in self._waiting.get(run_id, ()):
                wakeup.came.set()


_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = WeakKeyDictionary()


def hub() -> Hub:
    """That of the running loop."""
    return _by_loop.setdefault(asyncio.get_running_loop(), Hub())
