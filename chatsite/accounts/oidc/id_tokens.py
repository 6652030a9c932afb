"""Verifies that a token is valid now, and issued by the site's provider for this site.

ID tokens are for this site's client (OIDC_AUDIENCE). Access tokens, also of other clients, are accepted if
their audience is the `resource` that the caller of `verify` names (RFC 8707).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from django.conf import settings

from .provider import Key, Provider, ProviderUnavailable, public_key

__all__ = ["Claims", "InvalidToken", "ProviderUnavailable", "looks_like_token", "verify"]

MAX_CHARACTERS = 16_384
LEEWAY = 30  # seconds by which clocks may differ
LATEST = 253_370_764_800  # 1 January 9999, the latest expiry that is stored; some providers send milliseconds
RSA_BITS = 2_048
# Algorithms by type of key. Only asymmetric ones: with HS256, everyone who knows the public key could sign.
ALGORITHMS = {
    "RSA": frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}),
    "EC": frozenset({"ES256", "ES384", "ES512"}),
    "OKP": frozenset({"EdDSA"}),
}
KNOWN_ALGORITHMS = frozenset().union(*ALGORITHMS.values())
# Header members with which a token could choose its own key, or change how it is interpreted.
REFUSED_MEMBERS = frozenset({"jku", "x5u", "jwk", "x5c", "crit", "b64", "zip", "enc"})
SUBJECT_CLAIMS = ("sub", "oid")
ACCESS_TOKEN = frozenset({"AT+JWT", "APPLICATION/AT+JWT"})  # types of RFC 9068
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
REQUIRED = ["exp", "iat", "iss", "sub", "aud"]
BROKEN = (jwt.PyJWTError, ValueError, TypeError, KeyError, OverflowError, RecursionError)


class InvalidToken(Exception):
    """A token that this site does not accept. The message is for the log, not for the caller."""


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims of a token about a person.

    `groups` is empty if the token has none, or too many to list. `subject` is the value of the claim
    OIDC_SUBJECT_CLAIM. `subjects` has the values of all claims that may identify a person, by claim, to find
    accounts linked by another claim.
    """

    issuer: str
    subject: str
    subjects: Mapping[str, str]
    issued_at: int
    expires_at: int
    groups: frozenset[str]
    username: str
    first_name: str
    last_name: str


def looks_like_token(secret: str) -> bool:
    """Whether the text has three parts separated by dots, which no API key has."""
    return secret.count(".") == 2


def verify(token: str, provider: Provider, nonce: str | None = None, *, resource: str = "") -> Claims:
    """The claims of a valid ID token, or of an access token for `resource`.

    Raises InvalidToken, or ProviderUnavailable if the keys cannot be fetched.
    """
    header = _header(token)
    is_access_token = header.get("typ", "").upper() in ACCESS_TOKEN
    if is_access_token and not resource:
        raise InvalidToken("It is an access token.")
    audiences = [resource] if is_access_token else list(filter(None, [settings.OIDC_AUDIENCE, resource]))
    algorithm = header["alg"]
    for key in provider.keys_for(header.get("kid")):
        if algorithm in ALGORITHMS[key.kind] and key.algorithm in {"", algorithm}:
            claims = _decoded(token, key, algorithm, provider.issuer, audiences)
            if claims is not None:
                return _checked(claims, nonce, resource)
    raise InvalidToken("It was not signed with a key of the provider.")


def _header(token: str) -> dict[str, Any]:
    if len(token) > MAX_CHARACTERS:
        raise InvalidToken("It is too long.")
    try:
        header = jwt.get_unverified_header(token)
    except BROKEN as error:
        raise InvalidToken("Its header cannot be read.") from error
    kind, algorithm, identifier = header.get("typ", "JWT"), header.get("alg"), header.get("kid")
    if not isinstance(kind, str) or kind.upper() not in {"JWT", *ACCESS_TOKEN}:
        raise InvalidToken("It is a token of another type.")
    if not isinstance(algorithm, str) or algorithm not in KNOWN_ALGORITHMS:
        raise InvalidToken("Its algorithm is not accepted.")
    if REFUSED_MEMBERS & header.keys() or not isinstance(identifier, str | None):
        raise InvalidToken("Its header has members that are not accepted.")
    return header


def _decoded(
    token: str, key: Key, algorithm: str, issuer: str, audiences: list[str]
) -> dict[str, Any] | None:
    """The claims of a token, or None if it was signed with another key. Raises InvalidToken."""
    try:
        public = public_key(key, algorithm)
        if isinstance(public.key, RSAPublicKey) and public.key.key_size < RSA_BITS:
            raise InvalidToken("The provider's key is too short.")
        return jwt.decode(
            token,
            public,
            algorithms=[algorithm],
            audience=audiences,
            issuer=issuer,
            leeway=LEEWAY,
            options={"require": REQUIRED},
        )
    except jwt.InvalidSignatureError:
        return None
    except BROKEN as error:
        raise InvalidToken(f"It is not valid: {type(error).__name__}.") from error


def _checked(claims: dict[str, Any], nonce: str | None, resource: str) -> Claims:
    """The claims, after the checks that PyJWT does not make. Raises InvalidToken."""
    if "events" in claims:  # OpenID Connect Back-Channel Logout 1.0, section 2.4
        raise InvalidToken("It is a logout token.")
    audience, party = claims["aud"], claims.get("azp")
    several = isinstance(audience, list) and len(audience) > 1
    is_for_resource = bool(resource) and resource in (audience if isinstance(audience, list) else [audience])
    if (party is not None or several) and party != settings.OIDC_AUDIENCE and not is_for_resource:
        raise InvalidToken("It was issued to another client.")
    if nonce is not None and claims.get("nonce") != nonce:
        raise InvalidToken("It does not belong to this sign-in.")
    subjects = {
        name: subject
        for name in SUBJECT_CLAIMS
        if isinstance(subject := claims.get(name), str)
        and subject.strip()
        and len(subject) <= 255
        and _is_storable(subject)
    }
    if "sub" not in subjects or settings.OIDC_SUBJECT_CLAIM not in subjects:
        raise InvalidToken(f"It has no usable claim “sub” or “{settings.OIDC_SUBJECT_CLAIM}”.")
    # For a person in too many groups, providers send a reference instead; it counts as no groups.
    sent = claims.get(settings.OIDC_GROUPS_CLAIM)
    names = [sent] if isinstance(sent, str) else sent if isinstance(sent, list) else []
    groups = frozenset(name for name in names if isinstance(name, str) and 0 < len(name) <= 255)
    if not all(map(_is_storable, groups)):
        raise InvalidToken("A group in it has a name that cannot be stored.")
    return Claims(
        issuer=claims["iss"],
        subject=subjects[settings.OIDC_SUBJECT_CLAIM],
        subjects=subjects,
        issued_at=int(claims["iat"]),
        expires_at=min(int(claims["exp"]) + LEEWAY, LATEST),
        groups=groups,
        username=_text(claims, "preferred_username"),
        first_name=_text(claims, "given_name") or _text(claims, "name"),
        last_name=_text(claims, "family_name") if _text(claims, "given_name") else "",
    )


def _is_storable(text: str) -> bool:
    """Whether PostgreSQL can store the text: it has no NUL characters or lone surrogates."""
    return not UNSTORABLE.search(text)


def _text(claims: dict[str, Any], name: str) -> str:
    value = claims.get(name)
    return value if isinstance(value, str) else ""
