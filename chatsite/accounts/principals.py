"""Who is asking: the one thing about a caller that anything below a door may know."""

from dataclasses import dataclass
from typing import Literal

from django.contrib.sessions.models import Session
from django.utils import timezone

from .models import ApiKey, User

Method = Literal["session", "api_key", "command"]


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller and how they proved it.

    Groups are not part of it: they are expanded inside each query, so that leaving a group counts from
    the next query on, also for a socket that opened an hour ago.

    `credential` names what was presented (a session key, the id of an API key); empty for a command.
    """

    user_id: int
    method: Method
    credential: str = ""


def still_valid(principal: Principal) -> bool:
    """Whether the account is active and what was presented has not been signed out or revoked since."""
    if not User.objects.filter(pk=principal.user_id, is_active=True).exists():
        return False
    if principal.method == "session":
        return Session.objects.filter(pk=principal.credential, expire_date__gt=timezone.now()).exists()
    if principal.method == "api_key":
        return ApiKey.objects.usable().filter(pk=principal.credential, user_id=principal.user_id).exists()
    return True
