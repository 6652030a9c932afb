"""How the web processes tell each other about runs: over PostgreSQL, or over Redis where there is one.

A message is a line of words: `news` or `stop`, and the ids of runs; where an answer begins or ends also that
of its conversation, for pages that wait there. It carries no event: those are read from the journal, which is
right also where a message is lost.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import suppress
from typing import Literal
from uuid import UUID

import psycopg
from channels.layers import get_channel_layer
from django.conf import settings
from django.db import connection

from chatsite.database import libpq_parameters

logger = logging.getLogger(__name__)

Kind = Literal["news", "stop"]

CHANNEL = "chatsite_runs"  # of PostgreSQL, and the group of the channel layer
MOST_IDS = 200  # of one message: PostgreSQL takes 8,000 bytes
CHECK_SECONDS = 5.0  # between two looks whether the connection still lives
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


def notify(told: Iterable[str]) -> None:
    """Tell the others once the transaction of this thread is committed. Where Redis carries, nothing."""
    if in_the_database():
        with connection.cursor() as cursor:
            cursor.execute(NOTIFY, [CHANNEL, list(told)])


async def publish(told: Iterable[str]) -> None:
    """Tell the others over Redis; where PostgreSQL carries, nothing. Never raises."""
    if in_the_database():
        return
    layer = get_channel_layer()
    try:
        for message in told:
            await layer.group_send(CHANNEL, {"type": "run.message", "text": message})
    except Exception as error:  # whatever the layer raises, the journal has the events
        logger.warning("The channel layer is away: %s", type(error).__name__)


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
            await layer.group_add(CHANNEL, channel)
            yield ""
            with suppress(TimeoutError):
                async with asyncio.timeout(CHECK_SECONDS):
                    while True:
                        yield (await layer.receive(channel))["text"]
    finally:
        with suppress(Exception):
            await layer.group_discard(CHANNEL, channel)
