"""Cross-origin access to the API from browsers (CHATSITE_CORS_ORIGINS); none by default.

This middleware wraps all limits (see asgi.py) as well as Django, so that their refusals have the headers too.
It applies only to API paths: no page of the portal or the admin can be read from another origin.
"""

import re

from django.conf import settings

from .asgi_types import Application, Message, Receive, Scope, Send
from .error_pages import is_for_programs

Headers = list[tuple[bytes, bytes]]

METHODS = b"GET, HEAD, POST, PUT, PATCH, DELETE"
EXPOSED = (
    b"Chat-Message, Chat-Run, Content-Disposition, Content-Range, ETag, Link, Location, RateLimit,"
    b" RateLimit-Policy, Retry-After, WWW-Authenticate, X-Request-ID"
)
MAX_AGE = b"600"
NAMES = re.compile(rb"[A-Za-z0-9_-]+( *, *[A-Za-z0-9_-]+)*")


class Cors:
    """ASGI middleware for CORS.

    It answers preflights from allowed origins, and adds CORS headers to other responses for them.
    """

    def __init__(self, application: Application) -> None:
        self.application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not settings.CORS_ORIGINS or not is_for_programs(scope["path"]):
            await self.application(scope, receive, send)
            return
        origin = _header(scope, b"origin")
        allowed = origin.decode("latin-1") in settings.CORS_ORIGINS
        headers: Headers = []
        if allowed:
            headers += [
                (b"access-control-allow-origin", origin),
                (b"access-control-allow-credentials", b"true"),
            ]
        if allowed and scope["method"] == "OPTIONS" and _header(scope, b"access-control-request-method"):
            headers += [
                (b"vary", b"Origin"),
                (b"access-control-allow-methods", METHODS),
                (b"access-control-max-age", MAX_AGE),
            ]
            # Any request header is allowed: the API ignores headers that it does not know.
            wanted = _header(scope, b"access-control-request-headers").strip()
            if NAMES.fullmatch(wanted):
                headers.append((b"access-control-allow-headers", wanted))
            await send({"type": "http.response.start", "status": 204, "headers": headers})
            await send({"type": "http.response.body", "body": b""})
            return
        if allowed:
            headers.append((b"access-control-expose-headers", EXPOSED))

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                # Send a single `Vary` header, with Origin added to the response's own values.
                present = message.get("headers", ())
                vary = [bytes(value) for name, value in present if name.lower() == b"vary"]
                others = [(name, value) for name, value in present if name.lower() != b"vary"]
                merged = [*others, (b"vary", b", ".join([*vary, b"Origin"])), *headers]
                message = {**message, "headers": merged}
            await send(message)

        await self.application(scope, receive, send_with_headers)


def _header(scope: Scope, wanted: bytes) -> bytes:
    return next((bytes(value) for name, value in scope["headers"] if name.lower() == wanted), b"")
