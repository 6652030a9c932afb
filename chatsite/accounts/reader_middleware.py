"""Whom a request reads documents for: nobody, until it is known who calls."""

from collections.abc import Callable
from typing import Any, TypeVar

from django.contrib.auth.middleware import auser, get_user
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.http import HttpRequest, HttpResponseBase
from django.utils.cache import patch_vary_headers
from django.utils.functional import SimpleLazyObject

from chatsite.accounts.authentication import KEY_HEADERS, presents_key
from chatsite.db.threads import (
    NOBODY,
    request_is_for,
    request_reader,
    request_reads_as,
)
from chatsite.http.error_pages import is_for_programs
from chatsite.http.middleware import AsyncMiddleware

Somebody = TypeVar("Somebody", bound=AbstractBaseUser | AnonymousUser)


class ReaderMiddleware(AsyncMiddleware):
    """Stands behind Django's AuthenticationMiddleware; costs no query of its own.

    The session's user is looked up where a view asks for it, as ever, and is the reader from then on. A key
    or token in the Authorization header decides before the session does.
    """

    async def __call__(self, request: HttpRequest) -> HttpResponseBase:
        async def find() -> AbstractBaseUser | AnonymousUser:
            return _reader(request, await auser(request))

        request.user = SimpleLazyObject(lambda: _reader(request, get_user(request)))  # type: ignore[assignment]
        request.auser = find  # type: ignore[assignment]
        response = await self.get_response(request)
        _keep_out_of_caches(request, response)
        return response

    async def process_view(
        self, request: HttpRequest, view: Callable[..., Any], args: Any, kwargs: Any
    ) -> None:
        request_is_for(request.resolver_match.route if request.resolver_match else "")


def _keep_out_of_caches(request: HttpRequest, response: HttpResponseBase) -> None:
    """Let no cache keep what was made for one person, where the view has not decided that itself.

    Every page shows the titles of their conversations. What programs get depends on their key or cookie.
    """
    if getattr(request, "session_in_use", False) or presents_key(request):
        response.headers.setdefault("Cache-Control", "private, no-store")
    if is_for_programs(request.path) and "public" not in response.headers.get("Cache-Control", ""):
        patch_vary_headers(response, [*KEY_HEADERS, "Cookie"])


def _reader(request: HttpRequest, user: Somebody) -> Somebody:
    """The session's user, known from now on to the request: as its reader, and as somebody active."""
    if user.is_authenticated:
        request.session_in_use = True  # type: ignore[attr-defined]  # SessionMiddleware puts off its end
    if user.is_authenticated and request_reader() == NOBODY:
        request_reads_as(user.pk)
    return user
