"""A limit on concurrent requests of one address, until their responses start; the others queue.

Without it, a thousand requests sent at once all start at once, and everybody else waits behind them.
"""

import asyncio
import functools
import time
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from contextvars import ContextVar
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any

from django.conf import settings

from . import error_pages

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Key = tuple[str, bool]

HEALTH_PATHS = frozenset({"/healthz", "/readyz"})
# A request that takes longer waits for a body, an answer or the database, and costs others little.
SLOT_SECONDS = 2.0
WAIT_SECONDS = 10.0  # for a slot; then 503
RETRY_SECONDS = 5
WAITED_KEY = "chatsite.waited"  # key in the ASGI scope: for how many seconds the request waited for a slot
IPV6_PREFIX = 64  # the network that one subscriber usually has


_release_slot: ContextVar[Callable[[], object] | None] = ContextVar("release_slot", default=None)


def release_slot() -> None:
    """Give up the request's slot early, because it is only waiting. Callable from any thread."""
    if release := _release_slot.get():
        release()


class _Queue:
    """The requests of one address: how many have a slot, and those that wait for one."""

    __slots__ = ("running", "waiting")

    def __init__(self) -> None:
        self.running = 0
        self.waiting: deque[asyncio.Future[None]] = deque()


def subscriber(client: str) -> str:
    """The address; for IPv6 the network in which one caller has very many addresses. Other text unchanged."""
    try:
        address = ip_address(client.partition("%")[0])
    except ValueError:
        return client
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is None:
            return str(ip_network((address, IPV6_PREFIX), strict=False))
        address = address.ipv4_mapped
    return str(address)


class AddressLimit:
    """Middleware that gives each address ADDRESS_CONCURRENT_REQUESTS slots; 0 is no limit.

    A request holds its slot until its response starts, at most SLOT_SECONDS, so open streams and long answers
    do not count, nor do sockets that are accepted; a request that only waits may release it earlier
    (`release_slot`). The wait for a slot counts as waiting for the database (`WAITED_KEY`): while PostgreSQL
    hangs, a queued request is refused no later than one that had a slot at once.

    The address is that of the caller behind a trusted proxy. Health checks have slots of their own: a load
    balancer may share its address with busy clients.
    """

    def __init__(self, application: Application) -> None:
        self.application = application
        self._queues: dict[Key, _Queue] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        limit: int = settings.ADDRESS_CONCURRENT_REQUESTS
        client = scope.get("client")
        if not limit or not client:
            await self.application(scope, receive, send)
            return
        key = (subscriber(client[0]), scope["path"] in HEALTH_PATHS)
        asked = time.monotonic()
        if not await self._acquire(key, limit):
            headers = [(b"retry-after", b"%d" % RETRY_SECONDS), (b"connection", b"close")]
            words = error_pages.WORDS[503]
            of_socket = "websocket." if scope["type"] == "websocket" else ""
            for message in error_pages.messages(scope["path"], 503, words, headers):
                await send({**message, "type": of_socket + message["type"]})
            return
        scope[WAITED_KEY] = time.monotonic() - asked
        held = True

        def release() -> None:
            nonlocal held
            if held:
                held = False
                self._release(key)

        def release_and_send(message: Message) -> Awaitable[None]:
            release()
            return send(message)

        loop = asyncio.get_running_loop()
        timer = loop.call_later(SLOT_SECONDS, release)
        token = _release_slot.set(functools.partial(loop.call_soon_threadsafe, release))
        try:
            await self.application(scope, receive, release_and_send)
        finally:
            _release_slot.reset(token)
            timer.cancel()
            release()

    async def _acquire(self, key: Key, limit: int) -> bool:
        """Wait for a slot; False if none was free within WAIT_SECONDS."""
        queue = self._queues.setdefault(key, _Queue())
        if queue.running < limit:
            queue.running += 1
            return True
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.waiting.append(turn)
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await turn
        except (TimeoutError, asyncio.CancelledError) as error:
            if not turn.cancelled():  # it got its slot at the same moment
                self._release(key)
            if isinstance(error, asyncio.CancelledError):
                raise
            return False
        return True

    def _release(self, key: Key) -> None:
        """Pass the slot to the next request in the queue, or free it."""
        queue = self._queues[key]
        while queue.waiting:
            turn = queue.waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        queue.running -= 1
        if not queue.running:
            del self._queues[key]
