"""Middleware that runs on the event loop.

It sets request ids and the content security policy, and wraps some of Django's middleware.
"""

import re
import uuid
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from asgiref.sync import markcoroutinefunction, sync_to_async
from django.conf import settings
from django.contrib.auth import middleware as auth
from django.contrib.messages import middleware as messages
from django.contrib.messages.storage import default_storage
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.middleware import clickjacking, common, csrf, locale, security
from django.utils import translation
from django.utils.deprecation import MiddlewareMixin
from django.utils.functional import SimpleLazyObject

from chatsite import logs
from chatsite.db.threads import reading_for_request
from chatsite.dependency_internals import is_evaluated, messages_of, set_messages

from . import error_pages, languages
from .access_log import RECORD
from .address_limit import WAITED_KEY

Handler = Callable[[HttpRequest], Awaitable[HttpResponseBase]]

REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{8,64}")
PORTAL_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


def identifier_from(header: str) -> str:
    """The caller's `X-Request-ID` if it is well formed, otherwise a new id."""
    return header if REQUEST_ID.fullmatch(header) else uuid.uuid4().hex


class AsyncMiddleware:
    """Base of middleware that Django awaits on the event loop, without a thread."""

    async_capable = True
    sync_capable = False

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response
        markcoroutinefunction(self)

    async def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return await self.get_response(request)


class RequestIdMiddleware(AsyncMiddleware):
    """Accepts a well-formed `X-Request-ID` or creates one, for responses and logs."""

    async def __call__(self, request: HttpRequest) -> HttpResponseBase:
        identifier = identifier_from(request.headers.get("X-Request-ID", ""))
        request.request_id = identifier  # type: ignore[attr-defined]
        logs.request_id.set(identifier)
        scope = getattr(request, "scope", {})  # a test's request has no scope
        # All database calls of the request, including those of middleware, share its time budget.
        with reading_for_request(scope.get(WAITED_KEY, 0.0)):
            response = await self.get_response(request)
            if record := scope.get(RECORD):
                record.read_request(request)
        response.headers["X-Request-ID"] = identifier
        return response


class ContentSecurityPolicyMiddleware(AsyncMiddleware):
    """Allows only the site's own scripts, styles, images and connections.

    A view can set another policy.
    """

    async def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = await self.get_response(request)
        response.headers.setdefault("Content-Security-Policy", PORTAL_POLICY)
        return response


SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})


class EventLoopMiddleware(MiddlewareMixin):
    """Mixin that runs the hooks of Django's middleware on the event loop instead of in a thread."""

    sync_capable = False

    async def __acall__(self, request: HttpRequest) -> HttpResponseBase:
        before, after = (getattr(self, name, None) for name in ("process_request", "process_response"))
        response: HttpResponseBase | None = before(request) if before else None
        if response is None:
            passed = self.get_response(request)
            response = passed if isinstance(passed, HttpResponseBase) else await passed
        if after and self.may_query_database(request):
            response = await sync_to_async(after)(request, response)
        elif after:
            response = after(request, response)
        return response

    def may_query_database(self, request: HttpRequest) -> bool:
        """Whether `process_response` may query the database, and must therefore run in a thread."""
        return False


class SecurityMiddleware(EventLoopMiddleware, security.SecurityMiddleware):
    pass


class LocaleMiddleware(EventLoopMiddleware, locale.LocaleMiddleware):
    """Activates the browser's language and time zone.

    Authentication later activates the language that the person has chosen.
    """

    def process_request(self, request: HttpRequest) -> None:
        languages.activate_browser_settings(request)
        request.LANGUAGE_CODE = translation.get_language() or settings.LANGUAGE_CODE


class CommonMiddleware(EventLoopMiddleware, common.CommonMiddleware):
    pass


class CsrfViewMiddleware(EventLoopMiddleware, csrf.CsrfViewMiddleware):
    async def process_view(  # type: ignore[override]
        self, request: HttpRequest, view: Callable[..., Any], args: Any, kwargs: Any
    ) -> HttpResponseBase | None:
        """Check the CSRF token in a thread, because the form that contains it may be long."""
        check = super().process_view
        if request.method in SAFE_METHODS or getattr(view, "csrf_exempt", False):
            return check(request, view, args, kwargs)
        return await sync_to_async(check)(request, view, args, kwargs)


class AuthenticationMiddleware(EventLoopMiddleware, auth.AuthenticationMiddleware):
    pass


class MessageMiddleware(EventLoopMiddleware, messages.MessageMiddleware):
    """Creates the message storage on first use: few requests for pages need it, and API requests never do."""

    def process_request(self, request: HttpRequest) -> None:
        set_messages(request, SimpleLazyObject(partial(default_storage, request)))

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        return super().process_response(request, response) if _has_message_storage(request) else response

    def may_query_database(self, request: HttpRequest) -> bool:
        """True if messages were shown or added: the session stores those that the cookie cannot."""
        storage = messages_of(request)
        return _has_message_storage(request) and (storage.used or storage.added_new)


def _has_message_storage(request: HttpRequest) -> bool:
    return is_evaluated(messages_of(request))


class ErrorPageMiddleware(AsyncMiddleware):
    """Shows refusals and missing pages with the portal's sidebar.

    It does so only if the browser asked for a page. This is a middleware because Django calls its error
    handlers in another thread, which does not have the request's database connection.
    """

    async def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = await self.get_response(request)
        # Browsers send another destination for images and for requests by scripts.
        is_page = request.headers.get("Sec-Fetch-Dest", "document") == "document"
        if isinstance(response, error_pages.ErrorPage) and response.status_code in {403, 404} and is_page:
            return await sync_to_async(error_pages.in_portal)(request, response)
        return response


class XFrameOptionsMiddleware(EventLoopMiddleware, clickjacking.XFrameOptionsMiddleware):
    pass
