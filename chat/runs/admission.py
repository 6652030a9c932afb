"""Whether one more question is taken: of its owner, and by this process.

All of it is counted under the lock of one row of the owner's, in the transaction that stores the question, so
that fifty questions at once are counted one after the other, in whichever process they arrive.
"""

import math
from collections.abc import Sequence

from django.conf import settings

from chat.allowances import SQL, Allowance, with_one_more
from chat.errors import Refused, no_room
from chatsite.absence import absence
from chatsite.accounts.guest_limits import count_question
from chatsite.accounts.principals import Principal
from ingestion.statements import rows

from .room import room

BUSY_SECONDS = 2  # until this process may have room again
RUNNING_SECONDS = 5  # until one of the caller's answers may have ended


def admit(principal: Principal, used: int) -> Allowance | None:
    """What is left after one more question than were `used` today. Raises Refused, with when to come back.

    The caller has taken their turn to count (chat.allowances).
    """
    if room.full:
        raise Refused("busy", BUSY_SECONDS)
    if absence.full:  # the question might find room, and its answer none
        raise no_room()
    (asked,) = rows("asked", {"owner": principal.user_id}, SQL)
    _check_running(asked["running"])
    _check_pace(asked["waits"])
    allowance = with_one_more(asked["message_limit"], used)
    if principal.method == "guest":
        _check_guests(principal.user_id)
    return allowance


def _check_running(running: int) -> None:
    if running >= settings.USER_CONCURRENT_ANSWERS:
        words = f"{running} of your questions are being answered. Wait for an answer, or stop one."
        raise Refused("rate_limited", RUNNING_SECONDS, words)


def _check_guests(user_id: int) -> None:
    """Called last: it holds the rows of the address and of all guests until the question is stored."""
    wait = count_question(user_id)
    if wait:
        words = "Many questions were asked without an account within a minute. Wait a moment, or sign in."
        raise Refused("rate_limited", math.ceil(wait), words)


def _check_pace(waits: Sequence[float]) -> None:
    """Of the questions of the last minute, oldest first: in how many seconds each counts no more."""
    most = settings.USER_QUESTIONS_PER_MINUTE
    if len(waits) >= most:
        words = f"You have asked {len(waits)} questions within a minute. Wait a moment, and ask again."
        raise Refused("rate_limited", int(waits[len(waits) - most]) + 1, words)
