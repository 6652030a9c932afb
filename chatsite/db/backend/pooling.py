"""Sessions behind a pooler in transaction mode, where no setting outlives a transaction.

Such a pooler lends a server session to a client for one transaction at a time. Everything that a statement
depends on (the reader for row-level security, time limits, planner settings) is therefore set in the same
transaction. The settings are sent in one message with the transaction's first statement, so they cost no
further round trip; outside of `atomic`, all statements of a message share an implicit transaction.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from django.db.backends.postgresql.base import CursorMixin
from psycopg import ClientCursor, sql
from psycopg.pq import TransactionStatus

from chatsite.db.threads import reader_name

SETTING = "chatsite.reader"
OPTION = re.compile(r"-c\s*([A-Za-z_][\w.]*)=((?:\\.|[^\s\\])*)")
# Statements that must run by themselves, outside of a transaction. None of them reads rows for a reader.
ALONE = re.compile(
    r"\s*(VACUUM|REINDEX|(CREATE|DROP)\s+(DATABASE|(UNIQUE\s+)?INDEX\s+CONCURRENTLY))\b", re.IGNORECASE
)

# The reader that was set in the transaction that is open on a connection; absent if none was set.
readers: WeakKeyDictionary[Any, str] = WeakKeyDictionary()


def transaction_cursor(options: str) -> type["TransactionCursor"]:
    """A class of cursors that apply the settings in libpq's `options` in each transaction.

    A pooler would refuse or drop them as parameters of the session.
    """
    settings = {name: re.sub(r"\\(.)", r"\1", value) for name, value in OPTION.findall(options)}
    constants = "".join(
        f", set_config({_literal(name)}, {_literal(settings[name])}, true)" for name in settings
    )
    return type("TransactionCursor", (TransactionCursor,), {"constants": constants})


class TransactionCursor(CursorMixin, ClientCursor[Any]):
    """Django's cursor, which sets the reader and the settings at the start of each transaction."""

    constants = ""  # calls of set_config, each preceded by a comma

    def execute(self, query: Any, params: Any = None, **options: Any) -> Any:
        name = reader_name()
        if not query or not self._needs_reader(name) or (isinstance(query, str) and ALONE.match(query)):
            return super().execute(query, params, **options)
        super().execute(*self._with_settings(query, params, name), **options)
        self.nextset()  # skip the result of set_config
        if self._status() == TransactionStatus.INTRANS:
            readers[self.connection] = name
        return self

    def executemany(self, query: Any, params_seq: Iterable[Any], **options: Any) -> None:
        with self._in_transaction():
            super().executemany(query, params_seq, **options)

    @contextmanager
    def copy(self, *arguments: Any, **options: Any) -> Iterator[Any]:
        with self._in_transaction(), super().copy(*arguments, **options) as copy:
            yield copy

    def set_reader(self) -> None:
        """Set the reader and the settings in the open transaction.

        Needed for statements that cannot share a message with them.
        """
        if self._needs_reader(reader_name()):
            with self.connection.cursor() as cursor:
                cursor.execute("SELECT")

    @contextmanager
    def _in_transaction(self) -> Iterator[None]:
        """Run the block in a transaction.

        Otherwise each message of an operation would commit by itself.
        """
        if self._status() == TransactionStatus.IDLE and self.connection.autocommit:
            with self.connection.transaction():
                self.set_reader()
                yield
        else:
            self.set_reader()
            yield

    def _status(self) -> TransactionStatus:
        return TransactionStatus(self.connection.pgconn.transaction_status)

    def _needs_reader(self, name: str) -> bool:
        """Whether the reader must be set in the transaction of the next statement."""
        status = self._status()
        if status == TransactionStatus.INERROR:
            return False  # a failed transaction accepts only its end
        if status == TransactionStatus.IDLE:
            readers.pop(self.connection, None)
        return readers.get(self.connection) != name

    def _with_settings(self, query: Any, params: Any, name: str) -> tuple[Any, Any]:
        """The query, preceded by `set_config`, and its parameters.

        If the query has parameters, the reader is passed as another parameter: psycopg caches parsed query
        texts, and the cache would otherwise contain a text for each reader.
        """
        constants = "" if self.connection in readers else self.constants
        reader = _literal(name)
        if params is not None:
            constants = constants.replace("%", "%%")
            named = isinstance(params, Mapping)
            reader = "%(chatsite_reader)s" if named else "%s"
            params = {**params, "chatsite_reader": name} if named else [name, *params]
        prefix = f"SELECT set_config('{SETTING}', {reader}, true){constants}; "
        if isinstance(query, sql.Composable):
            return sql.SQL(prefix) + query, params
        return (prefix.encode() if isinstance(query, bytes) else prefix) + query, params


def _literal(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
