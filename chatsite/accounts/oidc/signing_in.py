"""Signing in to the portal through the provider.

This is the authorization code flow with PKCE, state and nonce. The session stores the values of each attempt,
so that a response to somebody else's attempt is refused.
"""

import base64
import hashlib
import secrets
import time
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import quote_plus, urlencode, urlsplit, urlunsplit

import httpx2
from django.conf import settings
from django.contrib.sessions.backends.base import SessionBase

from .id_tokens import Claims, InvalidToken, verify
from .provider import Provider, ProviderUnavailable, json_of, request

IN_SESSION = "oidc_attempts"
MAX_ATTEMPTS = 5  # concurrent attempts in one session, because people open several tabs
ATTEMPT_SECONDS = 600
BY_PROVIDER = "oidc_signed_in"  # set in the session of a person who signed in through the provider


class SignInFailed(Exception):
    """Signing in failed. The message is for the log."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt to sign in, stored in the session until the browser returns."""

    nonce: str
    verifier: str
    next: str
    begun_at: int


def begin(source: Provider, session: SessionBase, callback: str, destination: str) -> str:
    """Store a new attempt in the session, and return the provider's URL for the redirect.

    Raises ProviderUnavailable.
    """
    parts = urlsplit(source.endpoint("authorization_endpoint"))
    state = secrets.token_urlsafe(32)
    attempt = Attempt(secrets.token_urlsafe(32), secrets.token_urlsafe(48), destination, int(time.time()))
    kept = list(_attempts(session).items())[1 - MAX_ATTEMPTS :]
    session[IN_SESSION] = {**dict(kept), state: asdict(attempt)}
    challenge = hashlib.sha256(attempt.verifier.encode()).digest()
    parameters = {
        "response_type": "code",
        "client_id": settings.OIDC_AUDIENCE,
        "redirect_uri": callback,
        "scope": settings.OIDC_SCOPES,
        "state": state,
        "nonce": attempt.nonce,
        "code_challenge": base64.urlsafe_b64encode(challenge).rstrip(b"=").decode(),
        "code_challenge_method": "S256",
    }
    query = "&".join(filter(None, [parts.query, urlencode(parameters)]))
    return urlunsplit(parts._replace(query=query, fragment=""))


def take_attempt(session: SessionBase, state: str) -> Attempt | None:
    """Remove and return the session's attempt with this state, so that it cannot be used twice."""
    attempts = _attempts(session)
    found = attempts.pop(state, None)
    session[IN_SESSION] = attempts
    return Attempt(**found) if found else None


def finish(source: Provider, attempt: Attempt | None, callback: str, answer: dict[str, str]) -> Claims:
    """The claims of the person who signed in at the provider. Raises SignInFailed or ProviderUnavailable."""
    if attempt is None:
        raise SignInFailed("The state does not belong to this session.")
    if time.time() - attempt.begun_at > ATTEMPT_SECONDS:
        raise SignInFailed("The attempt is too old.")
    if answer.get("iss", source.issuer) != source.issuer:
        raise SignInFailed("The response is from another provider.")
    if not answer.get("code"):
        raise SignInFailed("The provider sent no code.")
    token = _exchanged(source, answer["code"], attempt.verifier, callback)
    try:
        return verify(token, source, attempt.nonce)
    except InvalidToken as error:
        raise SignInFailed(f"The ID token was refused: {error}") from error


def sign_out_address(source: Provider) -> str:
    """The URL at which the person can end their session with the provider; empty if none.

    It has no `post_logout_redirect_uri`, which providers refuse unless it has been registered.
    """
    try:
        parts = urlsplit(source.endpoint("end_session_endpoint"))
    except ProviderUnavailable:
        return ""
    query = "&".join(filter(None, [parts.query, urlencode({"client_id": settings.OIDC_AUDIENCE})]))
    return urlunsplit(parts._replace(query=query, fragment=""))


def _exchanged(source: Provider, code: str, verifier: str, callback: str) -> str:
    """Exchange the code for an ID token at the provider."""
    fields = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": callback,
        "client_id": settings.OIDC_AUDIENCE,
        "code_verifier": verifier,
    }
    arguments: dict[str, Any] = {"data": fields}
    secret: str = settings.OIDC_CLIENT_SECRET
    methods = source.supported("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
    if secret and "client_secret_basic" in methods:
        # RFC 6749 (2.3.1) requires form encoding: the client's id may contain a colon.
        arguments["auth"] = httpx2.BasicAuth(quote_plus(settings.OIDC_AUDIENCE), quote_plus(secret))
    elif secret:
        fields["client_secret"] = secret
    response = request("POST", source.endpoint("token_endpoint"), **arguments)
    if response.status_code >= httpx2.codes.INTERNAL_SERVER_ERROR:
        raise ProviderUnavailable(f"The token endpoint answered with {response.status_code}.")
    token = json_of(response).get("id_token")
    if response.status_code != httpx2.codes.OK or not isinstance(token, str):
        raise SignInFailed(f"The token endpoint returned no ID token ({response.status_code}).")
    return token


def _attempts(session: SessionBase) -> dict[str, dict[str, Any]]:
    found = session.get(IN_SESSION)
    return dict(found) if isinstance(found, dict) else {}
