"""Middleware for sessions and for the reader of a request.

The reader is NOBODY until the caller is known.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from django.conf import settings
from django.contrib.auth.middleware import auser, get_user
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.contrib.sessions import middleware
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from django.utils.functional import SimpleLazyObject
from django.utils.http import http_date

from chatsite.accounts.api.authentication import KEY_HEADERS, note_session, presents_key
from chatsite.db.threads import (
    NOBODY,
    request_is_for,
    request_reader,
    request_reads_as,
)
from chatsite.http.error_pages import is_for_programs
from chatsite.http.languages import activate_person_settings
from chatsite.http.middleware import AsyncMiddleware, EventLoopMiddleware

from .sessions import STARTED, keep_alive, seconds_left

UserT = TypeVar("UserT", bound=AbstractBaseUser | AnonymousUser)


class ReaderMiddleware(AsyncMiddleware):
    """Makes the caller the reader of row-level security.

    Must follow Django's AuthenticationMiddleware. It makes no query itself: the session's user becomes the
    reader on the first access to `request.user` or `request.auser()`. A key or token in a header
    (KEY_HEADERS) takes precedence.
    """

    async def __call__(self, request: HttpRequest) -> HttpResponseBase:
        async def find() -> AbstractBaseUser | AnonymousUser:
            return _reader(request, await auser(request))

        request.user = SimpleLazyObject(lambda: _reader(request, get_user(request)))  # type: ignore[assignment]
        request.auser = find  # type: ignore[assignment]
        response = await self.get_response(request)
        # Pages contain titles of the person's conversations, and API responses depend on the key or cookie,
        # so no cache may store these responses unless the view says otherwise.
        if getattr(request, "session_in_use", False) or presents_key(request):
            response.headers.setdefault("Cache-Control", "private, no-store")
        if is_for_programs(request.path) and "public" not in response.headers.get("Cache-Control", ""):
            patch_vary_headers(response, [*KEY_HEADERS, "Cookie"])
        return response

    async def process_view(
        self, request: HttpRequest, view: Callable[..., Any], args: Any, kwargs: Any
    ) -> None:
        request_is_for(request.resolver_match.route if request.resolver_match else "")


def _reader(request: HttpRequest, user: UserT) -> UserT:
    """Return the session's user, after activating their settings.

    The user becomes the reader, unless the request already has a reader.
    """
    note_session(request.COOKIES.get(settings.SESSION_COOKIE_NAME), user.pk)
    if user.is_authenticated:
        request.session_in_use = True  # type: ignore[attr-defined]  # SessionMiddleware then postpones its end
        activate_person_settings(user)
    if user.is_authenticated and request_reader() == NOBODY:
        request_reads_as(user.pk)
    return user


class SessionMiddleware(EventLoopMiddleware, middleware.SessionMiddleware):
    """Django's session middleware on the event loop; also renews the idle time-out of sessions."""

    def may_query_database(self, request: HttpRequest) -> bool:
        if getattr(request, "session_in_use", False):  # the session is loaded
            keep_alive(request.session)
        return request.session.modified or settings.SESSION_SAVE_EVERY_REQUEST

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        response = super().process_response(request, response)
        cookie = response.cookies.get(settings.SESSION_COOKIE_NAME)
        if cookie and cookie.value and STARTED in request.session:
            # The idle time-out is only in the database row, because sockets renew it and cannot send a
            # cookie.
            now = timezone.now().timestamp()
            cookie["max-age"] = max(1, seconds_left(request.session, now))
            cookie["expires"] = http_date(now + cookie["max-age"])
        return response
