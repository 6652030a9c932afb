"""Cell values of spreadsheets as displayed, with comments and the texts of shapes."""

import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from openpyxl.utils import column_index_from_string
from openpyxl.utils.escape import unescape

from chatsite.dependency_internals import sheet_source
from ingestion.parsing.packages import DAMAGE, open_package, relations, xml_part
from ingestion.parsing.readers.tables import CELL_CHARACTERS, MAX_COLUMNS, NAME_CHARACTERS, BoldRow, add_rows
from ingestion.parsing.sections import Contents, Limits, one_line
from ingestion.parsing.strict_parts import OfficePackage

from .cell_styles import open_workbook
from .drawings import R, drawing_text, paragraphs
from .number_formats import formatted_number, formatted_time

ERRORS = frozenset(["#N/A", "#REF!", "#VALUE!", "#DIV/0!", "#NAME?", "#NULL!", "#NUM!"])


def shown(value: Any, number_format: str) -> str:
    """A value in its number format; empty for an error. Characters in the form _x000D_ are decoded."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float):
        return formatted_number(value, number_format or "General")
    if isinstance(value, datetime | time | timedelta):
        return formatted_time(value, number_format or "")
    text = value.isoformat() if isinstance(value, date) else unescape(str(value))
    return "" if text in ERRORS else text


MERGED = re.compile(rb'<(?:\w+:)?mergeCell\s+ref="([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})"')
MERGED_LONGEST = 60
MAX_MERGED = 2_000  # number of cells that span several rows; each is repeated at most MERGED_ROWS times
MERGED_ROWS = 1_000
CHUNK_BYTES = 1_000_000
# By column: the first and last row (from 1) of each cell, and whether it also spans columns.
Merged = dict[int, list[tuple[int, int, bool]]]
S = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
THREADED = "{http://schemas.microsoft.com/office/spreadsheetml/2018/threadedcomments}"
XDR = "{http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing}"
FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
ROW_DIGITS = 7
COMMENT = "Comment on {cell}: {text}"


def read(path: Path, limits: Limits) -> Contents:
    """Read an Excel file by sheet, with cached values of formulas; every row names its columns.

    A comment follows the row of its cell; the text of a shape or the title of a chart follows the row
    above it.

    Hidden sheets are skipped. Any exception of openpyxl means that the file is damaged, which the child
    process reports.
    """
    # Open the file here, because openpyxl checks the extension of a path.
    with path.open("rb") as file, open_package(path, OfficePackage) as archive:
        book = open_workbook(file)
        contents = Contents(limits, book.properties.title or "")
        for sheet in book.worksheets:
            if sheet.sheet_state == "visible":
                # a file may declare any size, which openpyxl would fill with empty cells
                sheet.reset_dimensions()
                with sheet_source(sheet) as part:
                    notes = _notes(archive, part.name)
                add_rows(contents, sheet.title, _rows(sheet), f"sheet={sheet.title}", notes)
    return contents


def _notes(archive: zipfile.ZipFile, sheet: str) -> dict[int, list[str]]:
    """The comments and the texts of shapes of a sheet, by the row that they follow."""
    notes: dict[int, list[str]] = {}
    try:
        related = relations(archive, sheet).values()
        threads = [
            comment
            for kind, part in related
            if kind.endswith("/threadedComment")
            for comment in xml_part(archive, part).iter(f"{THREADED}threadedComment")
        ]
        # The first comment of a thread is repeated as a plain one, for old programs.
        threaded = {comment.get("ref") for comment in threads}
        for kind, part in related:
            if kind.endswith("/drawing"):
                _add_shapes(notes, archive, part)
            elif kind.endswith("/comments"):
                for comment in xml_part(archive, part).iter(f"{S}comment"):
                    if comment.get("ref") not in threaded:
                        _add_comment(notes, comment)
        for comment in threads:
            _add_comment(notes, comment)
    except (*DAMAGE, zlib.error):
        pass  # the cells can be read without notes
    return notes


def _add_comment(notes: dict[int, list[str]], comment: ElementTree.Element) -> None:
    cell = one_line(comment.get("ref", ""), ROW_DIGITS * 2)
    row = cell.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    words = (part.text or "" for part in comment.iter() if part.tag in (f"{S}t", f"{THREADED}text"))
    text = one_line("".join(words), CELL_CHARACTERS)
    if text and row.isdecimal() and len(row) <= ROW_DIGITS:
        notes.setdefault(int(row), []).append(COMMENT.format(cell=cell, text=text))


def _add_shapes(notes: dict[int, list[str]], archive: zipfile.ZipFile, part: str) -> None:
    related = relations(archive, part)
    drawing = xml_part(archive, part)
    repeated = {shape for other in drawing.iter(FALLBACK) for shape in other.iter()}
    for place in drawing.iter():
        if place.tag not in (f"{XDR}oneCellAnchor", f"{XDR}twoCellAnchor", f"{XDR}absoluteAnchor"):
            continue
        given = place.findtext(f"{XDR}from/{XDR}row", "")
        row = int(given) if given.isdecimal() and len(given) <= ROW_DIGITS else 0
        for shape in place.iter():
            if shape in repeated:
                continue
            lines = []
            if shape.tag == f"{XDR}txBody":
                lines = list(paragraphs(shape))
            for name in ("id", "dm"):  # of a chart and of a diagram
                kind, target = related.get(shape.get(f"{R}{name}", ""), ("", ""))
                lines += drawing_text(archive, kind, target, with_values=False).split("\n")
            if lines := [line for line in lines if line]:
                notes.setdefault(row, []).extend(lines)


def _rows(sheet: Any) -> Iterator[tuple[int, list[str]]]:
    """The number and texts of each row; a cell that spans several rows is repeated in each.

    If it also spans columns, it is in the first of them, and only repeated if it is not longer than a name.
    """
    # Cells that span several rows, by their first column. The sheet's XML lists them after all rows.
    merged: Merged = {}
    rest = b""
    count = 0
    with sheet_source(sheet) as part:  # openpyxl provides no merged cells when it reads row by row
        while chunk := part.read(CHUNK_BYTES):
            for match in MERGED.finditer(rest + chunk):
                first, last = int(match[2]), int(match[4])
                count += first < last
                if count <= MAX_MERGED and first < last:
                    column = column_index_from_string(match[1].decode())
                    merged.setdefault(column, []).append(
                        (first, min(last, first + MERGED_ROWS), match[1] != match[3])
                    )
            rest = chunk[-MERGED_LONGEST:]

    kept: dict[int, str] = {}  # by column: the text of a cell that spans several rows
    for row in filter(None, sheet.iter_rows()):  # openpyxl yields empty rows between distant ones
        texts = [shown(cell.value, cell.number_format) if cell.value is not None else "" for cell in row]
        number = next((cell.row for cell in row if cell.value is not None), 0)
        for column, ranges in merged.items():
            if not number or column > max(len(texts), MAX_COLUMNS):
                continue
            own = "".join(texts[column - 1 : column])
            begun = [is_wide for first, _, is_wide in ranges if first == number]
            if begun:
                kept[column] = "" if any(begun) and len(own) > NAME_CHARACTERS else own
            elif not own and kept.get(column) and any(first < number <= last for first, last, _ in ranges):
                texts += [""] * (column - len(texts))
                texts[column - 1] = kept[column]
        yield number, BoldRow(texts) if _is_bold(row) else texts


def _is_bold(row: Iterable[Any]) -> bool:
    """Whether the row has words in several cells, which are all bold, and no number."""
    words = 0
    for cell in row:
        if cell.value is None or cell.value == "":
            continue
        if not isinstance(cell.value, str) or not cell.font.b:
            return False
        words += 1
    return words > 1
