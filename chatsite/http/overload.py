"""Refuses questions, searches, embeddings and uploads that this process cannot start soon.

The decision is made before a request's body is read: after a late refusal, the caller has waited in vain,
and the process has spent as much time as on an answer. Everything else, such as pages, health checks,
open streams and requests to stop an answer, is never refused here.
"""

import asyncio
import re
from contextvars import ContextVar

from chatsite.db.lanes import Departures
from chatsite.db.threads import is_crowded
from chatsite.event_loops import PerEventLoop

from . import error_pages
from .asgi_types import Application, Message, Receive, Scope, Send
from .body_limits import is_upload, refuse

# By method, the paths of requests that may start an answer, a search or an embedding. A test in test_overload
# compares them with the URLs.
BEGINS = {
    "POST": re.compile(
        r"""^/(
            ( (2026/)?(chat|ask) | api/(minimal/|messages/)?(multi-agent-)?chat ) (//?(stream|batch))?
            | v1//?(chat/completions|completions|responses|embeddings)
            | mcp | api/search
            | c/[^/]+/ask | c/[^/]+/q/[^/]+/edit | c/[^/]+/m/[^/]+/(again|continue)
            | projects/[^/]+/ask | search/several
        )?/?$""",
        re.VERBOSE,
    ),
    "GET": re.compile(r"^/(search|search/palette|chat-history/search)/?$"),
}
TICK_SECONDS = 0.05
LAG_WEIGHT = 0.4  # weight of the newest tick in the moving average of the lag
BUSY_LAG = 0.008  # seconds; a process whose event loop lags more is busy
MAX_LAG = 0.8  # seconds; with more lag, even a refusal would take a second
MIN_WAITING = 8  # with fewer waiting requests, none is refused unless the lag exceeds MAX_LAG
MAX_WAIT_SECONDS = 2.0  # longest expected wait of a new request


class Ticket:
    """A request in the backlog. It waits from `enter` to `leave`; repeated calls do nothing."""

    __slots__ = ("_backlog", "_is_waiting", "is_taken")

    def __init__(self, backlog: "Backlog") -> None:
        self._backlog = backlog
        self._is_waiting: bool | None = None
        self.is_taken = False  # whether a run has taken it; the run may outlive the request

    def enter(self) -> None:
        if self._is_waiting is None:
            self._is_waiting = True
            self._backlog.entered()

    def leave(self, *, begun: bool = True) -> None:
        """Leave the backlog: the answer or search has started (`begun`), or ended before that."""
        if self._is_waiting:
            self._is_waiting = False
            self._backlog.left(begun=begun)


class Backlog:
    """The requests of one event loop that have arrived completely and have not started yet.

    These are questions, searches and embeddings. A question starts when its prompt is sent to the model, a
    search or an embedding when its response starts. Time that slow clients and slow models take therefore
    does not count. The expected wait of a new request is the number of waiting requests times the average
    interval between two starts, or the time since the last start if that is longer.
    """

    def __init__(self) -> None:
        self.waiting = 0
        self.departures = Departures()
        self.lag = 0.0
        self._due = 0.0
        self._loop = asyncio.get_running_loop()
        self._schedule()

    @property
    def is_full(self) -> bool:
        """Whether new requests should be refused.

        If the event loop is not busy and no request waits for a database thread, nothing is refused: the
        requests are waiting for something else, such as a remote model.
        """
        if self.lag > MAX_LAG:
            return True
        if self.waiting < MIN_WAITING or not (self.lag > BUSY_LAG or is_crowded()):
            return False
        # The time since the last start also counts, because starts come in bursts: if fifty requests arrive
        # together, none starts for a while, and then all start together.
        return max(self.waiting * self.departures.each, self.departures.stall) > MAX_WAIT_SECONDS

    @property
    def is_crowded(self) -> bool:
        """Whether many requests wait and the event loop is busy."""
        return self.waiting >= MIN_WAITING and self.lag > BUSY_LAG

    def entered(self) -> None:
        if not self.waiting:
            self.departures.begin()
        self.waiting += 1

    def left(self, *, begun: bool) -> None:
        self.waiting -= 1
        if begun:
            self.departures.note()

    def _schedule(self) -> None:
        self._due = self._loop.time() + TICK_SECONDS
        self._loop.call_at(self._due, self._tick)

    def _tick(self) -> None:
        self.lag += LAG_WEIGHT * (self._loop.time() - self._due - self.lag)
        self._schedule()


backlog = PerEventLoop(Backlog)
_ticket: ContextVar[Ticket | None] = ContextVar("ticket", default=None)


def take_ticket() -> Ticket:
    """Take the current request's ticket for a run; create one if it is missing or taken."""
    ticket = _ticket.get()
    if ticket is None or ticket.is_taken:
        ticket = Ticket(backlog())
        ticket.enter()
    ticket.is_taken = True
    return ticket


class OverloadLimit:
    """Refuses requests that this process cannot start soon: 503 with Retry-After, within a second."""

    def __init__(self, application: Application) -> None:
        self.application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        pattern = BEGINS.get(scope["method"])
        begins = pattern is not None and pattern.match(scope["path"]) is not None
        if not (begins or is_upload(scope)):
            await self.application(scope, receive, send)
            return
        if backlog().is_full:
            await refuse(scope, receive, send, 503, error_pages.WORDS[503])
            return
        if not begins:
            await self.application(scope, receive, send)
            return
        ticket = Ticket(backlog())

        async def whole() -> Message:
            message = await receive()
            if not message.get("more_body"):
                ticket.enter()
            return message

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start" and not ticket.is_taken:
                ticket.leave(begun=message["status"] < 400)
            await send(message)

        token = _ticket.set(ticket)
        try:
            await self.application(scope, whole, noted)
        finally:
            _ticket.reset(token)
            if not ticket.is_taken:
                ticket.leave(begun=False)
