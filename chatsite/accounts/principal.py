"""The caller of a request, in the form that all code below the views uses."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.models import Session
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from chatsite.db.sql_files import rows_of_each, statement

from .models import User

SQL = Path(__file__).parent / "sql"
Method = Literal["session", "guest", "api_key", "token", "command"]
MAX_PROVEN = 10_000
# Combinations of session key, user and password hash that were verified.
_proven: set[tuple[str, int, str]] = set()


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller and their credential.

    It has no groups: queries look them up, so that leaving a group takes effect with the next query, even for
    a socket opened an hour ago. `credential` is a session key (also of a guest), the id of an API key, or the
    Unix time at which a token expires; empty for a command. `scopes` are those of the API key; None means no
    limit.
    """

    user_id: int
    method: Method
    credential: str = ""
    scopes: frozenset[str] | None = field(default=None, compare=False)

    def has_scope(self, scope: str) -> bool:
        return self.scopes is None or scope in self.scopes


def principal_of(user: User, session_key: str | None) -> Principal:
    """The principal of a session of a signed-in person or a guest."""
    return Principal(user.pk, "guest" if user.is_guest else "session", session_key or "")


def failure_name(principal: Principal) -> str:
    """The name under which failures of a caller's requests to a model are counted; guests share one."""
    return "guests" if principal.method == "guest" else str(principal.user_id)


def still_valid(principal: Principal) -> bool:
    """Whether the account is active and the credential has not expired or been revoked."""
    return principal in valid_among([principal])


def valid_among(principals: Collection[Principal]) -> set[Principal]:
    """The principals that are still valid.

    Sends two statements in one message, and at most two queries for sessions. It is called once a second for
    all open streams and sockets, so the two statements are written as SQL.
    """
    now = timezone.now()
    people, keys = rows_of_each(
        [statement("active_people", SQL), statement("usable_keys", SQL)],
        {
            "users": list({principal.user_id for principal in principals}),
            "keys": [int(each.credential) for each in principals if each.method == "api_key"],
            "now": now,
        },
    )
    passwords = {row["id"]: row["password"] for row in people}
    found = {principal for principal in principals if principal.user_id in passwords}
    signed_in = _signed_in(found, passwords)
    usable = {row["id"]: (row["user_id"], row["acts_for_others"]) for row in keys}

    def holds(principal: Principal) -> bool:
        match principal.method:
            case "token":
                return now.timestamp() < int(principal.credential)
            case "guest":
                return not settings.LOGIN_REQUIRED and principal in signed_in
            case "session":
                return principal in signed_in
            case "api_key":
                holder, acts_for_others = usable.get(int(principal.credential), (None, False))
                return bool(acts_for_others) or holder == principal.user_id
            case _:
                return True

    return {principal for principal in found if holds(principal)}


def _signed_in(principals: Collection[Principal], passwords: Mapping[int, str]) -> set[Principal]:
    """The principals whose session is open and was begun with their current password.

    Django has the same rule. A match is remembered for the session key, the user and the password hash, so
    that the session is not decoded again: its user and hash never change under one key.
    """
    by_session = {
        principal.credential: principal
        for principal in principals
        if principal.method in {"session", "guest"}
    }
    if not by_session:
        return set()
    stored = Session.objects.filter(pk__in=by_session, expire_date__gt=timezone.now())
    opened = set(stored.values_list("pk", flat=True))
    proofs = {key: (key, by_session[key].user_id, passwords[by_session[key].user_id]) for key in opened}
    unproven = [key for key, proof in proofs.items() if proof not in _proven]
    for session in stored.filter(pk__in=unproven) if unproven else ():
        content = session.get_decoded()
        _, user_id, password = proofs[session.pk]
        user = User(pk=user_id, password=password)
        hashes = [user.get_session_auth_hash(), *user.get_session_auth_fallback_hash()]
        hash_at_sign_in = str(content.get(HASH_SESSION_KEY, ""))
        matches = any(constant_time_compare(hash_at_sign_in, good) for good in hashes)
        if matches and content.get(SESSION_KEY) == str(user_id):
            if len(_proven) >= MAX_PROVEN:
                _proven.clear()
            _proven.add(proofs[session.pk])
    return {by_session[key] for key, proof in proofs.items() if proof in _proven}
