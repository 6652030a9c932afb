"""Telling the followers in other processes that a run has new events.

The channel layer carries only the news; the events are read from the journal. It may lose a message or
be away: followers look by themselves twice a second.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from uuid import UUID

from channels.layers import get_channel_layer
from django.conf import settings

logger = logging.getLogger(__name__)

PAUSE = 0.5  # seconds between two looks where no news comes


def _group(run_id: UUID) -> str:
    return f"run.{run_id}"


async def announce(run_ids: Sequence[UUID]) -> None:
    """Wake the followers elsewhere. Without Redis there is no elsewhere that could hear it."""
    if not settings.REDIS_URL:
        return
    layer = get_channel_layer()
    try:
        for run_id in run_ids:
            await layer.group_send(_group(run_id), {"type": "run.news"})
    except Exception as error:  # whatever the layer raises, the journal has the events
        logger.warning("The channel layer is away: %s", type(error).__name__)


class Wakeups:
    """The news of one run for one follower."""

    def __init__(self, channel: str | None) -> None:
        self._channel = channel

    async def wait(self) -> None:
        """Until news comes, or for half a second."""
        if self._channel is None:
            await asyncio.sleep(PAUSE)
            return
        try:
            async with asyncio.timeout(PAUSE):
                await get_channel_layer().receive(self._channel)
        except TimeoutError:
            return
        except Exception:
            self._channel = None
            await asyncio.sleep(PAUSE)


@asynccontextmanager
async def listening(run_id: UUID) -> AsyncIterator[Wakeups]:
    """Subscribe to a run's news for the length of the block."""
    if not settings.REDIS_URL:
        yield Wakeups(None)
        return
    layer = get_channel_layer()
    channel: str | None = None
    try:
        channel = await layer.new_channel()
        await layer.group_add(_group(run_id), channel)
    except Exception as error:
        logger.warning("The channel layer is away: %s", type(error).__name__)
        channel = None
    try:
        yield Wakeups(channel)
    finally:
        if channel is not None:
            try:
                await layer.group_discard(_group(run_id), channel)
            except Exception as error:
                logger.warning("The channel layer is away: %s", type(error).__name__)
