"""How the API recognises its callers. A presented header decides alone: it never falls back to the cookie."""

from datetime import timedelta
from typing import Any

from django.http import HttpRequest
from django.utils import timezone
from rest_framework import authentication, exceptions
from rest_framework.request import Request

from .keys import hash_key
from .models import ApiKey, User
from .principals import Principal

LAST_USED_PRECISION = timedelta(minutes=1)


class ApiKeyAuthentication(authentication.BaseAuthentication):
    """`Authorization: Bearer <key>`; any other Authorization header is refused."""

    def authenticate(self, request: Request) -> tuple[User, Principal] | None:
        header = request.headers.get("Authorization")
        if header is None:
            return None
        scheme, _, secret = header.partition(" ")
        if scheme.lower() != "bearer" or not secret.strip():
            raise exceptions.AuthenticationFailed("The Authorization header must be “Bearer” and a key.")
        key = ApiKey.objects.usable().select_related("user").filter(digest=hash_key(secret.strip())).first()
        if key is None:
            raise exceptions.AuthenticationFailed("The key in the Authorization header is not valid.")
        now = timezone.now()
        if key.last_used_at is None or key.last_used_at < now - LAST_USED_PRECISION:
            ApiKey.objects.filter(pk=key.pk).update(last_used_at=now)
        return key.user, Principal(key.user_id, "api_key", str(key.pk))

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class SessionAuthentication(authentication.SessionAuthentication):
    """The portal's session, with CSRF protection; refused callers get 401, not 403."""

    def authenticate(self, request: Request) -> tuple[Any, Principal] | None:
        found = super().authenticate(request)
        if found is None:
            return None
        user = found[0]
        return user, Principal(user.pk, "session", request._request.session.session_key or "")

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


def session_principal(request: HttpRequest) -> Principal:
    """The principal of a portal page; the view has made sure that someone is signed in."""
    assert request.user.pk is not None
    return Principal(request.user.pk, "session", request.session.session_key or "")
