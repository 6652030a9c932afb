"""What a web process does for answers as long as it lives, and at its end."""

import asyncio
import logging

from chatsite.db.threads import in_database
from history import recording

from . import (
    finish,
    journal,
    notifications,
)
from .manager import generations

logger = logging.getLogger(__name__)

HOUSEKEEPING_SECONDS = 5


async def listening() -> None:
    """Hear what other processes say about runs, until cancelled."""
    notifications.outbox()  # there from now on, for database threads that have something to tell
    await notifications.hub().listen(generations().stop)


async def shutdown(seconds: float = 0) -> None:
    """Let this process's answers be written for so long; what is left then ends as interrupted.

    Who reads answers of other processes here is not told more after the same time.
    """
    asyncio.get_running_loop().call_later(seconds, notifications.hub().leave)
    await generations().shutdown(seconds)
    await notifications.outbox().close()


async def housekeeping() -> None:
    """Close what dead processes left and drop old journals, every few seconds, until cancelled."""
    while True:
        try:
            await in_database(finish.close_expired)
            await in_database(journal.purge)
            await in_database(recording.purge)
        except Exception:  # whatever it is, the next round is to come
            logger.exception("Housekeeping failed")
        await asyncio.sleep(finish.SECOND_LOOK_SECONDS if finish.look_again() else HOUSEKEEPING_SECONDS)
