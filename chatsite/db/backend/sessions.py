"""A session that gives itself up where the server answers nothing: frozen, or behind a network that is gone.

The server ends statements that take too long by itself. Where nothing comes for longer, nothing will: the
session is closed, its user gets an error like that of a lost connection, and the pool makes another one.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import psycopg
from django.conf import settings
from psycopg.abc import PQGen
from psycopg.pq import TransactionStatus

from chatsite.db.availability import breaker
from chatsite.db.threads import (
    default_reader,
    libpq_parameters,
    statement_seconds,
    waiting,
)

T = TypeVar("T")
RETURN_SECONDS = 0.5  # between two tries whether a missing database is back
CONNECT_SECONDS = 2
_watched = threading.Lock()


def report_missed() -> None:
    """Report that the database was waited for in vain, and have a thread find out when it is back.

    Without that thread a process would learn it only from its requests, of which it lets one a second try:
    those that come together a while after the return would be refused but for one.
    """
    breaker.record_timeout()
    if breaker.is_missing and not default_reader() and _watched.acquire(blocking=False):
        threading.Thread(target=_watch_for_return, name="database-return", daemon=True).start()


def _watch_for_return() -> None:
    try:
        while breaker.is_missing:
            with suppress(psycopg.Error):
                psycopg.connect(**libpq_parameters() | {"connect_timeout": CONNECT_SECONDS}).close()
                breaker.record_connection()
                return
            time.sleep(RETURN_SECONDS)
    finally:
        _watched.release()


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
                report_missed()
            raise psycopg.OperationalError(f"The database did not answer within {timeout:.3g} s.") from None
