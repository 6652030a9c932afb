"""Tables as lines of text, each of which names its columns: it can be found and quoted by itself."""

import re
from collections.abc import Iterable, Iterator, Sequence

from .sections import one_line

ROW_CHARACTERS = 450  # a longer row becomes several lines, each naming the row again
CELL_CHARACTERS = 200_000
NAME_CHARACTERS = 100  # of a column's name
PERIOD = re.compile(r"(?:19|20)\d\d(?:[-/.]\d\d?){0,2}")  # a number that can name a column


def table_text(rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(table_lines(rows))


def table_lines(rows: Iterable[Sequence[str]], named: bool = True) -> Iterator[str]:
    """What stands above the table in single cells, then its rows as "Column: value; …".

    Where the table is not `named`, its first row is known to be one like the others.
    """
    names: Sequence[str] | None = None if named else []
    named_only = False
    for raw in rows:
        cells = [one_line(cell, CELL_CHARACTERS) for cell in raw]
        filled = [cell for cell in cells if cell]
        if not filled:
            continue
        if names is None and len(filled) > 1:
            names = _names(cells)
            named_only = bool(names)
            if names:
                continue
        named_only = False
        if len(filled) == 1 and len(cells) > 1:
            yield filled[0]
        else:
            yield from row_lines(names or [], cells)
    if named_only and names:
        yield " ".join(name for name in names if name)


def _names(cells: Sequence[str]) -> Sequence[str]:
    """The row as names of columns; none where it is a row of values, or a name and its value."""
    values = [cell for cell in cells if cell and is_number(cell) and not PERIOD.fullmatch(cell)]
    pair = len(cells) == 2 and cells[0].endswith(":")
    if values or pair or all(PERIOD.fullmatch(cell) for cell in cells if cell):
        return []
    return [cell[:NAME_CHARACTERS].rstrip(" :") for cell in cells]


def row_lines(names: Sequence[str], cells: Sequence[str]) -> Iterator[str]:
    """A row as "Column: value; …", in several lines where it is long, each with its first value."""
    pairs = [
        _pair(names[index] if index < len(names) else "", cell) for index, cell in enumerate(cells) if cell
    ]
    if len(pairs) == 2 and pairs[0].endswith(":"):  # a form: a name and what was filled in
        pairs = [" ".join(pairs)]
    line = ""
    for pair in pairs:
        if line and len(line) + len(pair) > ROW_CHARACTERS:
            yield line
            line = f"{pairs[0]}; {pair}" if len(pairs[0]) < ROW_CHARACTERS // 4 else pair
        else:
            line = f"{line}; {pair}" if line else pair
    if line:
        yield line


def is_number(text: str) -> bool:
    return not any(character.isalpha() for character in text)


def _pair(name: str, cell: str) -> str:
    return f"{name}: {cell}" if name else cell
