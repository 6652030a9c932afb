"""What the web process does besides answering: housekeeping while it lives, and an orderly end."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from chat import runs

Message = MutableMapping[str, Any]


async def lifespan(
    scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
) -> None:
    """The ASGI lifespan protocol. At the end, answers still being written are kept as interrupted."""
    housekeeping: asyncio.Task[None] | None = None
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            housekeeping = asyncio.create_task(runs.housekeeping())
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            if housekeeping:
                housekeeping.cancel()
            await runs.shutdown()
            await send({"type": "lifespan.shutdown.complete"})
            return
