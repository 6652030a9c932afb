"""Whether those who read at length, or wait, still may: asked once a second for all of this process."""

import asyncio
import contextvars
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from chat.errors import Refused
from chatsite.accounts.principal import (
    Principal,
    valid_among,
)
from chatsite.db.retry import patiently
from chatsite.event_loops import PerEventLoop

logger = logging.getLogger(__name__)

CHECK_SECONDS = 1.0
LATE_SECONDS = 1.8  # without an answer, after which a reader is told nothing more until there is one


class Guard:
    """One reader's."""

    def __init__(self, principal: Principal, ended: Callable[[Exception], object]) -> None:
        self.principal = principal
        self._ended = ended
        self._checked = time.monotonic()
        self._end: Exception | None = None
        self._waiting: asyncio.Future[None] | None = None

    async def check(self) -> None:
        """Raises Refused for who may not be here any more, or what the database raises that stays away."""
        if self._end is None and time.monotonic() - self._checked > LATE_SECONDS:
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting
        if self._end is not None:
            raise self._end

    def learn(self, moment: float, end: Exception | None) -> None:
        """What was found when it was asked at that moment."""
        self._checked, self._end = moment, end
        if self._waiting and not self._waiting.done():
            self._waiting.set_result(None)
        if end is not None:
            self._ended(end)


class Guards:
    """Those of one event loop. One task asks for all of them, as long as there are any."""

    def __init__(self) -> None:
        self._guards: set[Guard] = set()
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def guarding(
        self, principal: Principal, ended: Callable[[Exception], object] = lambda _: None
    ) -> Iterator[Guard]:
        """For the length of the block; `ended` is called where the reader may not go on, with the reason."""
        guard = Guard(principal, ended)
        self._guards.add(guard)
        if self._task is None or self._task.done():
            # An empty context: it lives longer than the request that it begins with.
            loop = asyncio.get_running_loop()
            self._task = loop.create_task(self._ask(), context=contextvars.Context())
        try:
            yield guard
        finally:
            self._guards.discard(guard)

    async def _ask(self) -> None:
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            asked, moment = list(self._guards), time.monotonic()
            if not asked:
                return
            try:
                valid = await patiently(valid_among, {guard.principal for guard in asked})
            except Exception as error:  # whatever it is, nobody reads on whose right is not known
                logger.exception("The rights of readers could not be checked")
                for guard in asked:
                    guard.learn(moment, error)
                continue
            for guard in asked:
                guard.learn(moment, None if guard.principal in valid else Refused("answer_not_found"))


guards = PerEventLoop(Guards)
