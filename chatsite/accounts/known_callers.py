"""Whether a request comes from an account, decided before its body is read."""

from collections.abc import Mapping
from typing import Any

from django.contrib.auth import BACKEND_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore

from chatsite.http.body_limits import header, session_key

from .authentication import KEY_HEADERS, is_caller, presented_secret
from .guests import BACKEND as GUEST_BACKEND


def is_known(scope: Mapping[str, Any], guests: bool) -> bool:
    """Look up the key or the session of an ASGI scope; `guests` tells whether a guest's session counts."""
    if secret := _presented_secret(scope):
        return is_caller(secret)
    key = session_key(scope)
    session = SessionStore(key) if key else {}
    return SESSION_KEY in session and (guests or session[BACKEND_SESSION_KEY] != GUEST_BACKEND)


def _presented_secret(scope: Mapping[str, Any]) -> str:
    for name in KEY_HEADERS:
        value = header(scope, name.lower().encode())
        if value is not None:
            return presented_secret(name, value.decode("latin-1"))
    return ""
