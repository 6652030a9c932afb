"""Identifies the account of a request before its body is read."""

from collections.abc import Mapping
from typing import Any

from django.contrib.auth import BACKEND_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore

from chatsite.http.body_limits import header, session_key

from .api.authentication import (
    KEY_HEADERS,
    caller_id,
    holder_of,
    holder_of_session,
    note_session,
    presented_secret,
)
from .guests import BACKEND as GUEST_BACKEND


def known_caller(scope: Mapping[str, Any], guests: bool) -> str:
    """The id of the account that the key or session in an ASGI scope belongs to.

    Empty if there is none. `guests` says whether the session of a guest counts.
    """
    if secret := _presented_secret(scope):
        address, *_ = scope.get("client") or ("",)
        return caller_id(secret, address or "")
    key = session_key(scope)
    session = SessionStore(key) if key else {}
    note_session(key, int(session[SESSION_KEY]) if SESSION_KEY in session else None)
    if SESSION_KEY not in session or (not guests and session[BACKEND_SESSION_KEY] == GUEST_BACKEND):
        return ""
    return str(session[SESSION_KEY])


def credential(scope: Mapping[str, Any]) -> str:
    """A text that identifies the sender, found without a query; empty without a credential.

    For a key, token or session that this process has verified before, it names the person, so that it is the
    same for all of a person's credentials. Otherwise it is the key, token or session key, valid or not.
    """
    secret = _presented_secret(scope)
    session = "" if secret else session_key(scope)
    holder = holder_of(secret) if secret else holder_of_session(session)
    return secret or session if holder is None else f"\n{holder}"  # no header contains a line break


def _presented_secret(scope: Mapping[str, Any]) -> str:
    for name in KEY_HEADERS:
        value = header(scope, name.lower().encode())
        if value is not None:
            return presented_secret(name, value.decode("latin-1"))
    return ""
