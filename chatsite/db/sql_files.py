r"""SQL from named files in ingestion/sql or another folder, each read once. Values travel as parameters.

Each file is one complete statement that `psql -f` can run: a parameter is a psql variable, `:'name'`, or
`:name` where PostgreSQL allows no quotes. Lines `\set name value` may give it a value for trying the
statement.
"""

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.models import Model
from psycopg import adapt
from psycopg.abc import Transformer
from psycopg.pq.abc import PGresult

from .backend.base import DatabaseWrapper

M = TypeVar("M", bound=Model)

_DIRECTORY = Path(settings.BASE_DIR) / "ingestion" / "sql"
_MARGIN = re.compile(r"^(?: *--.*\n|\\.*\n| +)", re.MULTILINE)
_VARIABLE = re.compile(r"(?<![:\w]):(?:'(?P<quoted>[a-z_]+)'|(?P<bare>[a-z_]+))")
_ESCAPED = re.compile(r'["\\]')  # within an element of an array
_columns: dict[str, tuple[str, ...]] = {}  # column names of each statement's rows


@functools.cache
def statement(name: str, folder: Path = _DIRECTORY) -> str:
    """The text of <name>.sql with variables in the driver's notation and without comments, which the server
    and the driver would parse at every execution."""
    text = (folder / f"{name}.sql").read_text(encoding="utf-8")
    whole = _MARGIN.sub("", text).strip().removesuffix(";")
    return _VARIABLE.sub(lambda match: f"%({match['quoted'] or match['bare']})s", whole.replace("%", "%%"))


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

    `after` names a statement that sets something for this one's transaction. `commits` ends the transaction
    of the surrounding `atomic` block in the same message: it is the last statement there.
    """
    names = [after, name] if after else [name]
    return rows_of_each([statement(each, folder) for each in names], parameters, commits=commits)[-1]


def rows_of_each(texts: Sequence[str], parameters: Mapping[str, Any], *, commits: bool = False) -> list[Rows]:
    """As :func:`rows`, for several statements in one message, which PostgreSQL runs as one transaction."""
    database = connections[DEFAULT_DB_ALIAS]
    assert isinstance(database, DatabaseWrapper)
    database.ensure_connection()
    if not database.can_exchange:
        return _rows_by_cursor(texts, parameters)
    transformer = database.connection.transformer
    found: list[Rows] = []
    with database.wrap_database_errors:
        bound = ";\n".join(texts) % _Literals(transformer, parameters)
        results = database.exchange(bound, commits=commits)
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
    """The same by an ordinary cursor: behind a pooler, or where the statements are counted or logged."""
    found: list[Rows] = []
    with connection.cursor() as cursor:
        results = cursor.cursor  # the driver's cursor: it has every result once the last statement has ended
        with connection.wrap_database_errors:
            bound = ";\n".join(texts) % _Literals(adapt.Transformer.from_context(results), parameters)
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
    """Rows as `model.objects.raw` returns them, extra columns as attributes, at a fifth of its cost."""
    found = []
    for row in found_rows:
        names = [field.attname for field in model._meta.concrete_fields if field.attname in row]
        instance = model.from_db(DEFAULT_DB_ALIAS, names, [row.pop(name) for name in names])
        for name, value in row.items():
            setattr(instance, name, value)
        found.append(instance)
    return found


class _Literals(dict[str, str]):
    """Values as SQL literals by name, each formatted once even if a statement uses it several times.

    The driver formats a value for each of its places, and parses statements of more than 4,096 bytes at each
    execution: searches would take several times as long.
    """

    def __init__(self, transformer: Transformer, values: Mapping[str, Any]) -> None:
        self._values = values
        self._transformer = transformer

    def __missing__(self, name: str) -> str:
        value = self._values[name]
        write = _WRITERS.get(type(value), _quoted)
        literal = self[name] = write(value, self._transformer)
        return literal


def _quoted(value: Any, transformer: Transformer) -> str:
    return str(transformer.as_literal(value), "utf-8")


def _text(value: str, transformer: Transformer) -> str:
    """Quotes plain text here; the driver quotes what needs escapes, or cannot be stored."""
    if "\\" in value or "\0" in value:
        return _quoted(value, transformer)
    return "'" + value.replace("'", "''") + "'"


def _array(values: list[Any], transformer: Transformer) -> str:
    """Formats the common array types here, because the driver inspects each value several times."""
    kinds = set(map(type, values))
    kind = kinds.pop() if len(kinds) == 1 else None
    if kind not in _ARRAYS:
        return _quoted(values, transformer)
    cast, write = _ARRAYS[kind]
    if kind is str and not _ESCAPED.search("".join(values)):  # as most are: without a call for each
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
    str: _text,
    UUID: lambda value, _: f"'{value}'::uuid",
    list: _array,
}
_ARRAYS: dict[type | None, tuple[str, Callable[[Any], str]]] = {
    bool: ("::boolean[]", str),
    int: ("::bigint[]", str),
    float: ("::double precision[]", repr),
    str: ("", _element),
}
