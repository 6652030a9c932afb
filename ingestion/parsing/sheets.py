"""Excel files, sheet by sheet, through openpyxl."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openpyxl

from .sections import Contents, Limits, anchor
from .tables import table_lines
from .values import shown

MERGED = re.compile(rb'<(?:\w+:)?mergeCell\s+ref="([A-Z]{1,3})(\d{1,7}):\1(\d{1,7})"')
MERGED_LONGEST = 60
MERGED_AT_MOST = 2_000  # cells over several rows, and how far down each is repeated
MERGED_ROWS = 1_000
CHUNK_BYTES = 1_000_000
Merged = dict[int, list[tuple[int, int]]]  # by column: first and last row, all from 1


def read(path: Path, limits: Limits) -> Contents:
    """An Excel file by sheet, with the values that its formulas had; every row names its columns.

    Sheets that their author has hidden are not read. Whatever openpyxl raises means a damaged file: the
    child process says so.
    """
    with path.open("rb") as file:  # its name may have any ending
        book = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
        contents = Contents(limits, book.properties.title or "")
        for sheet in book.worksheets:
            if sheet.sheet_state == "visible":
                sheet.reset_dimensions()  # a file may claim any, and openpyxl would fill them
                contents.add_lines(anchor(f"sheet={sheet.title}"), sheet.title, table_lines(_rows(sheet)))
    return contents


def _rows(sheet: Any) -> Iterator[list[str]]:
    merged = _merged(sheet)
    kept: dict[int, str] = {}  # by column: what a cell over several rows says
    for row in filter(None, sheet.iter_rows()):  # between rows far apart openpyxl gives empty ones
        texts = [shown(cell.value, cell.number_format) if cell.value is not None else "" for cell in row]
        number = next((cell.row for cell in row if cell.value is not None), 0)
        for column, ranges in merged.items():
            if column > len(texts) or not number:
                continue
            if any(first == number for first, _ in ranges):
                kept[column] = texts[column - 1]
            elif not texts[column - 1] and any(first < number <= last for first, last in ranges):
                texts[column - 1] = kept.get(column, "")
        yield texts


def _merged(sheet: Any) -> Merged:
    """The cells that reach over several rows of one column. They are listed behind the rows."""
    found: Merged = {}
    rest = b""
    count = 0
    with sheet._get_source() as part:  # openpyxl does not tell of them when it reads row by row
        while chunk := part.read(CHUNK_BYTES):
            for match in MERGED.finditer(rest + chunk):
                first, last = int(match[2]), int(match[3])
                count += 1
                if count <= MERGED_AT_MOST and first < last:
                    column = openpyxl.utils.column_index_from_string(match[1].decode())
                    found.setdefault(column, []).append((first, min(last, first + MERGED_ROWS)))
            rest = chunk[-MERGED_LONGEST:]
    return found
