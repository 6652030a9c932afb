"""Reads and writes CSV files for spreadsheets, in which no cell becomes a formula."""

import codecs
import csv
import io
from collections.abc import Iterable, Iterator, Sequence

from django.utils.translation import gettext

MAX_FILE_BYTES = 1_000_000
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet formula begins with one of these


class BadFile(Exception):
    """A file was refused, and nothing of it imported; the message is a sentence with the reason."""


def bad_line(line: int, words: str) -> BadFile:
    """The error for a file with a bad line."""
    return BadFile(gettext("Line %(line)s: %(words)s") % {"line": line, "words": words})


def plain(cell: str) -> str:
    """Add an apostrophe before the text of a cell that a spreadsheet would treat as a formula."""
    return f"'{cell}" if _is_formula(cell) else cell


def unplain(cell: str) -> str:
    """Reverse `plain`."""
    return cell[1:] if cell.startswith("'") and _is_formula(cell) else cell


def _is_formula(cell: str) -> bool:
    # Leading apostrophes count as well, so that `unplain` can remove exactly one.
    return cell.lstrip("'").startswith(FORMULA_STARTS)


def text_of(content: bytes) -> str:
    """The text of a file in UTF-8, or in UTF-16 with a byte order mark. Raises BadFile.

    Excel writes UTF-16 for “Unicode Text”.
    """
    if len(content) > MAX_FILE_BYTES:
        raise BadFile(
            gettext("The file has more than %(limit)s.") % {"limit": f"{MAX_FILE_BYTES // 1_000_000} MB"}
        )
    has_mark = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return content.decode("utf-16" if has_mark else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise bad_line(line, gettext("this is not UTF-8. Save the file as “CSV UTF-8”.")) from None


def rows_of(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The rows, each with the number of its first line.

    Undoes `plain` in all cells. Raises BadFile.
    """
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter)
    line = 1
    try:
        for row in reader:
            yield line, [unplain(cell.strip()) for cell in row]
            line = reader.line_num + 1
    except csv.Error as error:
        raise bad_line(line, f"{error}.") from None


def csv_of(rows: Iterable[Sequence[str]]) -> str:
    """The text of a CSV file with these rows.

    `rows_of` reverses `plain` when it reads the cells.
    """
    written = io.StringIO()
    csv.writer(written).writerows([plain(cell) for cell in row] for row in rows)
    return "\ufeff" + written.getvalue()  # the byte order mark by which Excel recognises UTF-8
