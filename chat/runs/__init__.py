"""Runs: stored in one transaction, executed by a detached task, and streamed to readers.

Views call :func:`begin` or :func:`again`, which make all checks that may lead to a refusal, then
:func:`start`; everything later is an event. A run needs no client connection. It ends early if it is stopped,
if its owner's account is disabled or loses access to one of its sources, or if its process ends.
"""

from .finish import (
    close_expired,
    expire_all,
)
from .follow import (
    check_first_read,
    follow,
    last_event,
    progress,
    run_so_far,
    wait_for_result,
    watch,
)
from .lifecycle import (
    housekeeping,
    listening,
    shutdown,
)
from .manager import (
    is_written_here,
    start,
    stop,
    stop_followups,
)
from .notifications import hub
from .revalidation import access_revalidator
from .start import (
    again,
    begin,
    choose_branch,
    request_stop,
    team_size,
)

__all__ = [
    "access_revalidator",
    "again",
    "begin",
    "check_first_read",
    "choose_branch",
    "close_expired",
    "expire_all",
    "follow",
    "housekeeping",
    "hub",
    "is_written_here",
    "last_event",
    "listening",
    "progress",
    "request_stop",
    "run_so_far",
    "shutdown",
    "start",
    "stop",
    "stop_followups",
    "team_size",
    "wait_for_result",
    "watch",
]  # fmt: skip
