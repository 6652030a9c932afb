"""The cells of an HTML table in rows and columns, where cells may reach over several of either."""

import re
from collections.abc import Iterable, Iterator, Sequence

from .sections import one_line

MOST_SPAN = 100
MOST_COLUMNS = 1_000


class Grid:
    """A cell over several columns stands in the first of them, one over several rows in each row."""

    def __init__(self) -> None:
        self.rows: list[list[str]] = []
        self._open = False
        self._across = self._down = 1
        self._above: dict[int, tuple[int, str]] = {}  # by column: cells that reach into this row
        self._below: dict[int, tuple[int, str]] = {}  # and those that reach into the next, with how many rows

    def row(self) -> None:
        self._above, self._below = self._below, {}
        self.rows.append([])
        self._reach_down()

    def cell(self, attributes: dict[str, str]) -> None:
        """A cell begins; `fill` says what is in it."""
        if not self.rows:
            self.row()
        self._across, self._down = (_whole(attributes.get(name, "")) for name in ("colspan", "rowspan"))
        self._open = True

    def fill(self, text: str) -> None:
        """End the cell that is open, if one is."""
        if not self._open:
            return
        self._open = False
        row = self.rows[-1]
        if len(row) < MOST_COLUMNS:
            if self._down > 1:
                self._below[len(row)] = (self._down - 1, text)
            row.extend([text, *[""] * (self._across - 1)])
            self._reach_down()

    def _reach_down(self) -> None:
        row = self.rows[-1]
        while span := self._above.pop(len(row), None):
            rows, text = span
            if rows > 1:
                self._below[len(row)] = (rows - 1, text)
            row.append(text)


def _whole(value: str) -> int:
    return min(int(value), MOST_SPAN) if value.isdecimal() and int(value) else 1


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
