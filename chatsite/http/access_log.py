"""The access log (CHATSITE_ACCESS_LOG): one line for each request and socket.

A line has the pattern of the URL instead of the URL, so that search terms, ids and tokens stay out of the
log; the only personal datum is the user's id. Requests and sockets are also counted here for `/metrics`, and
traced.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Sequence
from http import HTTPStatus

from django.conf import settings
from django.http import HttpRequest
from django.urls import URLPattern

from chatsite import logs, metrics, traces
from chatsite.db.threads import request_reader
from chatsite.dependency_internals import is_evaluated

from .asgi_types import Application, Message, Receive, Scope, Send

logger = logging.getLogger("chatsite.access")


RECORD = "chatsite.record"  # key in the ASGI scope
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "WEBSOCKET"})
REFUSED_SOCKET = 403  # the server's response if a socket is closed before it was accepted


class Record:
    """What is logged about a request, such as the pattern of its URL and the id of its user."""

    __slots__ = ("head", "request_id", "route", "status", "user")

    def __init__(self) -> None:
        self.route = ""  # remains empty for an unknown URL, or if the URL was not resolved
        self.user: int | None = None
        self.status: int | None = None  # None if the caller disconnected before a response began
        self.request_id = ""
        self.head = 0.0  # when the response started (of a socket: when the last message was sent)

    def read_request(self, request: HttpRequest) -> None:
        """Read the route and the user from Django's request, without a query."""
        self.request_id = logs.request_id.get()
        if request.resolver_match:
            self.route = request.resolver_match.route
        elif request.path.startswith(settings.STATIC_URL):
            self.route = "static/"
        reader = request_reader()
        if reader.isdecimal():
            self.user = int(reader)
        elif is_evaluated(user := getattr(request, "user", None)):
            self.user = getattr(user, "pk", None)  # in the admin, the reader is EVERYTHING

    def read_message(self, message: Message) -> None:
        """Read the status and the request id from a message to the caller."""
        kind = message["type"]
        if kind in {"http.response.start", "websocket.http.response.start"}:
            self.status = message["status"]
            if not self.request_id:  # a refusal from outside of Django; its header names are in lower case
                named = (value for name, value in message["headers"] if name == b"x-request-id")
                self.request_id = next(named, b"").decode("latin-1")
        elif kind == "websocket.accept":
            self.status = HTTPStatus.SWITCHING_PROTOCOLS
        elif kind == "websocket.close" and self.status is None:
            self.status = REFUSED_SOCKET


class AccessLog:
    """The outermost ASGI middleware, for requests and sockets.

    `sockets` are the URL patterns of sockets. Writes a line when a response has been sent, or when a socket
    or connection is closed.
    """

    def __init__(self, application: Application, sockets: Sequence[URLPattern] = ()) -> None:
        self.application = application
        self._sockets = sockets
        self._open = 0  # open sockets
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
                record.read_message(message)
                record.head = time.perf_counter()
            return send(message)

        self._open += is_socket
        try:
            await self.application(scope, receive, seen)
        except asyncio.CancelledError:
            raise
        except Exception:
            # The server will send this status.
            record.status = record.status or HTTPStatus.INTERNAL_SERVER_ERROR
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
        """The URL pattern of a socket."""
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
