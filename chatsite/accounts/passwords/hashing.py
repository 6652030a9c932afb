"""Password hashing: one at a time in each process, at low CPU priority.

A hash deliberately takes a third of a second of CPU. Anybody can cause one by trying to sign in; a dozen at
once must not slow down other people's answers and pages. A waiting attempt holds no database connection and
no slot of its address (see http.address_limit), because other people may share the address.
"""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from chatsite.db.threads import release_connection
from chatsite.dependency_internals import waiting_calls
from chatsite.http.address_limit import release_slot

P = ParamSpec("P")
T = TypeVar("T")

NICENESS = 10


def _yield_cpu() -> None:
    if sys.platform == "linux":  # on other systems, priorities apply to whole processes
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


_thread = ThreadPoolExecutor(1, thread_name_prefix="hashing", initializer=_yield_cpu)


def in_turn(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `function` after all earlier hashing, and return its result.

    `function` must not use the database.
    """
    release_connection()
    release_slot()
    return _thread.submit(function, *args, **kwargs).result()


class CheckInProgress(Exception):
    """The person's password is being checked already."""


_own_checks: set[int] = set()  # the people who are signed in and whose password is being checked
_own_checks_lock = threading.Lock()


@contextmanager
def own_check(person_id: int) -> Iterator[None]:
    """Check the password of a person who is signed in. Raises CheckInProgress if another check is running.

    Without this limit, one person could keep everybody else from signing in, because `in_turn` lets any
    number of their requests wait.
    """
    with _own_checks_lock:
        if person_id in _own_checks:
            raise CheckInProgress
        _own_checks.add(person_id)
    try:
        yield
    finally:
        with _own_checks_lock:
            _own_checks.remove(person_id)


def waiting() -> int:
    """The number of waiting calls, without the checks of people who are signed in."""
    return max(0, waiting_calls(_thread) - len(_own_checks))
