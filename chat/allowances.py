"""How many messages somebody may send on a day, and how many of them are left.

A person's own number holds, else the largest of their groups', else that of all others; where there is none,
there is no limit. Days begin at midnight in the site's time zone.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from django.contrib.auth.models import Group
from django.db.models import Q
from django.utils import timezone

from chatsite.accounts.principals import Principal

from .errors import Refused
from .models import MessageAllowance, Usage

DAY = timedelta(days=1)
Row = tuple[int | None, int | None, int | None]  # user, group, messages


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
    limit = _limit(principal)
    if limit is None:
        return None
    usage = Usage.objects.filter(owner=principal.user_id).first()
    return _allowance(limit, usage.messages if usage and usage.day == today() else 0)


def count_message(principal: Principal, usage: Usage) -> Allowance | None:
    """Count one more, in the transaction that stores it and that holds the row's lock. Raises Refused."""
    if usage.day != today():
        usage.day, usage.messages = today(), 0
    limit = _limit(principal)
    if limit is not None and usage.messages >= limit:
        raise _refusal(_allowance(limit, usage.messages))
    usage.messages += 1
    usage.save()
    return None if limit is None else _allowance(limit, usage.messages)


def _limit(principal: Principal) -> int | None:
    groups = Group.objects.filter(user=principal.user_id).values("pk")
    rows = MessageAllowance.objects.filter(
        Q(user=principal.user_id) | Q(group__in=groups) | Q(user=None, group=None)
    )
    return _most(rows.values_list("user_id", "group_id", "messages"))


def _most(rows: Iterable[Row]) -> int | None:
    own: list[int | None] = []
    groups: list[int | None] = []
    others: list[int | None] = []
    for user, group, messages in rows:
        (own if user else groups if group else others).append(messages)
    for numbers in (own, groups, others):
        if None in numbers:
            return None
        if numbers:
            return max(number for number in numbers if number is not None)
    return None


def _allowance(limit: int, used: int) -> Allowance:
    zone = timezone.get_default_timezone()
    return Allowance(limit, max(0, limit - used), datetime.combine(today() + DAY, time(), tzinfo=zone))


def _refusal(allowance: Allowance) -> Refused:
    zone = timezone.get_default_timezone_name()
    sent = "today’s message" if allowance.messages == 1 else f"all {allowance.messages:,} messages of today"
    words = f"You have sent {sent}. More can be sent from 00:00 ({zone})."
    return Refused("quota_exceeded", allowance.seconds, words if allowance.messages else "")
