"""The text of an API key and its hash.

A key holds 256 random bits, so one SHA-256 is enough: there is nothing to guess, and a slow hash
would only slow every request.
"""

import hashlib
import secrets

KEY_PREFIX_LENGTH = 12


def new_key() -> str:
    return "chs_" + secrets.token_urlsafe(32)


def hash_key(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
