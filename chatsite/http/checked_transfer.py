"""Checks rights again while a long response is sent, because they may be withdrawn meanwhile."""

import time
from collections.abc import AsyncIterable, AsyncIterator, Callable

from django.core.exceptions import RequestAborted
from django.db import DatabaseError, InterfaceError

from chatsite.db.retry import retry_until_available

CHECK_SECONDS = 1.0  # a check that is older than this is repeated before more is sent


async def while_allowed(
    pieces: AsyncIterable[bytes], may_send: Callable[[], bool], checked_at: float = float("-inf")
) -> AsyncIterator[bytes]:
    """Yield the pieces while `may_send`, which queries the database, returns true.

    `checked_at` is the time of the last check, by the monotonic clock. Sending to a slow client may take
    minutes. Raises RequestAborted, which cuts the connection, if the right ends meanwhile or cannot be
    checked.
    """
    async for piece in pieces:
        if time.monotonic() - checked_at > CHECK_SECONDS:
            try:
                is_allowed = await retry_until_available(may_send)
            except (DatabaseError, InterfaceError):
                raise RequestAborted from None
            if not is_allowed:
                raise RequestAborted
            checked_at = time.monotonic()
        yield piece
