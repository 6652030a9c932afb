"""Responses that take long: the right to them is checked again, because it may be withdrawn meanwhile."""

import time
from collections.abc import AsyncIterable, AsyncIterator, Callable

from django.core.exceptions import RequestAborted
from django.db import DatabaseError, InterfaceError

from chatsite.db.retry import retry_until_available

CHECK_SECONDS = 1.0  # age of a check of rights after which nothing more is sent without another


async def while_allowed(
    pieces: AsyncIterable[bytes], may_send: Callable[[], bool], checked: float = float("-inf")
) -> AsyncIterator[bytes]:
    """Pass on these pieces while `may_send`, which uses the database, is true.

    The right was `checked` at this time of the monotonic clock. A slow client takes minutes. Raises
    RequestAborted, which cuts the connection, if the right ends meanwhile or cannot be checked.
    """
    async for piece in pieces:
        if time.monotonic() - checked > CHECK_SECONDS:
            try:
                is_allowed = await retry_until_available(may_send)
            except (DatabaseError, InterfaceError):
                raise RequestAborted from None
            if not is_allowed:
                raise RequestAborted
            checked = time.monotonic()
        yield piece
