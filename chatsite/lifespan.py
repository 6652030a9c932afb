"""What the web process does besides answering: housekeeping while it lives, and an orderly end."""

import asyncio
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from django.conf import settings

from chat import runs
from chatsite.accounts import guests
from chatsite.watchdog import watched

Message = MutableMapping[str, Any]


async def lifespan(
    scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
) -> None:
    """The ASGI lifespan protocol.

    At the end its state has `ends_by` (of the monotonic clock), until which answers may still be written;
    those that are not whole then are kept as interrupted.
    """
    with watched(settings.LOOP_WATCHDOG_SECONDS):
        await _live(scope, receive, send)


async def _live(
    scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
) -> None:
    housekeeping: list[asyncio.Task[None]] = []
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            housekeeping = [
                asyncio.create_task(runs.housekeeping()),
                asyncio.create_task(runs.listening()),
                asyncio.create_task(guests.housekeeping()),
            ]
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            ends_by = scope.get("state", {}).get("ends_by", 0.0)
            await runs.shutdown(ends_by - time.monotonic())
            for task in housekeeping:
                task.cancel()
            await send({"type": "lifespan.shutdown.complete"})
            return
