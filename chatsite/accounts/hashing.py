"""Password hashing: one at a time in each process, and behind everything else that wants the CPU.

A hash takes a third of a second of CPU on purpose. Anybody can ask for one by signing in, so twelve at once
must not slow the answers and pages of others. Waiting for one's turn holds no database connection, and none
of the slots of the caller's address, which others may share.
"""

import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from chatsite.db.threads import release_connection
from chatsite.http.address_limit import release_slot

P = ParamSpec("P")
T = TypeVar("T")

NICENESS = 10


def _yield_cpu() -> None:
    if sys.platform == "linux":  # elsewhere priorities are those of whole processes
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


_thread = ThreadPoolExecutor(1, thread_name_prefix="hashing", initializer=_yield_cpu)


def in_turn(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `function`, which must not use the database, when all hashing before it is done."""
    release_connection()
    release_slot()
    return _thread.submit(function, *args, **kwargs).result()


def waiting() -> int:
    """How many are waiting for their turn."""
    return _thread._work_queue.qsize()
