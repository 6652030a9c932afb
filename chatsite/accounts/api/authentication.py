"""Authentication of API callers.

A key or token in a header takes precedence over the cookie.
"""

import logging
from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext, gettext_lazy
from rest_framework import authentication, exceptions, status
from rest_framework.request import Request

from chatsite.accounts.api_keys import address_of, hash_key
from chatsite.accounts.audit import record
from chatsite.accounts.models import AuditEntry, User
from chatsite.accounts.oidc.claimed_accounts import AccountDisabled, ClaimMismatch, user_for
from chatsite.accounts.oidc.id_tokens import InvalidToken, looks_like_token, verify
from chatsite.accounts.oidc.provider import ProviderUnavailable, provider
from chatsite.accounts.principal import Principal, principal_of
from chatsite.db.sql_files import instances, rows_of_each
from chatsite.db.threads import request_reads_as
from chatsite.dependency_internals import django_request
from chatsite.http.languages import activate_person_settings
from chatsite.http.origins import proves_same_origin

logger = logging.getLogger(__name__)

KEY_HEADERS = ("Authorization", "api-key", "X-Api-Key")  # by precedence: the first that is present is used
ON_BEHALF_OF = "X-On-Behalf-Of"
LAST_USED_PRECISION = timedelta(minutes=1)
# Finds the owner of a valid key and records its last use, in one query for each request.
HOLDER_OF_KEY = """
    WITH held AS (
        SELECT key.id, key.user_id, key.scopes, key.acts_for_others
        FROM accounts_apikey AS key JOIN accounts_user AS holder ON holder.id = key.user_id
        WHERE key.digest = %(digest)s AND key.revoked_at IS NULL AND holder.is_active
            AND (key.expires_at IS NULL OR key.expires_at > %(now)s)
            AND (cardinality(key.addresses) = 0 OR %(address)s::inet <<= ANY(key.addresses::cidr[]))
    ), used AS (
        UPDATE accounts_apikey AS key SET last_used_at = %(now)s FROM held
        WHERE key.id = held.id AND (key.last_used_at IS NULL OR key.last_used_at < %(before)s)
    )
    SELECT holder.*, held.id AS key_id, held.scopes AS key_scopes, held.acts_for_others
    FROM held JOIN accounts_user AS holder ON holder.id = held.user_id
"""

MAX_HOLDERS = 10_000
_holders: dict[str, int] = {}  # account ids, by the hash of a verified key or token, or by a session's key


class ProviderAway(exceptions.APIException):
    """ID tokens cannot be verified at the moment."""

    status_code = status.HTTP_503_SERVICE_UNAVAILABLE
    default_detail = gettext_lazy("The sign-in provider cannot be reached. Try again in a moment.")
    default_code = "provider_unavailable"


class BearerAuthentication(authentication.BaseAuthentication):
    """Authenticates by an API key or ID token in one of KEY_HEADERS.

    Any other `Authorization` header is refused. A subclass with a `resource` also accepts access tokens for
    that resource.
    """

    def resource(self) -> str:
        """The audience of access tokens; none are accepted if it is empty."""
        return ""

    def authenticate(self, request: Request) -> tuple[User, Principal] | None:
        header = next((name for name in KEY_HEADERS if name in request.headers), None)
        if header is None:
            return None
        secret = presented_secret(header, request.headers[header])
        if not secret:
            expected = "“Bearer” and a key" if header == "Authorization" else "a key"
            raise exceptions.AuthenticationFailed(f"The {header} header must be {expected}.")
        known = caller(secret, self.resource(), request.META.get("REMOTE_ADDR", ""))
        if known is None:
            raise exceptions.AuthenticationFailed(
                gettext("The key in the %(header)s header is not valid.") % {"header": header}
            )
        if ON_BEHALF_OF in request.headers:
            known = _on_behalf(known, request.headers[ON_BEHALF_OF].strip(), request)
        request_reads_as(known[1].user_id)
        activate_person_settings(known[0])
        return known

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


def presented_secret(header: str, value: str) -> str:
    """The key or token in the value of one of KEY_HEADERS; empty if there is none."""
    if header != "Authorization":
        return value.strip()
    scheme, _, secret = value.partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else ""


def presents_key(request: HttpRequest) -> bool:
    """Whether the request has a key or token, valid or not; its cookies are then ignored."""
    return any(name in request.headers for name in KEY_HEADERS)


def caller(secret: str, resource: str = "", address: str = "") -> tuple[User, Principal] | None:
    """The owner of an API key, an ID token, or an access token for `resource`; None if it is invalid.

    `address` is the client's address: a key may be restricted to certain addresses. Raises ProviderAway.
    """
    found = _verified(secret, resource, address)
    _note_holder(hash_key(secret), found[0].pk if found else None)
    return found


def holder_of(secret: str) -> int | None:
    """The holder of a key or token, if this process has verified it before."""
    return _holders.get(hash_key(secret))


def holder_of_session(key: str) -> int | None:
    """The person whose session this is, if this process has looked it up before."""
    return _holders.get(f"session {key}")


def note_session(key: str | None, user_id: int | None) -> None:
    """Remember whose session this is; `user_id` is None if it has ended."""
    if key:
        _note_holder(f"session {key}", user_id)


def _note_holder(presented: str, user_id: int | None) -> None:
    if user_id is None:
        _holders.pop(presented, None)
        return
    if len(_holders) >= MAX_HOLDERS:
        _holders.clear()
    _holders[presented] = user_id


def _verified(secret: str, resource: str, address: str) -> tuple[User, Principal] | None:
    source = provider()
    if source and looks_like_token(secret):
        try:
            claims = verify(secret, source, resource=resource)
            user = user_for(claims)
        except ProviderUnavailable as error:
            logger.warning("An ID token cannot be verified: %s", error)
            raise ProviderAway from error
        except (InvalidToken, ClaimMismatch, AccountDisabled) as error:
            logger.info("An ID token was refused: %s", error)
            return None
        return user, Principal(user.pk, "token", str(claims.expires_at))
    now = timezone.now()
    parameters = {
        "digest": hash_key(secret),
        "now": now,
        "before": now - LAST_USED_PRECISION,
        "address": address_of(address),
    }
    for user in instances(User, rows_of_each([HOLDER_OF_KEY], parameters)[0]):
        key: Any = user  # also has the columns of the key
        return user, Principal(user.pk, "api_key", str(key.key_id), frozenset(key.key_scopes))
    return None


def caller_id(secret: str, address: str = "") -> str:
    """The id of the account of a key or token, or an empty string."""
    try:
        found = caller(secret, address=address)
    except ProviderAway:
        return ""
    return str(found[0].pk) if found else ""


def _on_behalf(known: tuple[User, Principal], name: str, request: Request) -> tuple[User, Principal]:
    """The person for whom a program acts, with a principal limited to the key's scopes.

    Adds an audit entry. Raises PermissionDenied if the key may not act for others. No key may act for staff,
    superusers, guests, service accounts, disabled or unknown people; the error does not say which applies.
    """
    account, principal = known
    if not getattr(account, "acts_for_others", False):
        raise exceptions.PermissionDenied(
            gettext("Only API keys that may act for others can send %(header)s.") % {"header": ON_BEHALF_OF}
        )
    people = User.objects.filter(is_active=True, is_staff=False, is_superuser=False, guest_until=None)
    person = people.filter(username=name.replace("\0", ""), service_for="").first()
    if person is None:
        raise exceptions.PermissionDenied(gettext("This key may not act for a person with this name."))
    subject = f"{request.method} {request.path}"
    record(AuditEntry.Action.ACTED_FOR, actor=account, person=person, subject=subject)
    return person, replace(principal, user_id=person.pk)


class SessionAuthentication(authentication.SessionAuthentication):
    """The portal's session. Unsafe requests need the same origin, or the CSRF token."""

    def authenticate(self, request: Request) -> tuple[Any, Principal] | None:
        found = super().authenticate(request)
        if found is None:
            if getattr(django_request(request), "refused_guest", False):
                raise exceptions.NotAuthenticated(gettext("This is for people with an account. Sign in."))
            if request.COOKIES.get(settings.SESSION_COOKIE_NAME):
                raise exceptions.NotAuthenticated(
                    gettext("The session of this cookie has ended. Sign in again.")
                )
            return None
        user = found[0]
        request_reads_as(user.pk)
        return user, principal_of(user, django_request(request).session.session_key)

    def enforce_csrf(self, request: Request) -> None:
        # A request that creates a guest has no session cookie, so another site has no session to abuse.
        original = django_request(request)
        if not getattr(original, "new_guest", False) and not proves_same_origin(original):
            super().enforce_csrf(request)

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


def session_principal(request: HttpRequest) -> Principal:
    """The principal of a request to a page of the portal or admin that requires a session."""
    assert isinstance(request.user, User)
    return principal_of(request.user, request.session.session_key)
