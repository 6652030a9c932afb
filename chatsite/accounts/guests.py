"""Guests: people without an account.

The operator can admit them (CHATSITE_LOGIN_REQUIRED=0). Each guest's session has a user row, so that
conversations, limits and rights work as for other people; nobody can sign in as that user. Views that serve
guests are marked (`guests_welcome`); to all other views, a guest is anonymous.
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeVar

from asgiref.sync import markcoroutinefunction
from django.conf import settings
from django.contrib.auth import login
from django.contrib.auth.backends import BaseBackend
from django.contrib.auth.models import AnonymousUser
from django.contrib.sessions.models import Session
from django.db import Error as DatabaseError
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone
from django.utils.module_loading import import_string
from rest_framework.views import APIView

from chatsite.db.threads import (
    in_database,
    reading_everything,
    request_reads_as,
)
from chatsite.http.origins import comes_from_elsewhere

from .api.authentication import presents_key
from .guest_limits import address_digest, count_guest, purge_counts
from .models import User

logger = logging.getLogger(__name__)

BACKEND = "chatsite.accounts.guests.GuestBackend"
PURGE_SECONDS = 600
View = TypeVar("View", bound=Callable[..., Any])


def guests_welcome(view: View) -> View:
    """Mark a view that serves guests. On a class-based view set `guests_welcome = True` instead."""
    view.guests_welcome = True  # type: ignore[attr-defined]
    return view


class GuestBackend(BaseBackend):
    """Authentication backend that loads the guest of a session.

    A guest who has expired, or is no longer admitted because the site requires accounts again, is not loaded.
    """

    def get_user(self, user_id: int) -> User | None:
        if settings.LOGIN_REQUIRED:
            return None
        now = timezone.now()
        return User.objects.filter(pk=user_id, is_active=True, guest_until__gt=now).first()


class GuestMiddleware:
    """Creates a guest for a new caller without an account, on views that serve guests.

    On all other views, it makes a guest anonymous.
    """

    async_capable = True
    sync_capable = False

    def __init__(self, get_response: Callable[[HttpRequest], Awaitable[HttpResponseBase]]) -> None:
        self.get_response = get_response
        self.refuse = import_string(settings.GUEST_REFUSAL_VIEW)
        markcoroutinefunction(self)

    async def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return await self.get_response(request)

    async def process_view(
        self, request: HttpRequest, view: Callable[..., Any], args: Any, kwargs: Any
    ) -> HttpResponseBase | None:
        if settings.LOGIN_REQUIRED:
            return None
        user = await request.auser()
        if not welcomes(view):
            if isinstance(user, User) and user.is_guest:
                _set_user(request, AnonymousUser())
                request.refused_guest = True  # type: ignore[attr-defined]
            return None
        api = issubclass(getattr(view, "cls", object), APIView)
        # A response of the API never replaces an existing session cookie.
        has_session = api and request.COOKIES.get(settings.SESSION_COOKIE_NAME)
        if user.is_authenticated or presents_key(request) or has_session:
            return None
        if comes_from_elsewhere(request):
            return self.refuse(request, 403) if api else None
        wait = await in_database(admit, request)
        return self.refuse(request, 429, wait) if wait else None


def admit(request: HttpRequest) -> float:
    """Make the caller a guest and return 0; if refused, return the seconds to wait."""
    digest = address_digest(request.META.get("REMOTE_ADDR", ""))
    wait = count_guest(digest)
    if not wait:
        create_guest(request, digest)
    return wait


def create_guest(request: HttpRequest, digest: str) -> User:
    """Create a guest with a session and a CSRF token, both sent as cookies."""
    lifetime = timedelta(hours=settings.GUEST_HOURS)
    guest = User(username=f"guest-{secrets.token_hex(8)}", guest_until=timezone.now() + lifetime)
    guest.guest_address = digest
    guest.set_unusable_password()
    guest.save()
    login(request, guest, backend=BACKEND)
    request.session.set_expiry(lifetime)
    request.session.save()
    request.new_guest = True  # type: ignore[attr-defined]
    _set_user(request, guest)
    return guest


def purge() -> int:
    """Remove expired sessions, old guest counts, and expired guests with their conversations."""
    now = timezone.now()
    Session.objects.filter(expire_date__lt=now).delete()
    gone = User.objects.filter(guest_until__lt=now)
    count = gone.count()
    purge_counts()
    with reading_everything():  # also deletes access-list entries that name a guest
        gone.delete()
    return count


async def housekeeping() -> None:
    """Call :func:`purge` every few minutes until cancelled."""
    while True:
        try:
            await in_database(purge)
        except DatabaseError:
            logger.exception("Guests could not be purged")
        await asyncio.sleep(PURGE_SECONDS)


def welcomes(view: Callable[..., Any]) -> bool:
    """Whether guests may open this view."""
    return bool(getattr(view, "guests_welcome", getattr(getattr(view, "cls", None), "guests_welcome", False)))


def _set_user(request: HttpRequest, user: User | AnonymousUser) -> None:
    async def known() -> User | AnonymousUser:
        return user

    request.user = user
    request.auser = known
    request_reads_as(user.pk)
