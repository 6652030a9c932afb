"""What the web process does besides answering: housekeeping while it lives, and an orderly end."""

import asyncio
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
    """The ASGI lifespan protocol. At the end, answers still being written are kept as interrupted."""
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
            for task in housekeeping:
                task.cancel()
            await runs.shutdown()
            await send({"type": "lifespan.shutdown.complete"})
            return
