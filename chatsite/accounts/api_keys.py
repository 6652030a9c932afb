"""The text of an API key, its hash, and what a key may do.

A key holds 256 random bits, so one SHA-256 is enough: there is nothing to guess, and a slow hash
would only slow every request.
"""

import hashlib
import secrets

from django.db import models
from django.utils.translation import gettext_lazy

KEY_PREFIX_LENGTH = 12


class Scope(models.TextChoices):
    """What a key may be used for; never more than its person may do."""

    CHAT = "chat", gettext_lazy("Ask questions, and read and change the conversations")
    SEARCH = "search", gettext_lazy("Search the documents")
    DOCUMENTS_READ = "documents:read", gettext_lazy("List and open documents")
    DOCUMENTS_WRITE = "documents:write", gettext_lazy("Add, change and delete documents")


# Also those of keys that were created before keys had scopes: what every key could do until then.
DEFAULT_SCOPES = [str(scope) for scope in (Scope.CHAT, Scope.SEARCH, Scope.DOCUMENTS_READ)]


def default_scopes() -> list[str]:
    return list(DEFAULT_SCOPES)


def new_key() -> str:
    return "chs_" + secrets.token_urlsafe(32)


def hash_key(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
