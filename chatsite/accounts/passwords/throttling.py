"""Limits on guessing passwords.

There are limits for one name from one address, and for one address. The first few failures cause no delay;
after them, attempts are allowed only at intervals. A name is never blocked, because anyone could then lock
other people out by failing in their name. If a name has very many failures from all addresses together, its
limit from each address is lower. Browsers in which the person has signed in before have only their own limit.

Attempts are stored in the database, so that all processes count them together. Each attempt is counted
before its password is checked, under locks, so that simultaneous guesses gain nothing.
"""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil

from django.core import signing
from django.db import connection, transaction
from django.db.models import Count, Max
from django.utils import timezone

from chatsite.accounts.models import SignInAttempt
from chatsite.http.address_limit import IPV6_SITE_PREFIX, subscriber
from chatsite.normal_form import normal_form

WINDOW = timedelta(minutes=15)
DEVICE_AGE = timedelta(days=180)
DEVICE_SALT = "chatsite.accounts.device"
ATTACK_FAILURES = 50  # a name with this many failures, from all addresses together, counts as attacked


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit on failures in the window.

    After `free` failures, one attempt is allowed every `spacing` seconds.
    """

    free: int
    spacing: int


PAIR = Limit(10, 15)
ATTACKED_PAIR = Limit(3, 60)
ADDRESS = Limit(60, 5)


class TooManyAttempts(Exception):
    """The attempt is refused without a check; the next one is allowed after `seconds`.

    `first` says whether this is the first refusal in the window: of the address if its own limit is exceeded,
    otherwise of this name from this address or browser.
    """

    def __init__(self, seconds: int, first: bool) -> None:
        super().__init__(f"Too many attempts; wait {seconds} seconds.")
        self.seconds = seconds
        self.first = first


@dataclass(frozen=True, slots=True)
class Attempt:
    """An allowed attempt.

    If it succeeds, its `rows` and all rows with the digest `pair` are deleted.
    """

    rows: Sequence[int]
    pair: str


def admit(username: str, address: str, device: str = "") -> Attempt:
    """Count one attempt. Raises TooManyAttempts, without counting it, if there were too many."""
    network = subscriber(address, IPV6_SITE_PREFIX)
    pair = _digest("device", _name(username), device) if device else _digest("pair", _name(username), network)
    everywhere, from_there = _digest("name", _name(username)), _digest("address", network)
    counted = [pair] if device else [pair, everywhere, from_there]
    now = timezone.now()
    with transaction.atomic():
        _lock(counted)
        found = _failures(counted, now)
        attacked = found.get(everywhere, (0, now))[0] >= ATTACK_FAILURES
        limits = {pair: ATTACKED_PAIR if attacked else PAIR, from_there: ADDRESS}
        waits = {}
        for digest, limit in limits.items():
            failures, last = found.get(digest, (0, now))
            if failures >= limit.free:
                waits[digest] = max(0, ceil(limit.spacing - (now - last).total_seconds()))
        seconds = max(waits.values(), default=0)
        if seconds:
            refused = _digest("refused", from_there if waits.get(from_there) else pair)
            first = not _failures([refused], now)
            if first:
                SignInAttempt.objects.create(digest=refused)
        else:
            rows = SignInAttempt.objects.bulk_create(SignInAttempt(digest=digest) for digest in counted)
    if seconds:
        raise TooManyAttempts(seconds, first)
    return Attempt([row.pk for row in rows], pair)


def forget(attempt: Attempt) -> None:
    """Delete a successful attempt, and the name's failures from the same address or browser.

    Those failures were probably typos. Also deletes expired rows.
    """
    SignInAttempt.objects.filter(pk__in=attempt.rows).delete()
    SignInAttempt.objects.filter(digest=attempt.pair).delete()
    SignInAttempt.objects.filter(created_at__lt=timezone.now() - WINDOW).delete()


def is_recorded(username: str, address: str) -> bool:
    """Whether to record a refusal of the sign-in provider.

    This is so for the first few of a name from one address, so that an attacker cannot fill the logs. The
    name is empty if the account is unknown.
    """
    digest = _digest("provider", _name(username), subscriber(address, IPV6_SITE_PREFIX))
    now = timezone.now()
    with transaction.atomic():
        _lock([digest])
        recorded, _ = _failures([digest], now).get(digest, (0, now))
        if recorded >= PAIR.free:
            return False
        SignInAttempt.objects.filter(created_at__lt=now - WINDOW).delete()
        SignInAttempt.objects.create(digest=digest)
    return True


def new_device(username: str) -> str:
    """A cookie for a browser in which that person has just signed in."""
    return signing.dumps([_digest("owner", _name(username)), secrets.token_urlsafe(9)], salt=DEVICE_SALT)


def known_device(cookie: str, username: str) -> str:
    """The browser's random id if that person has signed in with it before; otherwise empty."""
    try:
        owner, number = signing.loads(cookie, salt=DEVICE_SALT, max_age=DEVICE_AGE)
    except (signing.BadSignature, TypeError, ValueError):
        return ""
    return str(number) if owner == _digest("owner", _name(username)) else ""


def _lock(digests: Sequence[str]) -> None:
    """Wait for other transactions that count for one of these digests."""
    with connection.cursor() as cursor:
        for digest in sorted(digests):
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [digest])


def _failures(digests: Sequence[str], now: datetime) -> dict[str, tuple[int, datetime]]:
    """For each digest with failures in the window, their number and the time of the last one."""
    rows = SignInAttempt.objects.filter(digest__in=digests, created_at__gt=now - WINDOW)
    grouped = rows.order_by().values_list("digest").annotate(Count("pk"), Max("created_at"))
    return {digest: (count, last) for digest, count, last in grouped}


def _name(username: str) -> str:
    return normal_form("NFKC", username).casefold()


def _digest(*parts: str) -> str:
    # Hashed, because people type passwords into the field for the name.
    return hashlib.sha256("\n".join(parts).encode("utf-8", "replace")).hexdigest()
