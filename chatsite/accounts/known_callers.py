"""Identifies the account of a request before its body is read."""

from collections.abc import Mapping
from typing import Any

from django.contrib.auth import BACKEND_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore

from chatsite.http.body_limits import header, session_key

from .api.authentication import KEY_HEADERS, caller_id, presented_secret
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
    if SESSION_KEY not in session or (not guests and session[BACKEND_SESSION_KEY] == GUEST_BACKEND):
        return ""
    return str(session[SESSION_KEY])


def credential(scope: Mapping[str, Any]) -> str:
    """The key, token or session in an ASGI scope, valid or not; empty if there is none."""
    return _presented_secret(scope) or session_key(scope)


def _presented_secret(scope: Mapping[str, Any]) -> str:
    for name in KEY_HEADERS:
        value = header(scope, name.lower().encode())
        if value is not None:
            return presented_secret(name, value.decode("latin-1"))
    return ""
