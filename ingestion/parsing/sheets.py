"""Excel files, sheet by sheet, through openpyxl."""

from collections.abc import Iterator
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import openpyxl

from .sections import Contents, Limits, Section, anchor, one_line, table_text


def read(path: Path, limits: Limits) -> Contents:
    """An Excel file by sheet, with the values that its formulas had; every row names its columns.

    Whatever openpyxl raises means a damaged file: the child process says so.
    """
    with path.open("rb") as file:  # its name may have any ending
        book = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
        contents = Contents(title=book.properties.title or "")
        for sheet in book.worksheets:
            sheet.reset_dimensions()  # a file may claim any, and openpyxl would fill them with empty cells
            if text := table_text(_rows(sheet)):
                heading = one_line(sheet.title, 200)
                contents.sections.append(Section(anchor(f"sheet={sheet.title}"), None, heading, text))
    return contents


def _rows(sheet: Any) -> Iterator[list[str]]:
    for row in sheet.iter_rows():
        yield [_text(cell.value, cell.number_format) if cell.value is not None else "" for cell in row]


def _text(value: Any, number_format: str) -> str:
    """A value as people write it. How the sheet shows a number is not looked at, but for per cent."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float):
        if "%" in number_format:
            return f"{value * 100:.15g}%"
        return f"{value:.15g}" if isinstance(value, float) else str(value)
    if isinstance(value, datetime):
        return value.isoformat(" ", "minutes") if value.time() != time() else value.date().isoformat()
    if isinstance(value, time):
        return value.isoformat("minutes")
    return value.isoformat() if isinstance(value, date) else str(value)
