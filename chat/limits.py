"""How many messages somebody may send on a day, and how many of them are left.

A person's own number holds, else the largest of their groups', else that of all others; where there is none,
there is no limit. Days begin at midnight in the site's time zone.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from pathlib import Path

from django.conf import settings
from django.utils import timezone

from chatsite.accounts.principal import Principal
from chatsite.db.sql_files import rows

from .errors import Refused
from .models import Usage

SQL = Path(__file__).parent / "sql"
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Allowance:
    """A limit, what is left of it, and when it begins anew."""

    messages: int
    left: int
    resets_at: datetime

    @property
    def words(self) -> str:
        """For the person whose it is."""
        return f"{self.left or 'No'} message{'' if self.left == 1 else 's'} left today."

    @property
    def seconds(self) -> int:
        """Until it begins anew."""
        return max(1, int((self.resets_at - timezone.now()).total_seconds()))


def today() -> date:
    """In the site's time zone."""
    return timezone.localdate(timezone=timezone.get_default_timezone())


def allowance_of(principal: Principal) -> Allowance | None:
    """None where nothing limits the caller."""
    found = rows("message_limit", {"owner": principal.user_id}, SQL)
    limit = found[0]["messages"] if found else None
    if limit is None:
        return None
    usage = Usage.objects.filter(owner=principal.user_id).first()
    return _allowance(limit, usage.messages if usage and usage.day == today() else 0)


def used_today(principal: Principal) -> int:
    """How many messages the caller has sent. Whoever else counts waits until the transaction ends."""
    turn = rows("take_turn", {"owner": principal.user_id, "today": today()}, SQL)
    return int(turn[0]["messages"])


def with_one_more(limit: int | None, used: int) -> Allowance | None:
    """What is left after another message, where a limit holds. Raises Refused where none is left."""
    if limit is None:
        return None
    if used >= limit:
        raise _refusal(_allowance(limit, used))
    return _allowance(limit, used + 1)


def _allowance(limit: int, used: int) -> Allowance:
    zone = timezone.get_default_timezone()
    return Allowance(limit, max(0, limit - used), datetime.combine(today() + DAY, time(), tzinfo=zone))


def _refusal(allowance: Allowance) -> Refused:
    zone = timezone.get_default_timezone_name()
    sent = "today’s message" if allowance.messages == 1 else f"all {allowance.messages:,} messages of today"
    words = f"You have sent {sent}. More can be sent from 00:00 ({zone})."
    return Refused("quota_exceeded", allowance.seconds, words if allowance.messages else "")


FULL_SECONDS = 30  # until somebody may have closed one
FULL = "{most} pages and streams of this site are open in your name. Close some, and try again."


class Seats:
    """A seat is an open socket, or a response that waits for an answer."""

    def __init__(self) -> None:
        self.left = False  # the process ends: no page is to stay, and none to come
        self._taken: Counter[int] = Counter()
        self._leaving: set[Callable[[], None]] = set()

    def check(self, user_id: int) -> None:
        """Raises Refused where that person has as many as one may have."""
        if self._taken[user_id] >= settings.USER_CONNECTIONS:
            raise Refused("rate_limited", FULL_SECONDS, FULL.format(most=settings.USER_CONNECTIONS))

    @contextmanager
    def taken(self, user_id: int, leave: Callable[[], None] | None = None) -> Iterator[None]:
        """For the length of the block; `leave` is called when the process is to end."""
        self._taken[user_id] += 1
        if leave:
            self._leaving.add(leave)
        try:
            yield
        finally:
            if leave:
                self._leaving.discard(leave)
            self._taken[user_id] -= 1
            if not self._taken[user_id]:
                del self._taken[user_id]

    def leave(self) -> None:
        self.left = True
        for leave in list(self._leaving):
            leave()


seats = Seats()
