"""A web process's tasks for runs: notifications, housekeeping, shutdown."""

import asyncio
import logging

from chatsite.db.threads import in_database
from history import recording

from . import (
    finish,
    journal,
    notifications,
)
from .manager import run_manager

logger = logging.getLogger(__name__)

HOUSEKEEPING_SECONDS = 5


async def listening() -> None:
    """Receive the notifications of other processes until cancelled."""
    notifications.outbox()  # created here, so that database threads can publish
    await notifications.hub().listen(run_manager().stop)


async def shutdown(seconds: float = 0) -> None:
    """Let this process's runs continue for `seconds`, then end the rest as interrupted.

    Readers in this process that follow a run of another process are disconnected after the same time.
    """
    asyncio.get_running_loop().call_later(seconds, notifications.hub().shutdown)
    await run_manager().shutdown(seconds)
    await notifications.outbox().close()


async def housekeeping() -> None:
    """Close the runs of dead processes and purge old rows every few seconds, until cancelled."""
    while True:
        try:
            await in_database(finish.close_expired)
            await in_database(journal.purge)
            await in_database(recording.purge)
        except Exception:  # the next round must take place after any error
            logger.exception("Housekeeping failed")
        await asyncio.sleep(
            finish.SECOND_LOOK_SECONDS if finish.needs_second_look() else HOUSEKEEPING_SECONDS
        )
