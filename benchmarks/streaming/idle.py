"""The memory of an idle site and of idle sockets."""

import asyncio
import time

from websockets.asyncio.client import connect

from .processes import megabytes, own_kilobytes
from .world import World

SETTLE_SECONDS = 5.0
WAITING = '{"type": "wait", "first": 1000000}'  # waits for a question asked elsewhere, as an open page does


def memory(world: World) -> tuple[float, float]:
    """Megabytes of the web process, and of all processes together.

    These are the web process, the worker, its process for reading files, and PostgreSQL.
    """
    time.sleep(SETTLE_SECONDS)
    workers = world.site.children("chatsite.server.worker")
    worker = [each.pid for one in workers for each in (one, *one.children(recursive=True))]
    postgres = world.site.postgres()
    database = [postgres.pid, *(child.pid for child in postgres.children(recursive=True))]
    return megabytes([world.web]), megabytes([world.web, *worker, *database])


async def sockets(world: World, number: int) -> float:
    """Kilobytes of the web process for each open page, with `number` of them open."""
    session = world.site.sign_in("employee")
    conversation = world.conversation("employee")
    address = f"{world.site.url.replace('http', 'ws')}/ws/c/{conversation}/"
    headers = {"Cookie": session.headers()["Cookie"], "Origin": world.site.url}

    async def opened() -> object:
        page = await connect(address, additional_headers=headers, open_timeout=60)
        await page.send(WAITING)
        return page

    warm = [await opened() for _ in range(20)]
    await asyncio.sleep(SETTLE_SECONDS)
    before = own_kilobytes(world.web)
    pages = [
        page for _ in range(number // 20) for page in await asyncio.gather(*(opened() for _ in range(20)))
    ]
    await asyncio.sleep(SETTLE_SECONDS)
    spent = own_kilobytes(world.web) - before
    for page in [*warm, *pages]:
        await page.close()  # type: ignore[attr-defined]
    return spent / len(pages)
