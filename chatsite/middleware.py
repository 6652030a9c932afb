"""What every response carries: a request id and a content security policy."""

import re
import uuid
from collections.abc import Awaitable, Callable

from asgiref.sync import markcoroutinefunction
from django.http import HttpRequest, HttpResponseBase

from chatsite.database import reading_for_request

from . import logs

Handler = Callable[[HttpRequest], Awaitable[HttpResponseBase]]

REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{8,64}")
PORTAL_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


def identifier_from(header: str) -> str:
    """The caller's `X-Request-ID` where it is well formed, else a new one."""
    return header if REQUEST_ID.fullmatch(header) else uuid.uuid4().hex


class AsyncMiddleware:
    """Base of middleware that never leaves the event loop."""

    async_capable = True
    sync_capable = False

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response
        markcoroutinefunction(self)

    async def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return await self.get_response(request)


class RequestIdMiddleware(AsyncMiddleware):
    """Takes `X-Request-ID` where it is well formed, else makes one; answers and logs carry it."""

    async def __call__(self, request: HttpRequest) -> HttpResponseBase:
        identifier = identifier_from(request.headers.get("X-Request-ID", ""))
        request.request_id = identifier  # type: ignore[attr-defined]
        logs.request_id.set(identifier)
        with reading_for_request():  # what all middleware asks of the database shares the request's time
            response = await self.get_response(request)
        response.headers["X-Request-ID"] = identifier
        return response


class ContentSecurityPolicyMiddleware(AsyncMiddleware):
    """No script, style, image or connection but the site's own, unless a view has set a stricter policy."""

    async def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = await self.get_response(request)
        response.headers.setdefault("Content-Security-Policy", PORTAL_POLICY)
        return response
