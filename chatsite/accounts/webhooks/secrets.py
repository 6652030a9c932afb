"""Signing secrets of webhooks, stored encrypted instead of hashed: signatures need the plain text."""

import base64
import hashlib
import hmac
import secrets

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings

PREFIX = "whsec_"
SECRET_BYTES = 32
PURPOSE = b"chatsite.webhooks.secrets"


class Unreadable(Exception):
    """A secret was encrypted with a secret key that the site does not have any more."""


def new_secret() -> str:
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def encrypt(secret: str) -> str:
    return _cipher().encrypt(secret.encode()).decode()


def decrypt(stored: str) -> str:
    """The plain text of a stored secret. Raises Unreadable."""
    try:
        return _cipher().decrypt(stored.encode()).decode()
    except InvalidToken as error:
        raise Unreadable from error


def signature(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """The signature of a message by the scheme v1 of Standard Webhooks."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    signed = b"%s.%d.%s" % (message_id.encode(), timestamp, body)
    return "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()


def _cipher() -> MultiFernet:
    """A cipher for webhook secrets, derived from the site's secret key. Former keys can still decrypt."""
    keys = [str(key) for key in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)]
    return MultiFernet(
        [Fernet(base64.urlsafe_b64encode(hmac.digest(key.encode(), PURPOSE, hashlib.sha256))) for key in keys]
    )
