"""The database wrapper, which makes each statement run for the current reader.

Pools hold sessions of the class in chatsite.db.backend.database_sessions, which limits waits.

The reader that a session has in PostgreSQL is recorded with the session, because a pool passes sessions from
thread to thread. A statement sets the reader only if its session has a different one. `set_config` is part of
the transaction: after anything that may have rolled it back, the reader counts as unknown, and the next
statement sets it again, in the same message. With the option `transaction_pooling`, sessions keep no state,
and each transaction sets its reader (chatsite.db.backend.pooling).
"""

import re
import select
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError
from django.db.backends.base.base import NO_DB_ALIAS
from django.db.backends.postgresql import base
from psycopg import ClientCursor, OperationalError
from psycopg.pq import TransactionStatus
from psycopg.pq.abc import PGresult
from psycopg_pool import ConnectionPool, PoolTimeout

from chatsite import metrics
from chatsite.db.availability import (
    breaker,
    sqlstate,
)
from chatsite.db.bulkheads import bulkheads
from chatsite.db.threads import (
    LOCKED,
    Waiting,
    connection_seconds,
    current_view,
    default_reader,
    reader_name,
)
from chatsite.dependency_internals import connection_pools, hand_out_last_returned

from . import pooling
from .creation import DatabaseCreation
from .database_sessions import Session, report_missed
from .pooling import SETTING

SET_READER = f"SELECT set_config('{SETTING}', %s, false)"
SET_NAMED_READER = SET_READER.replace("%s", "%(chatsite_reader)s")
# The reader that each psycopg session has set; a missing session's reader is unknown.
_readers: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
_checked: WeakSet[Any] = WeakSet()  # sessions whose settings were verified
_used: WeakKeyDictionary[Any, float] = WeakKeyDictionary()  # when each session was returned to the pool
FRESH_SECONDS = 1.0  # a session that was returned within this many seconds is checked without a statement
# Statements that share an implicit transaction with `set_config`; some others (VACUUM) must run alone.
COMBINABLE = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\b", re.IGNORECASE)
LOCK_NOT_AVAILABLE = "55P03"  # SQLSTATE
SESSION_LOST = ("08", "57P")  # prefixes of SQLSTATE: the session ends with the error
# Whether an option that settings.py gives to each session has reached the server.
KEEPS_SETTINGS = "SELECT current_setting('chatsite.session', true) = 'own'"
DROPPED = (
    "DATABASE_URL leads to a connection pooler that drops the settings of a session: set DATABASE_DIRECT_URL"
    " to the address of PostgreSQL itself."
)


class ReaderCursor(base.CursorMixin, ClientCursor[Any]):
    """Django's ordinary cursor; if `sets_reader`, its statements also set the reader.

    If possible, the statement and `set_config` are sent in one message, because a round trip costs more time
    than most statements.
    """

    sets_reader = False

    def execute(self, query: Any, params: Any = None, **options: Any) -> Any:
        name = reader_name()
        if not self._needs_reader(name):
            return super().execute(query, params, **options)
        if not isinstance(query, str) or not COMBINABLE.match(query):
            self._set_reader(name)
            return super().execute(query, params, **options)
        if isinstance(params, Mapping):
            query, params = f"{SET_NAMED_READER}; {query}", {**params, "chatsite_reader": name}
        elif params is not None:
            query, params = f"{SET_READER}; {query}", [name, *params]
        else:  # safe to insert: a reader is digits, a constant, or empty
            query = f"{SET_READER.replace('%s', repr(name))}; {query}"
        super().execute(query, params, **options)
        self.nextset()  # skip the result of set_config
        _readers[self.connection] = name
        return self

    def executemany(self, query: Any, params_seq: Iterable[Any], **options: Any) -> None:
        self._set_reader(reader_name())
        super().executemany(query, params_seq, **options)

    @contextmanager
    def copy(self, *arguments: Any, **options: Any) -> Iterator[Any]:
        self._set_reader(reader_name())
        with super().copy(*arguments, **options) as copy:
            yield copy

    def _needs_reader(self, name: str) -> bool:
        # A failed transaction cannot read anything; PostgreSQL only accepts its end.
        failed = self.connection.pgconn.transaction_status == TransactionStatus.INERROR
        return self.sets_reader and _readers.get(self.connection) != name and not failed

    def _set_reader(self, name: str) -> None:
        if self._needs_reader(name):
            super().execute(SET_READER, [name])
            _readers[self.connection] = name


@metrics.POOL.read_from
def _pool_numbers() -> dict[metrics.Labels, float]:
    """Statistics of this process's pools; a pool exists once it has been used."""
    found: dict[metrics.Labels, float] = {(state,): 0.0 for state in ("size", "idle", "waiting")}
    for pool in connection_pools(base.DatabaseWrapper):
        numbers = pool.get_stats()
        for state, name in (
            ("size", "pool_size"),
            ("idle", "pool_available"),
            ("waiting", "requests_waiting"),
        ):
            found[(state,)] += numbers[name]
    return found


def _has_input(session: Session) -> bool:
    """Whether the server has sent something to an idle session, usually the notice that it has ended."""
    poll = select.poll()  # unlike `select`, it supports more than 1,024 sockets in a process
    poll.register(session.fileno(), select.POLLIN)
    return bool(poll.poll(0))


def _check(session: Session) -> None:
    if time.monotonic() - _used.get(session, float("-inf")) > FRESH_SECONDS or _has_input(session):
        with session.waiting(min(FRESH_SECONDS, connection_seconds())):
            ConnectionPool.check_connection(session)
        breaker.record_success()


def _working_session(pool: Any, seconds: float) -> Any:
    """Take a working session from the pool. Raises PoolTimeout.

    After a restart of the server, all sessions of the pool are dead. The pool's own check waits 1 s after the
    second failure and then 2 s, which would use up a request's time budget.
    """
    deadline = time.monotonic() + seconds
    while True:
        session = ConnectionPool.getconn(pool, timeout=deadline - time.monotonic())
        try:
            _check(session)
        except Exception:
            session.close()
            pool.putconn(session)  # the pool then opens another session
        except BaseException:
            pool.putconn(session)
            raise
        else:
            return session


class DatabaseWrapper(base.DatabaseWrapper):
    """Django's PostgreSQL wrapper with readers, time budgets and bulkheads."""

    creation_class = DatabaseCreation

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.execute_wrappers.append(self._for_reader)
        # The view that uses this connection, and whether its statements ran into a lock (None: unknown).
        self._view = ""
        self._stuck: bool | None = False
        self._is_known = False  # whether this connection was opened before
        pooled = self.settings_dict["OPTIONS"].get("transaction_pooling", False)
        self.is_pooled = (
            bool(pooled) and self.alias != NO_DB_ALIAS
        )  # each transaction may use another session

    def get_connection_params(self) -> dict[str, Any]:
        """Django's parameters, with the process's default reader as an option of the session.

        Sessions of commands and workers, including those that libraries open, therefore read everything from
        their start. Web processes have no default reader; only they use `transaction_pooling`, where
        `options` become settings of each transaction.
        """
        parameters: dict[str, Any] = super().get_connection_params()
        if parameters.pop("transaction_pooling", False):
            options = parameters.pop("options", "")
            if self.is_pooled:
                parameters["cursor_factory"] = pooling.transaction_cursor(options)
            return parameters
        if name := default_reader():
            parameters["options"] = f"{parameters.get('options', '')} -c {SETTING}={name}".strip()
        parameters["cursor_factory"] = ReaderCursor
        return parameters

    @property
    def pool(self) -> Any:
        """Django's pool, which here tests a session before handing it out.

        The test is a statement, which takes as long as most others. A session that was returned within
        FRESH_SECONDS is therefore tested only if the server has sent something, such as the notice of its
        end.
        """
        pool = super().pool
        if pool is not None and pool.connection_class is not Session:

            def within_budget(timeout: float | None = None) -> Any:
                """Replaces the pool's `getconn`: in web processes, waits no longer than the time budget."""
                if timeout is None:
                    timeout = pool.timeout if default_reader() else connection_seconds()
                return _working_session(pool, timeout)

            hand_out_last_returned(pool)
            pool.getconn = within_budget
            pool.connection_class = Session  # set last, because another thread may already use the pool
        return pool

    def connect(self) -> None:
        """Like Django's method, but runs Django's checks only once per thread.

        Every short call takes a session from the pool, so the checks would be repeated for every few
        statements.
        """
        if not self._is_known or self.pool is None:
            super().connect()
            self._is_known = True
            return
        self.in_atomic_block = self.needs_rollback = False
        self.closed_in_transaction = self.errors_occurred = False
        self.savepoint_ids, self.atomic_blocks, self.run_on_commit = [], [], []
        self.health_check_done = True
        self.connection = self.get_new_connection({})
        if not self.connection.autocommit:
            self.set_autocommit(True)
        self.autocommit = True

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Connect; in web processes with a pool, within the request's time budget.

        In that case, raises OperationalError at once if the breaker allows no probe.
        """
        if default_reader() or self.pool is None:
            session = super().get_new_connection(conn_params)
        elif not breaker.allows_probe():
            raise OperationalError("The database does not answer at the moment.")
        else:
            session = self._from_pool(conn_params)
        self._check_settings(session)
        return session

    def _from_pool(self, conn_params: dict[str, Any]) -> Any:
        """A session from the pool; until its return, it takes one of the view's places (bulkheads)."""
        seconds, view = connection_seconds(), current_view()
        with Waiting():
            # the other half is left for the connection and the statements
            if not bulkheads.enter(view, seconds / 2):
                raise OperationalError(LOCKED)
            try:
                session = super().get_new_connection(conn_params)
            except BaseException as error:
                bulkheads.leave(view, stuck=None)
                if isinstance(error, PoolTimeout):
                    report_missed()
                raise
        self._view, self._stuck = view, False
        breaker.record_connection()
        return session

    def _check_settings(self, session: Any) -> None:
        """Check the session's settings once.

        Raises ImproperlyConfigured if a pooler has dropped them.
        """
        if self.is_pooled or self.alias == NO_DB_ALIAS or session in _checked:
            return
        kept = session.execute(KEEPS_SETTINGS).fetchone() == (True,)
        session.rollback()  # outside of a pool, the first statement of a session opens a transaction
        if not kept:
            if self.pool is None:
                session.close()
            else:
                self.pool.putconn(session)
            raise ImproperlyConfigured(DROPPED)
        _checked.add(session)

    def create_cursor(self, name: str | None = None) -> Any:
        """A cursor with the current reader, also for COPY.

        Behind a pooler, a server-side cursor ends with its transaction. If no transaction is open there, an
        ordinary cursor replaces it, which fetches all rows at once.
        """
        if name and self.is_pooled:
            if self.connection.autocommit:
                name = None
            else:
                with self.wrap_database_errors, self.connection.cursor() as ordinary:
                    ordinary.set_reader()
        cursor = super().create_cursor(name)
        if isinstance(cursor, ReaderCursor):
            cursor.sets_reader = True
        else:
            self._set_reader()
        return cursor

    @property
    def can_exchange(self) -> bool:
        """Whether :meth:`exchange` may replace a cursor: no pooler, and nothing logs or counts statements."""
        return (
            len(self.execute_wrappers) == 1
            and not self.queries_logged
            and not self.is_pooled
            and isinstance(self.connection, Session)
        )

    def exchange(self, text: str, *, commits: bool = False) -> list[PGresult]:
        """Send statements in one message, without the layers of a cursor.

        Returns the result of each. If necessary, the message also sets the reader, and begins the transaction
        of an `atomic` block. With `commits`, it also ends the transaction of an outermost block, in which no
        statement may follow.
        """
        self.validate_no_broken_transaction()
        session, name = self.connection, reader_name()
        status = session.pgconn.transaction_status
        before: list[str] = []
        if status == TransactionStatus.IDLE and not session.autocommit:
            before.append("BEGIN")
        # A failed transaction cannot read anything; PostgreSQL only accepts its end.
        lacks_reader = status != TransactionStatus.INERROR and _readers.get(session) != name
        if lacks_reader:  # safe to insert: a reader is digits, a constant, or empty
            before.append(SET_READER.replace("%s", repr(name)))
        after = ["COMMIT"] if commits and len(self.atomic_blocks) == 1 and not session.autocommit else []
        try:
            with self.wrap_database_errors:
                results: list[PGresult] = session.exchange(";\n".join([*before, text, *after]))
        except DatabaseError as error:
            self._record_error(error)
            raise
        breaker.record_success()
        if lacks_reader:
            _readers[session] = name
        return results[len(before) : len(results) - len(after)]

    def _for_reader(
        self,
        execute: Callable[[Any, Any, bool, Any], Any],
        statement: Any,
        parameters: Any,
        many: bool,
        context: Mapping[str, Any],
    ) -> Any:
        if not isinstance(context["cursor"].cursor, ReaderCursor):
            self._set_reader()
        try:
            result = execute(statement, parameters, many, context)
        except DatabaseError as error:
            self._record_error(error)
            raise
        breaker.record_success()
        return result

    def _record_error(self, error: DatabaseError) -> None:
        state = sqlstate(error)
        if state == LOCK_NOT_AVAILABLE:
            self._stuck = True
        elif not state and not self._stuck:
            self._stuck = None  # the session is closed, perhaps before the lock was released
        if state and not state.startswith(SESSION_LOST):
            breaker.record_success()

    def _set_reader(self) -> None:
        """Set the reader without Django's cursors, so that query logs and counts do not include it."""
        if self.is_pooled:
            return  # each cursor sets the reader of its own transaction
        name = reader_name()
        # A failed transaction cannot read anything; PostgreSQL only accepts its end.
        if self.connection is None or _readers.get(self.connection) == name or self._has_failed():
            return
        with self.wrap_database_errors, self.connection.cursor() as cursor:
            cursor.execute(SET_READER, [name])
        _readers[self.connection] = name

    def set_autocommit(self, autocommit: bool, *args: Any, **kwargs: Any) -> None:
        """Like Django's method, but if the session was lost, only record that autocommit is on.

        Django would wait for another session, although the transaction ended with the lost one.
        """
        if autocommit and self.connection is None and not self.in_atomic_block:
            self.autocommit = True
            return
        super().set_autocommit(autocommit, *args, **kwargs)

    def _has_failed(self) -> bool:
        return self._transaction() == TransactionStatus.INERROR

    def _transaction(self) -> TransactionStatus:
        return TransactionStatus(self.connection.info.transaction_status)

    def _forget_reader(self) -> None:
        if self.connection is not None:
            _readers.pop(self.connection, None)
            pooling.readers.pop(self.connection, None)

    def _commit(self) -> None:
        """Commit; forget the reader if the transaction has failed, because PostgreSQL then rolls back."""
        undone = self.connection is not None and self._has_failed()
        try:
            super()._commit()  # type: ignore[misc]  # not in the stubs
        except BaseException:
            undone = True
            raise
        finally:
            if undone:
                self._forget_reader()

    def _rollback(self) -> None:
        try:
            super()._rollback()  # type: ignore[misc]  # not in the stubs
        finally:
            self._forget_reader()

    def _savepoint_rollback(self, sid: str) -> None:
        try:
            super()._savepoint_rollback(sid)  # type: ignore[misc]
        finally:
            self._forget_reader()

    def _close(self) -> None:
        """Return the session. Forget its reader if a transaction is open, which the pool rolls back."""
        if self.connection is not None:
            if self._transaction() != TransactionStatus.IDLE:
                self._forget_reader()
            _used[self.connection] = time.monotonic()
            view, self._view = self._view, ""
            bulkheads.leave(view, stuck=self._stuck)
        super()._close()  # type: ignore[misc]  # not in the stubs
