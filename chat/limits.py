"""Daily message allowances, and limits on connections.

A person's own allowance applies, otherwise the largest of their groups', otherwise the general one. If there
is none, there is no limit. Days begin at midnight in the site's time zone.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Self
from weakref import WeakValueDictionary, finalize

from django.conf import settings
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.translation import gettext, ngettext

from chatsite.accounts.principal import Principal
from chatsite.db.sql_files import rows
from chatsite.event_loops import PerEventLoop

from .errors import Refused
from .models import Usage

SQL = Path(__file__).parent / "sql"
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Allowance:
    """A limit, what is left of it, and when it is reset."""

    messages: int
    left: int
    resets_at: datetime

    @property
    def words(self) -> str:
        """The allowance as a sentence for the person."""
        if not self.left:
            return gettext("No messages left today.")
        words = ngettext("%(left)s message left today.", "%(left)s messages left today.", self.left)
        return words % {"left": self.left}

    @property
    def seconds(self) -> int:
        """Seconds until the allowance is reset."""
        return max(1, int((self.resets_at - timezone.now()).total_seconds()))


def today() -> date:
    """The date in the site's time zone."""
    return timezone.localdate(timezone=timezone.get_default_timezone())


def allowance_of(principal: Principal) -> Allowance | None:
    """The caller's allowance; None if there is no limit."""
    found = rows("message_limit", {"owner": principal.user_id}, SQL)
    limit = found[0]["messages"] if found else None
    if limit is None:
        return None
    usage = Usage.objects.filter(owner=principal.user_id).first()
    return _allowance(limit, usage.messages if usage and usage.day == today() else 0)


def used_today(principal: Principal) -> int:
    """The number of messages that the caller has sent today.

    Locks the count until the transaction ends.
    """
    turn = rows("take_turn", {"owner": principal.user_id, "today": today()}, SQL)
    return int(turn[0]["messages"])


def with_one_more(limit: int | None, used: int) -> Allowance | None:
    """The allowance after one more message; None without a limit. Raises Refused at the limit."""
    if limit is None:
        return None
    if used >= limit:
        words = ngettext(
            "You have sent today’s message. You can send more from 00:00 (%(zone)s).",
            "You have sent all %(number)s of today’s messages. You can send more from 00:00 (%(zone)s).",
            limit,
        )
        words %= {
            "number": number_format(limit, force_grouping=True),
            "zone": timezone.get_default_timezone_name(),
        }
        raise Refused("quota_exceeded", _allowance(limit, used).seconds, words if limit else "")
    return _allowance(limit, used + 1)


def _allowance(limit: int, used: int) -> Allowance:
    zone = timezone.get_default_timezone()
    return Allowance(limit, max(0, limit - used), datetime.combine(today() + DAY, time(), tzinfo=zone))


RETRIES = 10
FULL_SECONDS = 30  # Retry-After if all slots are taken


class ConnectionSlot:
    """One open socket, or one response in progress, counted until `release`.

    If the caller disconnects before the first byte, the response is discarded without being closed; a
    finalizer then releases the slot.
    """

    def __init__(self, release: Callable[[], None]) -> None:
        self.release = finalize(self, release)
        self.release.atexit = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.release()


class ConnectionLimiter:
    """Limits each person's open sockets and responses in progress, in this process.

    Retries count separately.
    """

    def __init__(self) -> None:
        self.closing = False  # whether the process is shutting down; pages are then asked to reconnect
        self._open: Counter[tuple[int, bool]] = Counter()  # open connections by (user, whether it is a retry)
        self._on_shutdown: set[Callable[[], None]] = set()
        # Reentrant: database threads and the event loop use it, and so do finalizers, which may run in a
        # thread that already holds it.
        self._lock = RLock()

    def reserve(
        self, user_id: int, on_shutdown: Callable[[], None] | None = None, *, again: bool = False
    ) -> ConnectionSlot:
        """Reserve a slot for a person. Raises Refused if all are taken.

        A retry (`again`) joins the run of an earlier request and takes no normal slot, because it may arrive
        before the loss of the former connection is detected. For retries, the limit is RETRIES times as high.
        `on_shutdown` is called when the process is about to end.
        """
        limit = settings.USER_CONNECTIONS * (RETRIES if again else 1)
        with self._lock:
            if self._open[user_id, again] >= limit:
                words = ngettext(
                    "%(count)s page or stream is open in your name. Close it, and try again.",
                    "%(count)s pages and streams are open in your name. Close some, and try again.",
                    limit,
                )
                raise Refused("rate_limited", FULL_SECONDS, words % {"count": limit})
            return self.slot(user_id, on_shutdown, again=again)

    def slot(
        self, user_id: int, on_shutdown: Callable[[], None] | None = None, *, again: bool = False
    ) -> ConnectionSlot:
        """Take a slot for a person, even above the limit."""
        with self._lock:
            self._open[user_id, again] += 1
            if on_shutdown:
                self._on_shutdown.add(on_shutdown)
        return ConnectionSlot(partial(self._release, (user_id, again), on_shutdown))

    def _release(self, counted: tuple[int, bool], on_shutdown: Callable[[], None] | None) -> None:
        with self._lock:
            if on_shutdown:
                self._on_shutdown.discard(on_shutdown)
            self._open[counted] -= 1
            if not self._open[counted]:
                del self._open[counted]

    def shutdown(self) -> None:
        self.closing = True
        for on_shutdown in list(self._on_shutdown):
            on_shutdown()


connection_limiter = ConnectionLimiter()


BURST = 120  # messages from all pages of one person that are read without a delay
MESSAGES_PER_SECOND = 10.0  # rate of further messages
MAX_DELAY = 10.0  # seconds; if a message would have to wait longer, its socket is closed


class MessagePace:
    """Limits the rate of messages from all open pages of one person, in this process."""

    def __init__(self) -> None:
        self._due: dict[int, float] = {}  # by user, when messages so far would be read at MESSAGES_PER_SECOND

    def delay(self, user_id: int, now: float) -> float | None:
        """Count a message, and return its delay in seconds.

        None if the delay is too long; the message is then not counted.
        """
        if len(self._due) > BURST:
            self._due = {user: due for user, due in self._due.items() if due > now}
        due = max(now, self._due.get(user_id, now)) + 1 / MESSAGES_PER_SECOND
        delay = max(0.0, due - now - BURST / MESSAGES_PER_SECOND)
        if delay > MAX_DELAY:
            return None
        self._due[user_id] = due
        return delay


message_pace = MessagePace()


MESSAGES_AT_WORK = 2  # messages from all pages of one person that are processed at the same time

_turns: PerEventLoop[WeakValueDictionary[int, asyncio.Semaphore]] = PerEventLoop(WeakValueDictionary)


def message_turns(user_id: int) -> asyncio.Semaphore:
    """The semaphore for handling messages of one person's pages; the caller must keep a reference.

    Without the semaphore, the pages of one person could together occupy all database threads with the BURST
    of messages that are read without a delay.
    """
    turns = _turns()
    return turns.get(user_id) or turns.setdefault(user_id, asyncio.Semaphore(MESSAGES_AT_WORK))
