"""Work for somebody who waits anyway: a database that is away for a while costs them nothing else."""

import asyncio
import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from django.db import InterfaceError, OperationalError

from .availability import has_no_room
from .threads import in_database

P = ParamSpec("P")
T = TypeVar("T")

PATIENCE_SECONDS = 30.0
FULL_DISK_SECONDS = 3.0  # a full disk stays full for longer than anybody waits, and is said at once
PAUSE = 0.3


async def patiently(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """As in_database, tried again until the database answers; for what may be asked more than once.

    Nothing is told meanwhile, so nobody reads on whose right cannot be checked. Raises what the database
    raises after half a minute, or after a few seconds where its disk is full.
    """
    begun = time.monotonic()
    while True:
        try:
            return await in_database(function, *args, **kwargs)
        except (OperationalError, InterfaceError) as error:
            patience = FULL_DISK_SECONDS if has_no_room(error) else PATIENCE_SECONDS
            if time.monotonic() > begun + patience:
                raise
        await asyncio.sleep(PAUSE)
