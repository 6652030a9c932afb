"""The text of an API key, its hash, and what a key may do.

A key holds 256 random bits, so one SHA-256 is enough: there is nothing to guess, and a slow hash
would only slow every request.
"""

import hashlib
import secrets
from ipaddress import ip_address, ip_network

from django.db import models
from django.utils.translation import gettext_lazy

KEY_PREFIX_LENGTH = 12
MAX_ADDRESSES = 50


class Scope(models.TextChoices):
    """What a key may be used for; never more than its person may do."""

    CHAT = "chat", gettext_lazy("Ask questions, and read and change the conversations")
    SEARCH = "search", gettext_lazy("Search the documents")
    DOCUMENTS_READ = "documents:read", gettext_lazy("List and open documents")
    DOCUMENTS_WRITE = "documents:write", gettext_lazy("Add, change and delete documents")
    WEBHOOKS = "webhooks", gettext_lazy("Have events sent to an address of its own")
    # Beside documents:write; of a key whose person is not staff it means nothing.
    ADMIN_DOCUMENTS = (
        "admin:documents",
        gettext_lazy("Do to documents of others what its person may as staff"),
    )


STAFF_SCOPES = frozenset({Scope.ADMIN_DOCUMENTS})
# Also those of keys that were created before keys had scopes: what every key could do until then.
DEFAULT_SCOPES = [str(scope) for scope in (Scope.CHAT, Scope.SEARCH, Scope.DOCUMENTS_READ)]


def default_scopes() -> list[str]:
    return list(DEFAULT_SCOPES)


def scopes_for(is_staff: bool) -> list[Scope]:
    """The scopes that mean something for a person's keys."""
    return [scope for scope in Scope if is_staff or scope not in STAFF_SCOPES]


def network_of(text: str) -> str:
    """An address or a range of addresses as PostgreSQL takes it. Raises ValueError."""
    if "%" in text:
        raise ValueError("An address with the name of an interface means nothing elsewhere.")
    return str(ip_network(text.strip()))


def address_of(text: str) -> str | None:
    """A caller's address, IPv4 also where a socket gives it as IPv6; None for one that is unknown."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return str(getattr(address, "ipv4_mapped", None) or address)


def new_key() -> str:
    return "chs_" + secrets.token_urlsafe(32)


def hash_key(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
