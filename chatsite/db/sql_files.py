r"""SQL from the named files in ingestion/sql or another folder, each read once. Values travel as parameters.

Each file is one whole statement as `psql -f` runs it: a parameter is a variable of psql, `:'name'` or `:name`
(where PostgreSQL takes no quotes), and lines `\set name value` may give it a value to try the statement with.
"""

import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection

_DIRECTORY = Path(settings.BASE_DIR) / "ingestion" / "sql"
_MARGIN = re.compile(r"^(?: *--.*\n|\\.*\n| +)", re.MULTILINE)
_VARIABLE = re.compile(r"(?<![:\w]):(?:'(?P<quoted>[a-z_]+)'|(?P<bare>[a-z_]+))")


@functools.cache
def statement(name: str, folder: Path = _DIRECTORY) -> str:
    """The text of <name>.sql in that folder, with its variables as the driver writes parameters, and without
    comments: the server and the driver read it at every execution."""
    text = (folder / f"{name}.sql").read_text(encoding="utf-8")
    whole = _MARGIN.sub("", text).strip().removesuffix(";")
    return _VARIABLE.sub(lambda match: f"%({match['quoted'] or match['bare']})s", whole.replace("%", "%%"))


def rows(
    name: str, parameters: Mapping[str, Any], folder: Path = _DIRECTORY, *, after: str = ""
) -> list[dict[str, Any]]:
    """Run <name>.sql of that folder and give its rows, where it has any, by the names of their columns.

    `after` names a statement that sets something for this one's transaction: both go in one message, and
    PostgreSQL runs them as one transaction.
    """
    with connection.cursor() as cursor:
        if after:
            cursor.execute(_together(after, name, folder), parameters)
            cursor.nextset()
        else:
            cursor.execute(statement(name, folder), parameters)
        if cursor.description is None:
            return []
        columns = [column.name for column in cursor.description]
        return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]


@functools.cache
def _together(first: str, second: str, folder: Path) -> str:
    return f"{statement(first, folder)};\n{statement(second, folder)}"
