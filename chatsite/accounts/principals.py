"""Who is asking: the one thing about a caller that anything below a door may know."""

from collections.abc import Collection
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
    return principal in valid_among([principal])


def valid_among(principals: Collection[Principal]) -> set[Principal]:
    """Those of them who are still valid: at most three queries, however many they are."""
    now = timezone.now()
    users = {principal.user_id for principal in principals}
    active = set(User.objects.filter(pk__in=users, is_active=True).values_list("pk", flat=True))
    found = {principal for principal in principals if principal.user_id in active}
    sessions = [principal.credential for principal in found if principal.method in {"session", "guest"}]
    open_sessions: set[str] = set()
    if sessions:
        rows = Session.objects.filter(pk__in=sessions, expire_date__gt=now)
        open_sessions = set(rows.values_list("pk", flat=True))
    keys = [int(principal.credential) for principal in found if principal.method == "api_key"]
    usable: set[tuple[int, int]] = set()
    if keys:
        usable = set(ApiKey.objects.usable().filter(pk__in=keys).values_list("user_id", "pk"))

    def holds(principal: Principal) -> bool:
        match principal.method:
            case "token":
                return now.timestamp() < int(principal.credential)
            case "guest":
                return not settings.LOGIN_REQUIRED and principal.credential in open_sessions
            case "session":
                return principal.credential in open_sessions
            case "api_key":
                return (principal.user_id, int(principal.credential)) in usable
            case _:
                return True

    return {principal for principal in found if holds(principal)}
