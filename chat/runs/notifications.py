"""Notifications about runs between web processes.

They are sent over PostgreSQL, or over Redis if configured. A message is a line of words: `news` or `stop`,
followed by ids of runs. When a run begins or ends, the message also has the id of its conversation, for pages
that wait for a new question. Messages contain no events: followers read these from the journal, so that a
lost message only causes a delay. Nothing waits for delivery: :func:`publish` passes a message to a task and
returns. NOTIFY is sent on a separate connection, because a transaction with a notification takes a
server-wide lock when it commits.
"""

import asyncio
import contextvars
import logging
import os
import socket
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing, contextmanager, suppress
from typing import Any, Literal, TypeVar
from uuid import UUID

import psycopg
from channels.layers import get_channel_layer
from django.conf import settings
from django.db import transaction
from psycopg.abc import PQGen

from chatsite.db.threads import libpq_parameters
from chatsite.event_loops import PerEventLoop

logger = logging.getLogger(__name__)

Kind = Literal["news", "stop"]
T = TypeVar("T")

CHANNEL = "chatsite_runs"  # name of PostgreSQL's channel, and of the channel layer's group
MAX_IDS = 200  # ids in one message; PostgreSQL accepts messages of up to 8,000 bytes
MAX_PENDING = 2_000  # messages waiting to be sent; the oldest are dropped
CHECK_SECONDS = 5.0  # pause between checks that the connection is alive
IDLE_SECONDS = 10.0  # time without messages after which the sender's connection is closed
PAUSE_SECONDS = 0.1  # pause after a batch, during which messages gather for the next one
SEND_SECONDS = 1.0  # time limit for subscribing to Redis, and for sending a batch; a later batch is lost
LAST_SECONDS = 0.2  # time limit at the end of the process, for pending messages and for unsubscribing
NOTIFY = "SELECT pg_notify(%s, message) FROM unnest(%s::text[]) AS message"


def messages(kind: Kind, run_ids: Sequence[UUID]) -> list[str]:
    """Messages with these ids of runs (or of conversations), of bounded length."""
    return _lines(kind, [*map(str, run_ids)])


def merged(batch: Iterable[str]) -> list[str]:
    """Merge messages of the same kind: sending one takes as much time as storing a run's new events."""
    by_kind: dict[str, dict[str, None]] = {}
    for message in batch:
        kind, *words = message.split()
        by_kind.setdefault(kind, {}).update(dict.fromkeys(words))
    return [message for kind, words in by_kind.items() for message in _lines(kind, list(words))]


def _lines(kind: str, words: Sequence[str]) -> list[str]:
    parts = [words[start : start + MAX_IDS] for start in range(0, len(words), MAX_IDS)]
    return [" ".join([kind, *part]) for part in parts]


def decode(message: str) -> tuple[str, list[UUID]]:
    """The kind and ids of a message; ignores parts that only another version of the software knows."""
    kind, *words = message.split()
    ids: list[UUID] = []
    for word in words:
        with suppress(ValueError):
            ids.append(UUID(word))
    return kind, ids


def in_the_database() -> bool:
    """Whether messages are sent through PostgreSQL, because no Redis is configured."""
    return not settings.REDIS_URL


class Outbox:
    """Sends the messages of one event loop in batches, in one task.

    The task and its PostgreSQL session end after a while without messages.
    """

    def __init__(self) -> None:
        self._pending: dict[str, None] = {}  # an ordered set
        self._come = asyncio.Event()
        self._sent = asyncio.Event()
        self._sent.set()
        self._task: asyncio.Task[None] | None = None
        self._session: psycopg.AsyncConnection[Any] | None = None
        self._away = False

    def put(self, messages: Iterable[str]) -> None:
        """Queue messages and return."""
        self._pending |= dict.fromkeys(messages)
        while len(self._pending) > MAX_PENDING:
            del self._pending[next(iter(self._pending))]
        if self._pending:
            self._sent.clear()
            self._come.set()
            if self._task is None:
                self._task = asyncio.create_task(self._run(), name="outbox", context=contextvars.Context())

    async def close(self) -> None:
        """Send the pending messages if that takes at most LAST_SECONDS, and end the task."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_SECONDS):
                await self._sent.wait()
        if self._task is not None:
            self._hang_up()
            self._task.cancel()

    async def _run(self) -> None:
        try:
            while await self._has_some():
                batch, self._pending = merged(self._pending), {}
                await self._send(batch)
                if not self._pending:
                    self._sent.set()
                await asyncio.sleep(PAUSE_SECONDS)
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
        except Exception as error:  # ignore any error, because the journal has the events
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
        """Drop the session without contacting the server, which may hang."""
        if self._session is not None and not self._session.closed:
            with socket.socket(fileno=os.dup(self._session.fileno())) as connection, suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


outbox = PerEventLoop(Outbox)


def publish(messages: Iterable[str]) -> None:
    """Notify the other processes. Returns at once and never raises; called on the event loop."""
    outbox().put(messages)


def publish_on_commit(messages: list[str]) -> None:
    """Publish messages when the current transaction commits. Called in a database thread."""

    def publish_from_thread() -> None:
        for loop, box in outbox.items():
            with suppress(RuntimeError):  # raised if the event loop is closed
                loop.call_soon_threadsafe(box.put, messages)

    transaction.on_commit(publish_from_thread)


class Listener(psycopg.AsyncConnection[Any]):
    """A connection that, without data from the server, wakes only every CHECK_SECONDS.

    psycopg's own connection wakes ten times a second to check for Ctrl-C.
    """

    async def wait(self, gen: PQGen[T], **limits: Any) -> T:  # type: ignore[override]  # always named
        return await super().wait(gen, **{"interval": CHECK_SECONDS, **limits})


def subscribe() -> AsyncGenerator[str, None]:
    """Yield the messages of all web processes, and an empty one whenever the subscription is confirmed.

    Raises the errors of PostgreSQL or Redis. Iterate under `aclosing`.
    """
    return _from_database() if in_the_database() else _from_layer()


async def _from_database() -> AsyncGenerator[str, None]:
    """Yield PostgreSQL's messages, on a separate connection for each web process."""
    async with await Listener.connect(**libpq_parameters(), autocommit=True) as listener:
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
            # Repeat the subscription regularly, because Redis loses its groups when it is flushed or
            # restarted.
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


PAUSE = 0.5  # seconds between two polls without a subscription
MAX_PAUSE = 1.0  # seconds between two polls with a subscription, because a message may be lost
AGAIN_SECONDS = 1.0  # pause between attempts to subscribe


class Wakeup:
    """Wakes one follower of a run or a conversation."""

    def __init__(self, hub: "NotificationHub") -> None:
        self._hub = hub
        self.came = asyncio.Event()

    async def wait(self) -> None:
        """Wait for the next notification, but not longer than a polling interval, because it may be lost."""
        try:
            async with asyncio.timeout(MAX_PAUSE if self._hub.listening else PAUSE):
                await self.came.wait()
        except TimeoutError:
            return
        self.came.clear()

    async def comes(self) -> None:
        """Wait for the next notification without a time limit."""
        await self.came.wait()
        self.came.clear()


class NotificationHub:
    """The followers of one event loop that wait for notifications."""

    def __init__(self) -> None:
        self.listening = False
        self.closing = False  # whether the process is ending, so that nobody should wait for other processes
        self._waiting: dict[UUID, set[Wakeup]] = {}

    @contextmanager
    def waiting(self, awaited: UUID) -> Iterator[Wakeup]:
        """Receive the notifications of a run or a conversation inside the block."""
        wakeup = Wakeup(self)
        self._waiting.setdefault(awaited, set()).add(wakeup)
        try:
            yield wakeup
        finally:
            self._waiting[awaited].discard(wakeup)
            if not self._waiting[awaited]:
                del self._waiting[awaited]

    def shutdown(self) -> None:
        """Wake all followers, because the process is ending."""
        self.closing = True
        self._wake(list(self._waiting))

    async def listen(self, stop: Callable[[UUID], None]) -> None:
        """Receive messages until cancelled, and call `stop` for each run that they ask to stop."""
        while True:
            try:
                async with aclosing(subscribe()) as messages:
                    async for message in messages:
                        self._take(message, stop)
            except Exception as error:  # after any error, followers poll the database instead
                if self.listening:
                    logger.warning(
                        "Notifications of other processes cannot be received: %s", type(error).__name__
                    )
            self.listening = False
            await asyncio.sleep(AGAIN_SECONDS)

    def _take(self, message: str, stop: Callable[[UUID], None]) -> None:
        if not message:
            self.listening = True
            self._wake(list(self._waiting))
            return
        kind, run_ids = decode(message)
        if kind == "news":
            self._wake(run_ids)
        elif kind == "stop":
            for run_id in run_ids:
                stop(run_id)

    def _wake(self, run_ids: list[UUID]) -> None:
        for run_id in run_ids:
            for wakeup in self._waiting.get(run_id, ()):
                wakeup.came.set()


hub = PerEventLoop(NotificationHub)
