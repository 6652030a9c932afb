"""Whether one more question is taken: of its owner, and by this process.

All of it is counted under the lock of one row of the owner's, in the transaction that stores the question, so
that fifty questions at once are counted one after the other, in whichever process they arrive.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from chat.allowances import Allowance, count_message, today
from chat.errors import Refused
from chat.models import Run, Usage
from chatsite.accounts.principals import Principal

from .room import room

MINUTE = timedelta(minutes=1)
BUSY_SECONDS = 2  # until this process may have room again
RUNNING_SECONDS = 5  # until one of the caller's answers may have ended


def take_turn(principal: Principal) -> Usage:
    """Wait until no other question of the same person is being stored; the transaction's end lets go."""
    turn = Usage.objects.select_for_update().filter(owner=principal.user_id)
    usage = turn.first()
    if usage is None:
        Usage.objects.bulk_create([Usage(owner_id=principal.user_id, day=today())], ignore_conflicts=True)
        usage = turn.get()
    return usage


def admit(principal: Principal, usage: Usage) -> Allowance | None:
    """Count one more question. Raises Refused, with when to come back."""
    if room.full:
        raise Refused("busy", BUSY_SECONDS)
    now = timezone.now()
    recent = Q(finished_at=None) | Q(created_at__gt=now - MINUTE)
    rows = Run.objects.filter(recent, owner=principal.user_id).order_by("created_at")
    asked = list(rows.values_list("created_at", "finished_at", "lease_until"))
    _check_running(sum(finished is None and lease >= now for _, finished, lease in asked))
    _check_pace([created for created, _, _ in asked if created > now - MINUTE], now)
    return count_message(principal, usage)


def _check_running(running: int) -> None:
    if running >= settings.USER_CONCURRENT_ANSWERS:
        words = f"{running} of your questions are being answered. Wait for an answer, or stop one."
        raise Refused("rate_limited", RUNNING_SECONDS, words)


def _check_pace(moments: Sequence[datetime], now: datetime) -> None:
    most = settings.USER_QUESTIONS_PER_MINUTE
    if len(moments) >= most:
        wait = moments[len(moments) - most] + MINUTE - now
        words = f"You have asked {len(moments)} questions within a minute. Wait a moment, and ask again."
        raise Refused("rate_limited", int(wait.total_seconds()) + 1, words)
