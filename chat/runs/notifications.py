"""How the web processes tell each other about runs: over PostgreSQL, or over Redis where there is one.

A message is a line of words: `news` or `stop`, and the ids of runs; where an answer begins or ends also that
of its conversation, for pages that wait there. It carries no event: those are read from the journal, which is
right also where a message is lost.

Nothing waits for a messenger. :func:`publish` hands a message to a task of its own and returns. NOTIFY has a
session of its own, because the commit of a transaction that notifies takes a lock of the whole server.
"""

import asyncio
import contextvars
import logging
import os
import socket
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing, contextmanager, suppress
from typing import Any, Literal
from uuid import UUID

import psycopg
from channels.layers import get_channel_layer
from django.conf import settings
from django.db import transaction

from chatsite.db.threads import libpq_parameters
from chatsite.event_loops import PerEventLoop

logger = logging.getLogger(__name__)

Kind = Literal["news", "stop"]

CHANNEL = "chatsite_runs"  # of PostgreSQL, and the group of the channel layer
MOST_IDS = 200  # of one message: PostgreSQL takes 8,000 bytes
MAX_PENDING = 2_000  # messages that wait to be sent; the oldest are dropped, and found in the journal
CHECK_SECONDS = 5.0  # between two looks whether the connection still lives
IDLE_SECONDS = 10.0  # after which the session for notifications ends
SEND_SECONDS = 1.0  # for one batch; a messenger that needs longer has lost it
LAST_SECONDS = 0.2  # for what is still to be sent when the process ends, and to take leave of Redis
NOTIFY = "SELECT pg_notify(%s, message) FROM unnest(%s::text[]) AS message"


def messages(kind: Kind, run_ids: Sequence[UUID]) -> list[str]:
    """What to say about these runs."""
    parts = [run_ids[start : start + MOST_IDS] for start in range(0, len(run_ids), MOST_IDS)]
    return [" ".join([kind, *map(str, part)]) for part in parts]


def understood(message: str) -> tuple[str, list[UUID]]:
    """The inverse of :func:`messages`. What another version of the site says may mean nothing here."""
    kind, *words = message.split()
    ids: list[UUID] = []
    for word in words:
        with suppress(ValueError):
            ids.append(UUID(word))
    return kind, ids


def in_the_database() -> bool:
    """Whether PostgreSQL carries the messages: always, but where there is Redis."""
    return not settings.REDIS_URL


class Outbox:
    """Messages of one event loop on their way to the other processes, sent by one task in batches.

    The task, and its session with PostgreSQL, end when there was nothing to send for a while.
    """

    def __init__(self) -> None:
        self._pending: dict[str, None] = {}  # in their order; the same message twice is one
        self._come = asyncio.Event()
        self._sent = asyncio.Event()
        self._sent.set()
        self._task: asyncio.Task[None] | None = None
        self._session: psycopg.AsyncConnection[Any] | None = None
        self._away = False

    def put(self, told: Iterable[str]) -> None:
        """Queue messages and return."""
        self._pending |= dict.fromkeys(told)
        while len(self._pending) > MAX_PENDING:
            del self._pending[next(iter(self._pending))]
        if self._pending:
            self._sent.clear()
            self._come.set()
            if self._task is None:
                self._task = asyncio.create_task(self._run(), name="outbox", context=contextvars.Context())

    async def close(self) -> None:
        """Send what is pending if that takes a moment only."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_SECONDS):
                await self._sent.wait()
        if self._task is not None:
            self._hang_up()
            self._task.cancel()

    async def _run(self) -> None:
        try:
            while await self._has_some():
                batch, self._pending = list(self._pending), {}
                await self._send(batch)
                if not self._pending:
                    self._sent.set()
        finally:
            self._task, session, self._session = None, self._session, None
            if session is not None:
                await session.close()

    async def _has_some(self) -> bool:
        self._come.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(IDLE_SECONDS):
                while not self._pending:
                    await self._come.wait()
        return bool(self._pending)

    async def _send(self, batch: list[str]) -> None:
        too_long = asyncio.get_running_loop().call_later(SEND_SECONDS, self._hang_up)
        try:
            if in_the_database():
                await self._notify(batch)
            else:
                await self._send_to_layer(batch)
        except Exception as error:  # whatever the messenger raises, the journal has the events
            if not self._away:
                logger.warning("Other processes cannot be notified: %s", type(error).__name__)
            self._away = True
        else:
            self._away = False
        finally:
            too_long.cancel()

    async def _notify(self, batch: list[str]) -> None:
        if self._session is None or self._session.closed:
            self._session = await psycopg.AsyncConnection.connect(**libpq_parameters(), autocommit=True)
        await self._session.execute(NOTIFY, [CHANNEL, batch])

    async def _send_to_layer(self, batch: list[str]) -> None:
        layer = get_channel_layer()
        async with asyncio.timeout(SEND_SECONDS):
            for message in batch:
                await layer.group_send(CHANNEL, {"type": "run.message", "text": message})

    def _hang_up(self) -> None:
        """End the session without asking the server, which may be frozen: cancelling would wait for it."""
        if self._session is not None and not self._session.closed:
            with socket.socket(fileno=os.dup(self._session.fileno())) as connection, suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


outbox = PerEventLoop(Outbox)


def publish(told: Iterable[str]) -> None:
    """Tell the other processes. Returns at once and never raises; called on the event loop."""
    outbox().put(told)


def publish_on_commit(told: list[str]) -> None:
    """The same from a database thread, as soon as its transaction is committed."""
    transaction.on_commit(lambda: _publish_from_thread(told))


def _publish_from_thread(told: list[str]) -> None:
    for loop, box in outbox.items():
        with suppress(RuntimeError):  # that loop is closed
            loop.call_soon_threadsafe(box.put, told)


async def heard() -> AsyncGenerator[str, None]:
    """What the others say; an empty message first, as soon as nothing is missed any more.

    Raises whatever the carrier raises when it is away. Iterate under `aclosing`.
    """
    async for message in _from_database() if in_the_database() else _from_layer():
        yield message


async def _from_database() -> AsyncGenerator[str, None]:
    """On a connection of its own: one for each web process."""
    async with await psycopg.AsyncConnection.connect(**libpq_parameters(), autocommit=True) as listener:
        await listener.execute(f"LISTEN {CHANNEL}")
        yield ""
        while True:
            async for notice in listener.notifies(timeout=CHECK_SECONDS):
                yield notice.payload
            async with asyncio.timeout(CHECK_SECONDS):
                await listener.execute("SELECT 1")


async def _from_layer() -> AsyncGenerator[str, None]:
    layer = get_channel_layer()
    channel = await layer.new_channel()
    try:
        while True:
            # Said again and again: a Redis that was flushed or started anew knows nobody.
            async with asyncio.timeout(SEND_SECONDS):
                await layer.group_add(CHANNEL, channel)
            yield ""
            with suppress(TimeoutError):
                async with asyncio.timeout(CHECK_SECONDS):
                    while True:
                        yield (await layer.receive(channel))["text"]
    finally:
        with suppress(Exception):
            async with asyncio.timeout(LAST_SECONDS):
                await layer.group_discard(CHANNEL, channel)


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
                async with aclosing(heard()) as messages:
                    async for message in messages:
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
        kind, run_ids = understood(message)
        if kind == "news":
            self._wake(run_ids)
        elif kind == "stop":
            for run_id in run_ids:
                stop(run_id)

    def _wake(self, run_ids: list[UUID]) -> None:
        for run_id in run_ids:
            for wakeup in self._waiting.get(run_id, ()):
                wakeup.came.set()


hub = PerEventLoop(Hub)
