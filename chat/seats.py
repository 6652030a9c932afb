"""How many pages and streams each person has open here, and what ends the pages when the process is to end.

Of one process, on its event loop; whether there is room may be asked from any thread.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.conf import settings

from .errors import Refused

FULL_SECONDS = 30  # until somebody may have closed one
FULL = "{most} pages and streams of this site are open in your name. Close some, and try again."


class Seats:
    """A seat is an open socket, or a response that waits for an answer."""

    def __init__(self) -> None:
        self.left = False  # the process ends: no page is to stay, and none to come
        self._taken: Counter[int] = Counter()
        self._leaving: set[Callable[[], None]] = set()

    def check(self, user_id: int) -> None:
        """Raises Refused where that person has as many as one may have."""
        if self._taken[user_id] >= settings.USER_CONNECTIONS:
            raise Refused("rate_limited", FULL_SECONDS, FULL.format(most=settings.USER_CONNECTIONS))

    @contextmanager
    def taken(self, user_id: int, leave: Callable[[], None] | None = None) -> Iterator[None]:
        """For the length of the block; `leave` is called when the process is to end."""
        self._taken[user_id] += 1
        if leave:
            self._leaving.add(leave)
        try:
            yield
        finally:
            if leave:
                self._leaving.discard(leave)
            self._taken[user_id] -= 1
            if not self._taken[user_id]:
                del self._taken[user_id]

    def leave(self) -> None:
        self.left = True
        for leave in list(self._leaving):
            leave()


seats = Seats()
