"""Django's own middleware, kept on the event loop.

Each of them looks at headers for a few microseconds. Django passes each look to a thread, fifteen times a
request, which takes a hundred times as long as the look itself. Only what may read a body or ask the database
goes there.
"""

from collections.abc import Callable
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth import middleware as auth
from django.contrib.messages import middleware as messages
from django.contrib.sessions import middleware as sessions
from django.http import HttpRequest, HttpResponseBase
from django.middleware import clickjacking, common, csrf, locale, security
from django.utils.deprecation import MiddlewareMixin

from chatsite.accounts.sessions import keep_alive

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})


class OnLoop(MiddlewareMixin):
    """Stands before one of Django's classes, whose methods it calls where they are."""

    sync_capable = False

    async def __acall__(self, request: HttpRequest) -> HttpResponseBase:
        look, finish = (getattr(self, name, None) for name in ("process_request", "process_response"))
        response: HttpResponseBase | None = look(request) if look else None
        if response is None:
            passed = self.get_response(request)
            response = passed if isinstance(passed, HttpResponseBase) else await passed
        if finish and self.asks_database(request):
            response = await sync_to_async(finish)(request, response)
        elif finish:
            response = finish(request, response)
        return response

    def asks_database(self, request: HttpRequest) -> bool:
        """Whether what is left to do with the response may, so that it belongs in a thread."""
        return False


class SecurityMiddleware(OnLoop, security.SecurityMiddleware):
    pass


class SessionMiddleware(OnLoop, sessions.SessionMiddleware):
    def asks_database(self, request: HttpRequest) -> bool:
        if getattr(request, "session_in_use", False):  # so that it is loaded
            keep_alive(request.session)
        return request.session.modified or settings.SESSION_SAVE_EVERY_REQUEST


class LocaleMiddleware(OnLoop, locale.LocaleMiddleware):
    pass


class CommonMiddleware(OnLoop, common.CommonMiddleware):
    pass


class CsrfViewMiddleware(OnLoop, csrf.CsrfViewMiddleware):
    async def process_view(  # type: ignore[override]
        self, request: HttpRequest, view: Callable[..., Any], args: Any, kwargs: Any
    ) -> HttpResponseBase | None:
        """The token may stand in a form, which may be long."""
        look = super().process_view
        if request.method in SAFE_METHODS or getattr(view, "csrf_exempt", False):
            return look(request, view, args, kwargs)
        return await sync_to_async(look)(request, view, args, kwargs)


class AuthenticationMiddleware(OnLoop, auth.AuthenticationMiddleware):
    pass


class MessageMiddleware(OnLoop, messages.MessageMiddleware):
    def asks_database(self, request: HttpRequest) -> bool:
        """Messages that do not fit into a cookie are kept in the session."""
        storage = getattr(request, "_messages", None)
        return storage is not None and (storage.used or storage.added_new)


class XFrameOptionsMiddleware(OnLoop, clickjacking.XFrameOptionsMiddleware):
    pass
