"""The access log (CHATSITE_ACCESS_LOG): one line for each request and each socket, without anybody's words.

Counts them for `/metrics` too. A line has the pattern of the address and not the address: what people look
for, ids and tokens that travel in addresses stay out of the log.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.urls import URLPattern
from django.utils.functional import empty

from chatsite import logs, metrics, traces
from chatsite.db.threads import request_reader

logger = logging.getLogger("chatsite.access")

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Any, Any, Any], Awaitable[None]]

RECORD = "chatsite.record"  # of a scope
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "WEBSOCKET"})
REFUSED_SOCKET = 403  # what the server answers where a socket is closed before it was accepted


class Record:
    """What is learnt about a request on its way: the pattern of its address, and the number of its person."""

    __slots__ = ("head", "request_id", "route", "status", "user")

    def __init__(self) -> None:
        self.route = ""  # also of an address that does not exist, or was not looked at
        self.user: int | None = None
        self.status: int | None = None  # none where the caller left before an answer
        self.request_id = ""
        self.head = 0.0  # when the answer began

    def learn(self, request: HttpRequest) -> None:
        """Take what Django knows of a request. Asks nothing of the database."""
        self.request_id = logs.request_id.get()
        if request.resolver_match:
            self.route = request.resolver_match.route
        elif request.path.startswith(settings.STATIC_URL):
            self.route = "static/"
        reader = request_reader()
        if reader.isdecimal():
            self.user = int(reader)
        elif getattr(user := getattr(request, "user", None), "_wrapped", None) is not empty:
            self.user = getattr(user, "pk", None)  # in the admin, which reads for nobody in particular

    def see(self, message: Message) -> None:
        """Take the status of an answer, and the id of the request, from a message to the caller."""
        kind = message["type"]
        if kind in {"http.response.start", "websocket.http.response.start"}:
            self.status = message["status"]
            if not self.request_id:  # refused before Django: the refusal names it in these letters
                named = (value for name, value in message["headers"] if name == b"x-request-id")
                self.request_id = next(named, b"").decode("latin-1")
        elif kind == "websocket.accept":
            self.status = HTTPStatus.SWITCHING_PROTOCOLS
        elif kind == "websocket.close" and self.status is None:
            self.status = REFUSED_SOCKET


class AccessLog:
    """The outermost ASGI middleware, for requests and sockets; `sockets` are the patterns of the latter.

    The line comes when the answer has been sent, or the socket is closed.
    """

    def __init__(self, application: Application, sockets: Sequence[URLPattern] = ()) -> None:
        self.application = application
        self._sockets = sockets
        self._open = 0  # sockets
        metrics.SOCKETS.read_from(lambda: {(): float(self._open)})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not (settings.ACCESS_LOG or settings.METRICS or settings.TRACES_ENDPOINT):
            await self.application(scope, receive, send)
            return
        with traces.request(scope) as attributes:
            await self._recorded(scope, receive, send, attributes)

    async def _recorded(
        self, scope: Scope, receive: Receive, send: Send, attributes: dict[str, traces.Value | None]
    ) -> None:
        is_socket = scope["type"] == "websocket"
        started = time.perf_counter()
        record = scope[RECORD] = Record()

        def seen(message: Message) -> Awaitable[None]:
            if message["type"] != "http.response.body":
                record.see(message)
                record.head = time.perf_counter()
            return send(message)

        self._open += is_socket
        try:
            await self.application(scope, receive, seen)
        except asyncio.CancelledError:
            raise
        except Exception:
            record.status = record.status or HTTPStatus.INTERNAL_SERVER_ERROR  # which the server answers
            raise
        finally:
            self._open -= is_socket
            if is_socket:
                record.route = self._route(scope["path"])
            method = "WEBSOCKET" if is_socket else scope["method"]
            attributes |= {
                "name": f"{method} {record.route}",
                "http.request.method": method if method in METHODS else "_OTHER",
                "http.route": record.route,
                "http.response.status_code": record.status,
                "error.type": str(record.status)
                if (record.status or 0) >= HTTPStatus.INTERNAL_SERVER_ERROR
                else None,
                "user.id": record.user,
                "chatsite.request_id": record.request_id or None,
            }
            if settings.METRICS:
                known = method if method in METHODS else "other"
                metrics.REQUESTS.add(known, record.route, str(record.status or "left"))
                if record.head and not is_socket:
                    metrics.REQUEST_SECONDS.observe(record.head - started, record.route)
            if settings.ACCESS_LOG:
                _write(method, record, time.perf_counter() - started)

    def _route(self, path: str) -> str:
        """The pattern of a socket's address."""
        found = (pattern for pattern in self._sockets if pattern.pattern.match(path.removeprefix("/")))
        return next((str(pattern.pattern) for pattern in found), "")


def _write(method: str, record: Record, seconds: float) -> None:
    fields = {
        "method": method,
        "route": record.route,
        "status": record.status,
        "ms": round(1000 * seconds, 1),
        "user": record.user,
    }
    identifier = record.request_id or logs.request_id.get()
    message = "socket" if method == "WEBSOCKET" else "request"
    logger.info(message, extra={"fields": fields, "request_id": identifier})
