"""Re-authorizes all open streams and sockets of this process together, once a second."""

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
from chatsite.db.retry import retry_until_available
from chatsite.event_loops import PerEventLoop

logger = logging.getLogger(__name__)

CHECK_SECONDS = 1.0
LATE_SECONDS = 1.8  # validity of a check's result; after that, sending waits for the next check


class AccessCheck:
    """The access of one reader, as last checked."""

    def __init__(self, principal: Principal, ended: Callable[[Exception], object]) -> None:
        self.principal = principal
        self._ended = ended
        self._checked = time.monotonic()
        self._end: Exception | None = None
        self._waiting: asyncio.Future[None] | None = None

    async def check(self) -> None:
        """Raise Refused if access was revoked, or the database error if it could not be checked."""
        if self._end is None and time.monotonic() - self._checked > LATE_SECONDS:
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting
        if self._end is not None:
            raise self._end

    def record(self, moment: float, end: Exception | None) -> None:
        """Record the result of a check that began at `moment`."""
        self._checked, self._end = moment, end
        if self._waiting and not self._waiting.done():
            self._waiting.set_result(None)
        if end is not None:
            self._ended(end)


class AccessRevalidator:
    """Checks all readers of one event loop in one task, which runs while there are any."""

    def __init__(self) -> None:
        self._readers: set[AccessCheck] = set()
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def watch(
        self, principal: Principal, ended: Callable[[Exception], object] = lambda _: None
    ) -> Iterator[AccessCheck]:
        """Watch a reader inside the block; `ended` is called with the reason when access ends."""
        reader = AccessCheck(principal, ended)
        self._readers.add(reader)
        if self._task is None or self._task.done():
            # Use an empty context, because the task outlives the request that starts it.
            loop = asyncio.get_running_loop()
            self._task = loop.create_task(self._ask(), context=contextvars.Context())
        try:
            yield reader
        finally:
            self._readers.discard(reader)

    async def _ask(self) -> None:
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            asked, moment = list(self._readers), time.monotonic()
            if not asked:
                return
            try:
                valid = await retry_until_available(valid_among, {reader.principal for reader in asked})
            except Exception as error:  # any error ends access: nobody reads on without a check
                logger.exception("The rights of readers could not be checked")
                for reader in asked:
                    reader.record(moment, error)
                continue
            for reader in asked:
                reader.record(moment, None if reader.principal in valid else Refused("answer_not_found"))


access_revalidator = PerEventLoop(AccessRevalidator)
