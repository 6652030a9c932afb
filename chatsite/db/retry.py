"""Retries a database call until the database is back (up to 30 s)."""

import asyncio
import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from django.db import InterfaceError, OperationalError

from .availability import is_disk_full
from .threads import in_database

P = ParamSpec("P")
T = TypeVar("T")

RETRY_SECONDS = 30.0
FULL_DISK_SECONDS = 3.0  # shorter, because a full disk usually stays full for longer than callers wait
PAUSE = 0.3


async def retry_until_available(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Like in_database, but repeats an idempotent call until the database answers.

    A stream that waits here sends nothing meanwhile, because its reader's rights cannot be checked. Raises
    the database's error after half a minute, or after a few seconds if its disk is full.
    """
    started = time.monotonic()
    while True:
        try:
            return await in_database(function, *args, **kwargs)
        except (OperationalError, InterfaceError) as error:
            limit = FULL_DISK_SECONDS if is_disk_full(error) else RETRY_SECONDS
            if time.monotonic() > started + limit:
                raise
        await asyncio.sleep(PAUSE)
