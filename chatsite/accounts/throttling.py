"""How often somebody may guess a password: ten times in a quarter of an hour for one name from one address.

Attempts stand in the database, so that every process counts the same ones. Each is counted before its
password is looked at, under a lock for that name and address: guesses sent at once are not more guesses.
"""

import hashlib
import unicodedata
from datetime import timedelta

from django.db import connection, transaction
from django.utils import timezone

from .models import SignInAttempt

LIMIT = 10
WINDOW = timedelta(minutes=15)


def _digest(username: str, address: str) -> str:
    # Hashed, because people type passwords into the field for the name.
    name = unicodedata.normalize("NFKC", username).casefold()
    return hashlib.sha256(f"{address}\n{name}".encode("utf-8", "replace")).hexdigest()


def admit(username: str, address: str) -> bool:
    """Count one attempt; False, and nothing counted, when there were too many already."""
    digest = _digest(username, address)
    since = timezone.now() - WINDOW
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [digest])
        SignInAttempt.objects.filter(digest=digest, created_at__lt=since).delete()
        if SignInAttempt.objects.filter(digest=digest).count() >= LIMIT:
            return False
        SignInAttempt.objects.create(digest=digest)
    return True


def forget(username: str, address: str) -> None:
    """The attempt succeeded: what went before it was a slip. Old attempts of others go too."""
    SignInAttempt.objects.filter(digest=_digest(username, address)).delete()
    SignInAttempt.objects.filter(created_at__lt=timezone.now() - WINDOW).delete()
