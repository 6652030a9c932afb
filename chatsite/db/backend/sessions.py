"""A session that gives itself up where the server answers nothing: frozen, or behind a network that is gone.

The server ends statements that take too long by itself. Where nothing comes for longer, nothing will: the
session is closed, its user gets an error like that of a lost connection, and the pool makes another one.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
from django.conf import settings
from psycopg.abc import PQGen
from psycopg.pq import TransactionStatus

from chatsite.db.availability import absence
from chatsite.db.threads import (
    statement_seconds,
    waiting,
)

T = TypeVar("T")


class Session(psycopg.Connection[Any]):
    """psycopg's own otherwise."""

    _seconds: float | None = None

    @contextmanager
    def waiting(self, seconds: float) -> Iterator[None]:
        """For the length of the block wait so long for each statement, whoever it is for."""
        self._seconds = seconds
        try:
            yield
        finally:
            self._seconds = None

    def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
        """Everything that a session waits for after it has begun comes through here."""
        if timeout is None:
            timeout = self._seconds or statement_seconds()
        if timeout is None:
            return super().wait(gen, interval)
        try:
            with waiting():
                return super().wait(gen, interval, timeout)
        except psycopg.OperationalError:
            # Errors of the server come when its answer is whole, and end with the statement.
            if self.pgconn.transaction_status != TransactionStatus.ACTIVE:
                raise
            self.pgconn.finish()
            # A shorter wait may have been for a lock, and says nothing of the server.
            if self._seconds or timeout > settings.LOCK_SECONDS:
                absence.missed(timeout)
            raise psycopg.OperationalError(f"The database did not answer within {timeout:.3g} s.") from None
