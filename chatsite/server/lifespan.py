"""The tasks of a web process besides requests: housekeeping, and an orderly shutdown."""

import asyncio

from django.conf import settings

from chat import runs, site_texts
from chat.limits import connection_limiter
from chatsite import traces
from chatsite.accounts import guests
from chatsite.event_loops import close_all
from chatsite.http.asgi_types import Receive, Scope, Send

from . import metrics_page
from .watchdog import watched


async def lifespan(scope: Scope, receive: Receive, send: Send) -> None:
    """The ASGI lifespan protocol.

    Puts a function `end` into the lifespan state; the server calls `end` before it shuts down. `end` gives
    running answers some seconds, then stores unfinished ones as interrupted and reports this to their
    readers.
    """

    async def end(seconds: float) -> None:
        connection_limiter.shutdown()
        await runs.shutdown(seconds)

    with watched(settings.LOOP_WATCHDOG_SECONDS):
        housekeeping: list[asyncio.Task[None]] = []
        recorder = metrics_page.start("web")
        traces.start("web")
        scope.get("state", {})["end"] = end
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                housekeeping = [
                    asyncio.create_task(runs.housekeeping()),
                    asyncio.create_task(runs.listening()),
                    asyncio.create_task(guests.housekeeping()),
                    asyncio.create_task(site_texts.follow()),
                ]
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await runs.shutdown()
                await close_all()
                for task in housekeeping:
                    task.cancel()
                if recorder:
                    recorder.stop()
                traces.stop()
                await send({"type": "lifespan.shutdown.complete"})
                return
