"""SQL from the named files in ingestion/sql, each read once. Values travel as parameters only.

A line `-- include: name` stands for another file, so that the predicate of who may read is one text in
every statement that needs it.
"""

import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.db import connection

_DIRECTORY = Path(__file__).with_name("sql")
_INCLUDE = re.compile(r"^[ ]*-- include: (\w+)$", re.MULTILINE)


@functools.cache
def statement(name: str) -> str:
    """The text of sql/<name>.sql with its includes in place."""
    text = (_DIRECTORY / f"{name}.sql").read_text(encoding="utf-8")
    return _INCLUDE.sub(lambda match: statement(match.group(1)), text)


def rows(name: str, parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Run sql/<name>.sql and give its rows by the names of their columns."""
    with connection.cursor() as cursor:
        cursor.execute(statement(name), parameters)
        columns = [column.name for column in cursor.description or ()]
        return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]
