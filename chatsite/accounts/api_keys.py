"""API keys: their text, hash and scopes.

A key has 256 random bits and cannot be guessed, so a single SHA-256 is enough; a slow hash would delay every
request.
"""

import hashlib
import secrets
from ipaddress import ip_address, ip_network

from django.db import models
from django.utils.translation import gettext, gettext_lazy

KEY_PREFIX_LENGTH = 12
MAX_ADDRESSES = 50


class Scope(models.TextChoices):
    """What a key may be used for, within the rights of its owner."""

    CHAT = "chat", gettext_lazy("Ask questions, and read and change the conversations")
    SEARCH = "search", gettext_lazy("Search the documents")
    DOCUMENTS_READ = "documents:read", gettext_lazy("List and open documents")
    DOCUMENTS_WRITE = "documents:write", gettext_lazy("Add, change and delete documents")
    WEBHOOKS = "webhooks", gettext_lazy("Have events sent to an address")
    # Needed in addition to documents:write; has no effect unless the key's owner is staff.
    ADMIN_DOCUMENTS = (
        "admin:documents",
        gettext_lazy("Change other people's documents, as its person may as staff"),
    )


STAFF_SCOPES = frozenset({Scope.ADMIN_DOCUMENTS})
# The scopes of new keys by default. Keys created before scopes existed have them, too: they allow what such
# keys could do.
DEFAULT_SCOPES = [str(scope) for scope in (Scope.CHAT, Scope.SEARCH, Scope.DOCUMENTS_READ)]


def default_scopes() -> list[str]:
    return list(DEFAULT_SCOPES)


def scopes_for(is_staff: bool) -> list[Scope]:
    """The scopes that have an effect for a person's keys."""
    return [scope for scope in Scope if is_staff or scope not in STAFF_SCOPES]


def network_of(text: str) -> str:
    """An address or an address range in PostgreSQL's notation. Raises ValueError."""
    if "%" in text:
        raise ValueError(gettext("Addresses with an interface name cannot be used here."))
    try:
        return str(ip_network(text.strip()))
    except ValueError:
        words = gettext("“%(text)s” is not an address or network.")
        raise ValueError(words % {"text": text.strip()}) from None


def address_of(text: str) -> str | None:
    """A caller's address, with an IPv4-mapped IPv6 address as IPv4; None if unknown."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return str(getattr(address, "ipv4_mapped", None) or address)


def new_key() -> str:
    return "chs_" + secrets.token_urlsafe(32)


def hash_key(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
