"""Reads and writes CSV files for spreadsheets, in which no cell becomes a formula."""

import codecs
import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence

from django.utils.translation import gettext

MAX_FILE_BYTES = 1_000_000
# Where a spreadsheet could see a formula, which begins with =, +, -, @ or one of their full-width forms: at
# the beginning of a cell, and after each semicolon, tab or line break. German spreadsheets separate cells by
# semicolons, and ignore quotation marks that do not begin a cell. _PLAIN_FORMULA matches the apostrophes that
# `plain` adds.
_FORMULA = re.compile(
    r"\A(?=['\"]*[=+\-@\uff1d\uff0b\uff0d\uff20\t\r\n])|(?<=[;\t\r\n])(?=['\"]*[=+\-@\uff1d\uff0b\uff0d\uff20])"
)
_PLAIN_FORMULA = re.compile(
    r"\A'(?=['\"]*[=+\-@\uff1d\uff0b\uff0d\uff20\t\r\n])|(?<=[;\t\r\n])'(?=['\"]*[=+\-@\uff1d\uff0b\uff0d\uff20])"
)


class BadFile(Exception):
    """The file was refused and nothing was imported; the message is a sentence with the reason."""


def bad_line(line: int, words: str) -> BadFile:
    """The error for a file with a bad line."""
    return BadFile(gettext("Line %(line)s: %(words)s") % {"line": line, "words": words})


def plain(cell: str) -> str:
    """Add an apostrophe wherever a spreadsheet could see the beginning of a formula."""
    return _FORMULA.sub("'", cell)


def unplain(cell: str) -> str:
    """Reverse `plain`, which adds an apostrophe even before existing ones, so exactly one is removed."""
    return _PLAIN_FORMULA.sub("", cell)


def text_of(content: bytes) -> str:
    """The text of a file in UTF-8, or in UTF-16 with a byte order mark. Raises BadFile.

    Excel writes UTF-16 for “Unicode Text”.
    """
    if len(content) > MAX_FILE_BYTES:
        raise BadFile(
            gettext("The file is larger than %(limit)s.") % {"limit": f"{MAX_FILE_BYTES // 1_000_000} MB"}
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
