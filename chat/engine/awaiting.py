"""Waits for documents that a question names and that have not been read yet."""

import asyncio
import time
from collections.abc import Callable

from chat.events import Event, Searching
from chatsite.db.retry import retry_until_available
from ingestion.search.scopes import count_unread

from .run import AcceptedRun

LOOK_SECONDS = 1.0
WAIT_SECONDS = 300.0  # after that the documents read so far are searched


async def documents_read(run: AcceptedRun, publish: Callable[[Event], object]) -> None:
    """Return when the caller's own documents named by the question have been read or have failed."""
    if not run.request.options.scope.startswith("document:") or run.request.continues:
        return
    deadline = time.monotonic() + WAIT_SECONDS
    told = 0
    while time.monotonic() < deadline:
        awaited = await retry_until_available(count_unread, run.principal, run.request.options.scope)
        if awaited != told:
            told = awaited
            publish(Searching(run.readable, awaited))
        if not awaited:
            return
        await asyncio.sleep(LOOK_SECONDS)
