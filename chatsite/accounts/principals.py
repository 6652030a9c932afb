"""Who is asking: the one thing about a caller that anything below a door may know."""

from dataclasses import dataclass
from typing import Literal

from django.conf import settings
from django.contrib.sessions.models import Session
from django.utils import timezone

from .models import ApiKey, User

Method = Literal["session", "guest", "api_key", "token", "command"]


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller and how they proved it.

    Groups are not part of it: they are expanded inside each query, so that leaving a group counts from
    the next query on, also for a socket that opened an hour ago.

    `credential` names what was presented: a session key (also of a guest), the id of an API key, the
    second in which an ID token expires; empty for a command.
    """

    user_id: int
    method: Method
    credential: str = ""


def principal_of(user: User, session_key: str | None) -> Principal:
    """Of somebody with a session: signed in, or a guest."""
    return Principal(user.pk, "guest" if user.is_guest else "session", session_key or "")


def still_valid(principal: Principal) -> bool:
    """Whether the account is active and what was presented has not been signed out or revoked since."""
    if not User.objects.filter(pk=principal.user_id, is_active=True).exists():
        return False
    if principal.method == "token":
        return timezone.now().timestamp() < int(principal.credential)
    if principal.method == "guest" and settings.LOGIN_REQUIRED:
        return False
    if principal.method in {"session", "guest"}:
        return Session.objects.filter(pk=principal.credential, expire_date__gt=timezone.now()).exists()
    if principal.method == "api_key":
        return ApiKey.objects.usable().filter(pk=principal.credential, user_id=principal.user_id).exists()
    return True
