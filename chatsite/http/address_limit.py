"""Limits on the concurrent requests of one caller and of one address; further ones queue.

Without these limits, a thousand requests that are sent at once would all start at once, with everybody else
waiting behind them, and one person who keeps opening expensive pages would take most of a process's time.
"""

import asyncio
import functools
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextvars import ContextVar
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any

from django.conf import settings

from chatsite.db.availability import breaker
from chatsite.db.bulkheads import bulkheads
from chatsite.db.lanes import DECISION_SECONDS, Departures

from . import error_pages
from .asgi_types import Application, Message, Receive, Scope, Send
from .outgoing.retry_after import SECONDS

Key = tuple[str, bool]

HEALTH_PATHS = frozenset({"/healthz", "/readyz"})
# The longest time for which a request holds a slot: a request that takes longer is usually waiting for a
# body, an answer or the database, and hardly slows down others.
SLOT_SECONDS = 2.0
WAIT_SECONDS = 10.0  # longest wait for a slot; a request that would wait longer is refused within a second
RETRY_SECONDS = 5
POLL_SECONDS = 0.25  # how often a request that waits longer than its time budget looks at the database
MAX_WAITING_OF_CALLER = 200
MAX_WAITING_OF_ADDRESS = 1_000
RECENT_SECONDS = 2.0  # how long a caller counts as active; others then get only half of their slots
WAITED_KEY = "chatsite.waited"  # key in the ASGI scope: for how many seconds the request waited for a slot
GONE_KEY = "chatsite.gone"  # key in the ASGI scope: a future that is done when the connection is lost
IPV6_PREFIX = 64  # one network, in which a subscriber has very many addresses
IPV6_SITE_PREFIX = 48  # the largest network that one subscriber usually gets: 65,536 networks of /64
OF_CALLER = "Too many of your requests are waiting. Send this one again in a few seconds."


_release_slot: ContextVar[Callable[[], object] | None] = ContextVar("release_slot", default=None)


def release_slot() -> None:
    """Release the current request's slots early, if it will only wait. Callable from any thread."""
    if release := _release_slot.get():
        release()


class _Queue:
    """The requests of one key: how many have a slot, and those that wait, in order."""

    __slots__ = ("departures", "running", "waiting")

    def __init__(self) -> None:
        self.running = 0
        self.departures = Departures()  # measures how often waiting requests get a slot
        self.waiting: dict[asyncio.Future[bool], None] = {}  # an ordered set


class Queues:
    """Slots by key. With `fair`, a key has only half of its slots while other keys are active."""

    def __init__(self, max_waiting: int, *, fair: bool = False) -> None:
        self.by_key: dict[Key, _Queue] = {}
        self._max_waiting, self._fair = max_waiting, fair
        self._seen: dict[Key, float] = {}  # when the last request of each key came, the newest at the end

    async def acquire(
        self, key: Key, limit: int, asked: float, gone: "asyncio.Future[None] | None" = None
    ) -> bool:
        """Wait for a slot, for a request that arrived at `asked` (monotonic clock).

        False if that would take longer than WAIT_SECONDS, if the queue is full, if the caller is gone, or if
        the database has delayed the request too long (:func:`_is_given_up`).
        """
        if self._fair:
            self._note(key)
        queue = self.by_key.setdefault(key, _Queue())
        if queue.running < self._slots(key, limit) and not queue.waiting:
            queue.running += 1
            return True
        if len(queue.waiting) >= self._max_waiting:
            return False
        turn: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        if not queue.waiting:
            queue.departures.begin()
        queue.waiting[turn] = None

        def leave(_: object) -> None:
            if not turn.done():
                turn.set_result(False)

        if gone is not None:
            gone.add_done_callback(leave)
        try:
            early = min(DECISION_SECONDS, WAIT_SECONDS)
            await asyncio.wait({turn}, timeout=early)
            left = WAIT_SECONDS - early
            if not turn.done() and _expected_seconds(queue, turn, self._slots(key, limit)) > left:
                raise TimeoutError
            async with asyncio.timeout(left):
                return await _result_unless_given_up(turn, asked)
        except (TimeoutError, asyncio.CancelledError) as error:
            if turn.done() and not turn.cancelled() and turn.result():  # a slot became free at that moment
                self.release(key, limit)
            if isinstance(error, asyncio.CancelledError):
                raise
            return False
        finally:
            queue.waiting.pop(turn, None)
            if gone is not None:
                gone.remove_done_callback(leave)

    def release(self, key: Key, limit: int) -> None:
        """Free a slot, and give all free slots to the next requests in the queue."""
        queue = self.by_key[key]
        queue.running -= 1
        slots = self._slots(key, limit)
        while queue.waiting and queue.running < slots:
            turn = next(iter(queue.waiting))
            del queue.waiting[turn]
            if not turn.done():
                queue.running += 1
                queue.departures.note()
                turn.set_result(True)
        if not queue.running:
            del self.by_key[key]

    def _slots(self, key: Key, limit: int) -> int:
        if not self._fair:
            return limit
        now = time.monotonic()
        others = (now - seen < RECENT_SECONDS for other, seen in reversed(self._seen.items()) if other != key)
        return max(1, limit // 2) if next(others, False) else limit

    def _note(self, key: Key) -> None:
        """Remember that the key was active now, and forget keys that were last active long ago."""
        now = time.monotonic()
        self._seen.pop(key, None)
        self._seen[key] = now
        while now - self._seen[oldest := next(iter(self._seen))] >= RECENT_SECONDS:
            del self._seen[oldest]


def _expected_seconds(queue: _Queue, turn: "asyncio.Future[bool]", slots: int) -> float:
    """How long a request would wait from now on. No slot is held for longer than SLOT_SECONDS."""
    position = next(number for number, other in enumerate(queue.waiting, start=1) if other is turn)
    return min(queue.departures.wait(position), position * SLOT_SECONDS / slots)


async def _result_unless_given_up(turn: "asyncio.Future[bool]", asked: float) -> bool:
    while not turn.done():
        budget_left = asked + settings.DATABASE_SECONDS - time.monotonic()
        await asyncio.wait({turn}, timeout=max(POLL_SECONDS, budget_left))
        if not turn.done() and _is_given_up(asked):
            raise TimeoutError
    return turn.result()


def _is_given_up(asked: float) -> bool:
    """Whether a request that waits for a slot has used its time budget, and the database delays requests.

    It would get a slot only after others that wait for the database, and then have to wait itself.
    """
    used_up = time.monotonic() - asked >= settings.DATABASE_SECONDS
    return used_up and (breaker.is_unavailable or bulkheads.delay_requests)


def subscriber(client: str, prefix: int = IPV6_PREFIX) -> str:
    """The address; for IPv6, its network, because one caller has very many IPv6 addresses.

    Text that is no address is unchanged.
    """
    try:
        address = ip_address(client.partition("%")[0])
    except ValueError:
        return client
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is None:
            return str(ip_network((address, prefix), strict=False))
        address = address.ipv4_mapped
    return str(address)


class AddressLimit:
    """Middleware that gives slots to each caller and to each address.

    There are CALLER_CONCURRENT_REQUESTS slots for a caller, and ADDRESS_CONCURRENT_REQUESTS for an address; a
    setting of 0 means no limit. A request holds its slots until its response starts, at most for
    SLOT_SECONDS, so open streams, long answers and accepted sockets do not count. A request that only waits
    can release its slots earlier (`release_slot`). The wait for slots is subtracted from the time budget for
    the database (`WAITED_KEY`), so that while PostgreSQL hangs, the two waits do not add up. A request that
    is still waiting for a slot when its budget is used up is then refused.

    A caller is a person with all their keys and sessions: `credential(scope)` returns the person, or the
    credential if it has not been verified yet. Requests without a credential, and those for static files,
    only use the slots of their address. Other requests queue for their caller's slots first, so that waiting
    requests take no slot from other callers at the same address. While other callers are active, a caller has
    only half of its slots. Behind a trusted proxy, the address is that of the proxy's client. Health checks
    have slots of their own, because a load balancer may share its address with busy clients.
    """

    def __init__(
        self, application: Application, credential: Callable[[Mapping[str, Any]], str] = lambda _: ""
    ) -> None:
        self.application = application
        self._credential = credential
        self._callers = Queues(MAX_WAITING_OF_CALLER, fair=True)
        self._addresses = Queues(MAX_WAITING_OF_ADDRESS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked, gone = time.monotonic(), scope.get(GONE_KEY)
        held: list[Callable[[], None]] = []

        def release() -> None:
            while held:
                held.pop()()

        loop = asyncio.get_running_loop()
        try:
            for queues, key, limit, status, words in self._wanted(scope):
                if not await queues.acquire(key, limit, asked, gone):
                    if gone is not None and gone.done():
                        return
                    if _is_given_up(asked):
                        await _refuse(scope, send, 503, error_pages.WORDS[503], SECONDS[503])
                    else:
                        await _refuse(scope, send, status, words, RETRY_SECONDS)
                    return
                held.append(functools.partial(queues.release, key, limit))
            if not held:
                await self.application(scope, receive, send)
                return
            scope[WAITED_KEY] = time.monotonic() - asked

            def release_and_send(message: Message) -> Awaitable[None]:
                release()
                return send(message)

            timer = loop.call_later(SLOT_SECONDS, release)
            token = _release_slot.set(functools.partial(loop.call_soon_threadsafe, release))
            try:
                await self.application(scope, receive, release_and_send)
            finally:
                _release_slot.reset(token)
                timer.cancel()
        finally:
            release()

    def _wanted(self, scope: Scope) -> Iterator[tuple[Queues, Key, int, int, str]]:
        """The slots that a request needs: for each, the queues, the key, the limit, and the refusal."""
        path, client = scope["path"], scope.get("client")
        is_health = path in HEALTH_PATHS
        of_caller: int = settings.CALLER_CONCURRENT_REQUESTS
        # The site's static files cost next to nothing, and a page needs many of them at once.
        is_cheap = is_health or path.startswith(settings.STATIC_URL)
        if of_caller and not is_cheap and (caller := self._credential(scope)):
            yield self._callers, (caller, False), of_caller, 429, OF_CALLER
        of_address: int = settings.ADDRESS_CONCURRENT_REQUESTS
        if of_address and client:
            key = (subscriber(client[0]), is_health)
            yield self._addresses, key, of_address, 503, error_pages.WORDS[503]


async def _refuse(scope: Scope, send: Send, status: int, words: str, seconds: int) -> None:
    headers = [(b"retry-after", b"%d" % seconds), (b"connection", b"close")]
    of_socket = "websocket." if scope["type"] == "websocket" else ""
    for message in error_pages.messages(scope["path"], status, words, headers):
        await send({**message, "type": of_socket + message["type"]})
