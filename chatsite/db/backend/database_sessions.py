"""A session that closes itself when the server does not respond.

The server itself cancels statements that take too long. If it is frozen, or behind a broken network, that
cancellation does not arrive. In a web process, the session is therefore closed after a time limit, or when
the caller's time budget is used up: the caller gets the error of a lost connection, and the pool opens
another session.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import psycopg
from django.conf import settings
from psycopg import adapt, generators
from psycopg.abc import PQGen, Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg.pq.abc import PGresult

from chatsite.db.availability import breaker
from chatsite.db.threads import (
    Waiting,
    default_reader,
    libpq_parameters,
    statement_seconds,
)
from chatsite.dependency_internals import autocommit_messages, check_open

T = TypeVar("T")
RETURN_SECONDS = 0.5  # pause between attempts to reach an unavailable database
CONNECT_SECONDS = 2
_watched = threading.Lock()


def report_missed() -> None:
    """Record a time-out; in web processes, let a thread detect when the database is back.

    Without the thread, only requests would probe the database, one per second: of several that arrive
    together when the database is back, all but one would be refused.
    """

    def watch_for_return() -> None:
        try:
            while breaker.is_unavailable:
                with suppress(psycopg.Error):
                    psycopg.connect(**libpq_parameters() | {"connect_timeout": CONNECT_SECONDS}).close()
                    breaker.record_connection()
                    return
                time.sleep(RETURN_SECONDS)
        finally:
            _watched.release()

    breaker.record_timeout()
    if breaker.is_unavailable and not default_reader() and _watched.acquire(blocking=False):
        threading.Thread(target=watch_for_return, name="database-return", daemon=True).start()


class Session(psycopg.Connection[Any]):
    """A psycopg connection that limits each wait, except in commands and workers."""

    _seconds: float | None = None
    _transformer: Transformer | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.prepared: set[str] = set()  # names of the statements that this session has prepared

    @contextmanager
    def waiting(self, seconds: float) -> Iterator[None]:
        """Within the block, wait at most this long for each statement, and ignore the time budget."""
        self._seconds = seconds
        try:
            yield
        finally:
            self._seconds = None

    @property
    def transformer(self) -> Transformer:
        """The converter of this session's values; kept, so that each loader is looked up only once."""
        if self._transformer is None:
            self._transformer = adapt.Transformer.from_context(self)
        return self._transformer

    def exchange(self, text: str) -> list[PGresult]:
        """Send statements in one message; returns the result of each.

        Raises the error that ended them.
        """
        with self.lock:
            results: list[PGresult] = self.wait(self._exchanged(text.encode()))
        for result in results:
            if result.status == ExecStatus.FATAL_ERROR:
                raise error_from_result(result)
        return results

    def _exchanged(self, query: bytes) -> PQGen[list[PGresult]]:
        check_open(self)
        self.pgconn.send_query(query)
        results: list[PGresult] = yield from generators.execute(self.pgconn)
        return results

    def set_autocommit(self, value: bool) -> None:
        """Like psycopg's method, without its code for waiting: changing autocommit sends nothing."""
        with self.lock:
            for _ in autocommit_messages(self, value):
                raise AssertionError("Changing autocommit sends nothing.")

    def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
        """Wait for the server; psycopg calls this for every wait of an established session.

        Raises OperationalError, and closes the session, if the server does not answer in time.
        """
        if timeout is None:
            timeout = self._seconds or statement_seconds()
        if timeout is None:
            return super().wait(gen, interval)
        try:
            with Waiting():
                return super().wait(gen, interval, timeout)
        except psycopg.OperationalError:
            # If no statement is running any more, the server has responded with an error in time.
            if self.pgconn.transaction_status != TransactionStatus.ACTIVE:
                raise
            self.pgconn.finish()
            # If the wait was not longer than LOCK_SECONDS, the statement may only have waited for a lock.
            if self._seconds or timeout > settings.LOCK_SECONDS:
                report_missed()
            raise psycopg.OperationalError(f"The database did not answer within {timeout:.3g} s.") from None
