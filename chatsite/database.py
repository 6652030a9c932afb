"""Database work from asynchronous code, in threads that give their connection back.

A generation lives for minutes and uses the database for milliseconds. Every piece of work goes
through :func:`in_database`, which returns the connection to the pool before the caller goes on, so
that an open stream holds none.
"""

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from django.conf import settings
from django.db import connection

P = ParamSpec("P")
T = TypeVar("T")


@functools.cache
def _threads() -> ThreadPoolExecutor:
    # Never more threads than the pool has connections: work waits here, in order, and not inside the pool.
    return ThreadPoolExecutor(settings.DATABASE_THREADS, thread_name_prefix="database")


def release_connection() -> None:
    """Give this thread's connection back, unless a transaction (a test's, for instance) is open on it."""
    if not connection.in_atomic_block:
        connection.close()


def _call(function: Callable[[], T]) -> T:
    try:
        return function()
    finally:
        release_connection()


async def in_database(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `function` in a database thread and release its connection.

    Cancelling the caller does not undo the work: the thread finishes its statement.
    """
    call = functools.partial(_call, functools.partial(function, *args, **kwargs))
    return await asyncio.get_running_loop().run_in_executor(_threads(), call)
