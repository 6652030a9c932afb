"""A session that closes itself when the server does not respond: frozen, or behind a broken network.

The server cancels statements that take too long. If even that cancellation does not arrive, the session is
closed, its user gets the error of a lost connection, and the pool opens another session.
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
RETURN_SECONDS = 0.5  # between two attempts to reach an unavailable database
CONNECT_SECONDS = 2
_watched = threading.Lock()


def report_missed() -> None:
    """Report a time-out of the database and start a thread that detects its return.

    Without that thread, only requests would probe the database, one per second: of those that arrive together
    after its return, all but one would be refused.
    """

    def watch_for_return() -> None:
        try:
            while breaker.is_missing:
                with suppress(psycopg.Error):
                    psycopg.connect(**libpq_parameters() | {"connect_timeout": CONNECT_SECONDS}).close()
                    breaker.record_connection()
                    return
                time.sleep(RETURN_SECONDS)
        finally:
            _watched.release()

    breaker.record_timeout()
    if breaker.is_missing and not default_reader() and _watched.acquire(blocking=False):
        threading.Thread(target=watch_for_return, name="database-return", daemon=True).start()


class Session(psycopg.Connection[Any]):
    """A psycopg connection that bounds every wait."""

    _seconds: float | None = None

    @contextmanager
    def waiting(self, seconds: float) -> Iterator[None]:
        """Within the block, wait at most this long for each statement, whatever the reader's budget is."""
        self._seconds = seconds
        try:
            yield
        finally:
            self._seconds = None

    def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
        """Called by psycopg for every wait of an established session."""
        if timeout is None:
            timeout = self._seconds or statement_seconds()
        if timeout is None:
            return super().wait(gen, interval)
        try:
            with waiting():
                return super().wait(gen, interval, timeout)
        except psycopg.OperationalError:
            # An error of the server arrives with its complete answer and ends the statement.
            if self.pgconn.transaction_status != TransactionStatus.ACTIVE:
                raise
            self.pgconn.finish()
            # A shorter wait may have been for a lock and proves nothing about the server.
            if self._seconds or timeout > settings.LOCK_SECONDS:
                report_missed()
            raise psycopg.OperationalError(f"The database did not answer within {timeout:.3g} s.") from None
