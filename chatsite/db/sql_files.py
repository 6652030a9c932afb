"""SQL from the named files in ingestion/sql or another folder, each read once. Values travel as parameters.

A line `-- include: name` stands for another file, so that the predicate of who may read is one text in
every statement that needs it.
"""

import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection

_DIRECTORY = Path(settings.BASE_DIR) / "ingestion" / "sql"
_INCLUDE = re.compile(r"^[ ]*-- include: (\w+)$", re.MULTILINE)
_MARGIN = re.compile(r"^(?: *--.*\n| +)", re.MULTILINE)


@functools.cache
def statement(name: str, folder: Path = _DIRECTORY) -> str:
    """The text of <name>.sql in that folder, with its includes in place, and without comments: the server and
    the driver read it at every execution."""
    text = (folder / f"{name}.sql").read_text(encoding="utf-8")
    whole = _INCLUDE.sub(lambda match: statement(match.group(1), folder), text)
    return _MARGIN.sub("", whole)


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
