"""Password hashing: one at a time in each process, at low CPU priority.

A hash deliberately takes a third of a second of CPU. Anybody can cause one by trying to sign in; a dozen at
once must not slow down other people's answers and pages. A waiting attempt holds no database connection and
no slot of its address (see http.address_limit), because other people may share the address.
"""

import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
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


def waiting() -> int:
    """The number of waiting calls."""
    return waiting_calls(_thread)
