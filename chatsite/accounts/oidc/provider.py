"""The sign-in provider: its discovery document and its keys.

They are read over HTTPS, or from this machine, and cached (see `CachedResponse`).
"""

import json
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

import httpx2
import jwt
from django.conf import settings

from chatsite.http.loopback import is_loopback
from chatsite.http.outgoing.bounded_request import ResponseEncoded, ResponseTooLarge, bounded_request

CACHE_TTL = 3_600.0
MIN_INTERVAL = 30.0  # minimum time between two requests for the discovery document, or for the keys
RETRY_SECONDS = 5.0  # minimum time between two requests while none has succeeded
WAITING_SECONDS = 6.0  # how long a thread waits for another thread's request
TIMEOUT = 5.0  # seconds for a whole request

Json = dict[str, Any]
T = TypeVar("T")

logger = logging.getLogger(__name__)


class ProviderUnavailable(Exception):
    """The provider cannot be reached, or its response is unusable."""


def is_safe(url: str) -> bool:
    """Whether a URL uses HTTPS or is on this machine; otherwise, its responses could be forged."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    if parts.scheme == "https":
        return bool(host)
    return parts.scheme == "http" and is_loopback(host)


def request(method: str, url: str, **arguments: Any) -> httpx2.Response:
    """Send a request: no redirects, at most five seconds and one megabyte.

    Without these limits, a provider could block everybody's sign-in by occupying a few threads.
    Raises ProviderUnavailable.
    """
    if not is_safe(url):
        raise ProviderUnavailable("An address of the provider is neither HTTPS nor on this machine.")
    try:
        return bounded_request(method, url, TIMEOUT, headers={"Accept": "application/json"}, **arguments)
    except ResponseTooLarge:
        raise ProviderUnavailable("The provider's response is too large.") from None
    except ResponseEncoded:
        raise ProviderUnavailable("The provider's response is compressed, although it must not be.") from None
    except (TimeoutError, httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        raise ProviderUnavailable("The provider cannot be reached.") from error


def json_of(response: httpx2.Response) -> Json:
    """The JSON object in a response. Raises ProviderUnavailable."""
    try:
        value = json.loads(response.content)
    except (ValueError, RecursionError) as error:
        raise ProviderUnavailable("The provider answered with something that is not JSON.") from error
    if not isinstance(value, dict):
        raise ProviderUnavailable("The provider answered with something that is not an object.")
    return value


@dataclass(frozen=True, slots=True)
class Key:
    """A public key for signatures; `algorithm` is empty if the provider does not name one."""

    identifier: str
    algorithm: str
    kind: str
    key: Json


class CachedResponse(Generic[T]):
    """A response of the provider, cached for all threads for an hour, or longer during an outage."""

    def __init__(self, read: Callable[[], T]) -> None:
        self._read = read
        self._value: T | None = None
        self._read_at = self._tried_at = float("-inf")
        self._reading = threading.Lock()

    def get(self, *, again: bool = False) -> T:
        """The value. `again` fetches a fresh one, unless that was tried in the last 30 seconds.

        Does not wait for another thread if there is an old value. Raises ProviderUnavailable.
        """
        value = self._value
        if value is not None and not again and time.monotonic() - self._read_at < CACHE_TTL:
            return value
        if not self._reading.acquire(timeout=0 if value is not None else WAITING_SECONDS):
            return self._or_unavailable()
        try:
            return self._refreshed()
        finally:
            self._reading.release()

    def _refreshed(self) -> T:
        pause = RETRY_SECONDS if self._value is None else MIN_INTERVAL
        if time.monotonic() - self._tried_at < pause:
            return self._or_unavailable()
        self._tried_at = time.monotonic()
        try:
            self._value = self._read()
            self._read_at = self._tried_at
        except ProviderUnavailable:
            if self._value is None:
                raise
            logger.warning("The sign-in provider cannot be reached; its earlier configuration is used")
        return self._or_unavailable()

    def _or_unavailable(self) -> T:
        if self._value is None:
            raise ProviderUnavailable("The provider could not be reached a moment ago.")
        return self._value


class Provider:
    """One sign-in provider."""

    def __init__(self, issuer: str, discovery_url: str, keys_url: str) -> None:
        self.issuer = issuer
        self._discovery_url = discovery_url or issuer.rstrip("/") + "/.well-known/openid-configuration"
        self._keys_url = keys_url
        self._document = CachedResponse(self._read_document)
        self._keys = CachedResponse(self._read_keys)

    def endpoint(self, name: str) -> str:
        """A URL from the discovery document. Raises ProviderUnavailable."""
        address = self._document.get().get(name)
        if not isinstance(address, str) or not is_safe(address):
            raise ProviderUnavailable(f"The provider names no usable {name}.")
        return address

    def supported(self, name: str) -> list[Any]:
        """A list from the discovery document; empty if it is missing. Raises ProviderUnavailable."""
        value = self._document.get().get(name)
        return value if isinstance(value, list) else []

    def keys_for(self, identifier: str | None) -> list[Key]:
        """The keys with that `kid`, or all keys if the token has no `kid`. Raises ProviderUnavailable."""
        found = _named(self._keys.get(), identifier)
        return found or _named(self._keys.get(again=True), identifier)

    def _read_document(self) -> Json:
        document = json_of(_good(request("GET", self._discovery_url)))
        if document.get("issuer") != self.issuer:
            raise ProviderUnavailable("The discovery document belongs to another issuer.")
        return document

    def _read_keys(self) -> list[Key]:
        listed = json_of(_good(request("GET", self._keys_url or self.endpoint("jwks_uri")))).get("keys")
        keys = []
        for item in listed if isinstance(listed, list) else []:
            if not isinstance(item, dict) or item.get("use", "sig") != "sig":
                continue
            kind, name, algorithm = (item.get(member, "") for member in ("kty", "kid", "alg"))
            if (
                kind not in {"RSA", "EC", "OKP"}
                or not isinstance(name, str)
                or not isinstance(algorithm, str)
            ):
                continue
            public = {member: value for member, value in item.items() if member not in {"d", "p", "q", "k"}}
            keys.append(Key(name, algorithm, kind, public))
        if not keys:
            raise ProviderUnavailable("The provider has no key that can be used.")
        return keys


def _named(keys: list[Key], identifier: str | None) -> list[Key]:
    return [key for key in keys if identifier is None or key.identifier == identifier]


def _good(response: httpx2.Response) -> httpx2.Response:
    if response.status_code != httpx2.codes.OK:
        raise ProviderUnavailable(f"The provider answered with {response.status_code}.")
    return response


_providers: dict[tuple[str, str, str], Provider] = {}


def provider() -> Provider | None:
    """The configured provider, or None if there is none."""
    if not settings.OIDC_ISSUER:
        return None
    names = (settings.OIDC_ISSUER, settings.OIDC_DISCOVERY_URL, settings.OIDC_JWKS_URL)
    return _providers.setdefault(names, Provider(*names))


def public_key(key: Key, algorithm: str) -> jwt.PyJWK:
    """The key for that algorithm. Raises PyJWTError if it is of another kind."""
    return jwt.PyJWK(key.key, algorithm=algorithm)
