r"""SQL from named files in ingestion/sql or another folder, each read once.

Each file is one complete statement that `psql -f` can run: parameters are psql variables, `:'name'`, or
`:name` where PostgreSQL allows no quotes. Lines `\set name value` may set a parameter to try the statement.
"""

import functools
import hashlib
import math
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any, Self, TypeVar
from uuid import UUID

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, NotSupportedError, connection, connections
from django.db.models import Model
from psycopg import adapt
from psycopg.abc import Transformer
from psycopg.pq.abc import PGresult

from .backend.base import DatabaseWrapper

M = TypeVar("M", bound=Model)

_DIRECTORY = Path(settings.BASE_DIR) / "ingestion" / "sql"
_MARGIN = re.compile(r"^(?: *--.*\n|\\.*\n| +)", re.MULTILINE)
_VARIABLE = re.compile(r"(?<![:\w]):(?:'(?P<quoted>[a-z_]+)'|(?P<bare>[a-z_]+))")
_ESCAPED = re.compile(r'["\\]')  # must be escaped within an element of an array
_columns: dict[str, tuple[str, ...]] = {}  # column names of each statement's rows


@functools.cache
def statement(name: str, folder: Path = _DIRECTORY) -> str:
    """The text of <name>.sql with its variables in the driver's notation.

    Comment lines are removed: the server and the driver would parse them at every execution.
    """
    text = (folder / f"{name}.sql").read_text(encoding="utf-8")
    whole = _MARGIN.sub("", text).strip().removesuffix(";")
    return _VARIABLE.sub(lambda match: f"%({match['quoted'] or match['bare']})s", whole.replace("%", "%%"))


class PreparedStatement(str):
    """A statement that each session prepares once, and then runs by its name (PREPARE, EXECUTE).

    Planning takes most of the time of a short statement with row-level security. Without
    `DatabaseWrapper.can_exchange`, for example behind a pooler, the text itself is run. Policies are
    evaluated at each execution, as usual.
    """

    __slots__ = ("call", "constants", "definition", "name")
    constants: Mapping[str, Any]
    name: str  # name of the prepared statement in a session
    definition: str
    call: str

    def __new__(cls, text: str, name: str, constants: Mapping[str, Any]) -> Self:
        self = super().__new__(cls, text)
        self.constants = constants
        places = _Places(constants)
        digest = hashlib.sha256((body := text % places).encode()).hexdigest()[:12]
        self.name = f"{name}_{digest}"
        self.definition = f"PREPARE {self.name} AS {body}"
        values = ", ".join(f"%({each})s" for each in places.numbers)
        self.call = f"EXECUTE {self.name} ({values})" if values else f"EXECUTE {self.name}"
        return self


class _Places(dict[str, str]):
    """The literals of constants, and the placeholders of other parameters, in a prepared statement."""

    def __init__(self, constants: Mapping[str, Any]) -> None:
        super().__init__(_Literals(adapt.Transformer(), constants).every())
        self.numbers: dict[str, int] = {}

    def __missing__(self, name: str) -> str:
        return f"${self.numbers.setdefault(name, len(self.numbers) + 1)}"


@functools.lru_cache(maxsize=64)
def prepared(
    name: str, folder: Path = _DIRECTORY, constants: tuple[tuple[str, Hashable], ...] = ()
) -> PreparedStatement:
    """Like :func:`statement`, but each session prepares the statement only once.

    PostgreSQL can then reuse a plan that does not depend on the values of parameters. The values of
    `constants` are part of the text, so that the planner knows them. Sessions keep a statement for each
    combination of these values, so there must be few combinations.
    """
    return PreparedStatement(statement(name, folder), name, dict(constants))


Rows = list[dict[str, Any]]


def rows(
    name: str,
    parameters: Mapping[str, Any],
    folder: Path = _DIRECTORY,
    *,
    after: str = "",
    commits: bool = False,
) -> Rows:
    """Run <name>.sql and return its rows, if any, as dictionaries.

    `after` is the name of a statement to run first in the same transaction, for instance to change settings.
    `commits` also ends the transaction of the surrounding `atomic` block, in which no statement may follow.
    """
    names = [after, name] if after else [name]
    return rows_of_each([statement(each, folder) for each in names], parameters, commits=commits)[-1]


def rows_of_each(texts: Sequence[str], parameters: Mapping[str, Any], *, commits: bool = False) -> list[Rows]:
    """Like :func:`rows`, but for several statements in one message, which form one transaction."""
    database = connections[DEFAULT_DB_ALIAS]
    assert isinstance(database, DatabaseWrapper)
    database.ensure_connection()
    if not database.can_exchange:
        return _rows_by_cursor(texts, parameters)
    transformer = database.connection.transformer
    found: list[Rows] = []
    session = database.connection
    for text in texts:
        if isinstance(text, PreparedStatement) and text.name not in session.prepared:
            database.exchange(text.definition)
            session.prepared.add(text.name)  # prepared statements survive a rollback
    called = (text.call if isinstance(text, PreparedStatement) else text for text in texts)
    with database.wrap_database_errors:
        bound = ";\n".join(called) % _Literals(transformer, parameters)
        try:
            results = database.exchange(bound, commits=commits)
        except NotSupportedError:
            # The columns of a table may have changed, which invalidates the plans of a session.
            if session.prepared:
                session.close()
            raise
        for text, result in zip(texts, results, strict=True):
            columns = _columns.get(text)
            if columns is None:
                names = (result.fname(place) or b"" for place in range(result.nfields))
                columns = _columns[text] = tuple(name.decode() for name in names)
            found.append(_loaded(transformer, result, columns) if columns else [])
    transformer.set_pgresult(None)
    return found


def _loaded(transformer: Transformer, result: PGresult, columns: tuple[str, ...]) -> Rows:
    transformer.set_pgresult(result)
    found: Rows = transformer.load_rows(0, result.ntuples, lambda row: dict(zip(columns, row, strict=True)))
    return found


def _rows_by_cursor(texts: Sequence[str], parameters: Mapping[str, Any]) -> list[Rows]:
    """Like :func:`rows_of_each`, with an ordinary cursor: behind a pooler, or to log or count statements."""
    found: list[Rows] = []
    values = dict(parameters)
    for text in texts:
        if isinstance(text, PreparedStatement):
            values |= text.constants
    with connection.cursor() as cursor:
        results = cursor.cursor  # the driver's cursor, which has the results of all statements
        with connection.wrap_database_errors:
            bound = ";\n".join(texts) % _Literals(adapt.Transformer.from_context(results), values)
        cursor.execute(bound)
        with connection.wrap_database_errors:
            for text in texts:
                if found:
                    results.nextset()
                columns = _columns.get(text)
                if columns is None:
                    columns = _columns[text] = tuple(column.name for column in results.description or ())
                each = results.fetchall() if columns else ()
                found.append([dict(zip(columns, row, strict=True)) for row in each])
    return found


def instances(model: type[M], found_rows: Rows) -> list[M]:
    """The rows as instances of `model`, as `model.objects.raw` returns them.

    Columns that are not fields become attributes. `raw` would take five times as long.
    """
    found = []
    for row in found_rows:
        names, values = [], []
        for field in model._meta.concrete_fields:
            column = field.column or field.attname
            if column in row:
                names.append(field.attname)
                values.append(row.pop(column))
        instance = model.from_db(DEFAULT_DB_ALIAS, names, values)
        for name, value in row.items():
            setattr(instance, name, value)
        found.append(instance)
    return found


class _Literals(dict[str, str]):
    """Values as SQL literals by name.

    A value is formatted only once, even if a statement uses it several times. The driver would format it
    for each occurrence, and parse statements of more than 4,096 bytes at each execution, so that searches
    would take several times as long.
    """

    def __init__(self, transformer: Transformer, values: Mapping[str, Any]) -> None:
        self._values = values
        self._transformer = transformer

    def every(self) -> "_Literals":
        """This mapping, filled with the literals of all values."""
        for name in self._values:
            self[name]
        return self

    def __missing__(self, name: str) -> str:
        value = self._values[name]
        kind = type(value)
        # Most values have one of these two types, which need no call.
        if kind is int:
            literal = f" {value}"  # the space keeps two minus signs from beginning a comment
        elif kind is str and "\\" not in value and "\0" not in value:
            literal = "'" + value.replace("'", "''") + "'"
        else:
            literal = _WRITERS.get(kind, _quoted)(value, self._transformer)
        self[name] = literal
        return literal


def _quoted(value: Any, transformer: Transformer) -> str:
    return str(transformer.as_literal(value), "utf-8")


def _text(value: str, transformer: Transformer) -> str:
    """Quotes text; text with a null character goes to the driver, which reports the error."""
    if "\0" in value:
        return _quoted(value, transformer)
    quoted = "'" + value.replace("'", "''") + "'"
    return " E" + quoted.replace("\\", "\\\\") if "\\" in value else quoted


def _float(value: float, transformer: Transformer) -> str:
    return f" {value!r}" if math.isfinite(value) else _quoted(value, transformer)


def _time(value: datetime, transformer: Transformer) -> str:
    return f"'{value}'::timestamptz" if value.tzinfo else _quoted(value, transformer)


def _array(values: list[Any], transformer: Transformer) -> str:
    """Formats common types of arrays; the driver would inspect each value several times."""
    kinds = set(map(type, values))
    kind = kinds.pop() if len(kinds) == 1 else None
    if kind not in _ARRAYS:
        return _quoted(values, transformer)
    cast, write = _ARRAYS[kind]
    if kind is str and not _ESCAPED.search("".join(values)):  # the usual case, without a call per value
        elements = '"' + '","'.join(values) + '"'
    else:
        elements = ",".join(map(write, values))
    return _text(f"{{{elements}}}", transformer) + cast


def _element(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


_WRITERS: dict[type, Callable[[Any, Transformer], str]] = {
    type(None): lambda *_: "NULL",
    bool: lambda value, _: "true" if value else "false",
    int: lambda value, _: f" {value}",  # the space keeps two minus signs from beginning a comment
    float: _float,
    str: _text,
    date: lambda value, _: f"'{value}'::date",
    datetime: _time,
    UUID: lambda value, _: f"'{value}'::uuid",
    list: _array,
}
_ARRAYS: dict[type | None, tuple[str, Callable[[Any], str]]] = {
    bool: ("::boolean[]", str),
    int: ("::bigint[]", str),
    float: ("::double precision[]", repr),
    str: ("", _element),
}
