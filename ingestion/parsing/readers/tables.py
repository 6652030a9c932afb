"""Tables as lines of text that name the column of each value.

Cells in HTML may span rows or columns.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from chatsite.superscripts import without_note_marks
from ingestion.parsing.sections import Contents, anchor, one_line

MAX_SPAN = 100
MAX_AREA = 400  # rows times columns of a cell that spans both; so that a small file cannot fill the memory
MAX_COLUMNS = 1_000


class Grid:
    """Collects the rows of an HTML table.

    A cell that spans several columns has its text in the first one; a cell that spans several rows has it in
    each row. A cell that spans both has it in the first column of each row.
    """

    def __init__(self) -> None:
        self.rows: list[list[str]] = []
        self.is_open = False  # whether a cell has started and its text is still missing
        self.has_head = False  # whether a `thead` has the names of the columns
        self._across = self._down = 1
        # For each row, the name of each cell's element, `th` or `td`. A cell that spans several columns
        # counts once; a cell that spans several rows counts in each.
        self._kinds: list[list[str]] = []
        self._kind = "td"
        self._has_plain: list[bool] = []  # for each row, whether some of its text is not bold
        self._is_head: list[bool] = []  # for each row, whether its class says that it is the head
        self._colors: list[str] = []  # for each row, its attribute `bgcolor`
        # By column, (rows left, text, element) of the cells that extend into this row, and into the next row.
        # The element is empty except in the first column of a cell.
        self._above: dict[int, tuple[int, str, str]] = {}
        self._below: dict[int, tuple[int, str, str]] = {}

    def row(self, attributes: Mapping[str, str] | None = None) -> None:
        attributes = attributes or {}
        self._is_head.append(bool(HEAD.search(attributes.get("class", ""))))
        self._colors.append(attributes.get("bgcolor", ""))
        self._above, self._below = self._below, {}
        self.rows.append([])
        self._kinds.append([])
        self._has_plain.append(False)
        self._reach_down()

    def cell(self, kind: str, attributes: dict[str, str]) -> None:
        """Start a cell of this element, `th` or `td`; `fill` provides its text.

        The name of the element is empty if the text of the cell is left out.
        """
        if not self.rows:
            self.row()
        spans = (attributes.get(name, "") for name in ("colspan", "rowspan"))
        self._across, self._down = (
            min(int(span), MAX_SPAN) if span.isdecimal() and int(span) else 1 for span in spans
        )
        self._kind = kind
        self._down = min(self._down, max(1, MAX_AREA // self._across))
        self.is_open = True

    def fill(self, text: str, *, is_bold: bool = False) -> None:
        """End the open cell, if any."""
        if not self.is_open:
            return
        self.is_open = False
        self._has_plain[-1] = self._has_plain[-1] or bool(text and not is_bold)
        row = self.rows[-1]
        if self._kind:
            self._kinds[-1].append(self._kind)
        if len(row) >= MAX_COLUMNS:  # from here on, spans are ignored
            row.append(text)
        else:
            for column in range(self._across):
                own, kind = ("", "") if column else (text, self._kind)
                if self._down > 1:
                    self._below[len(row)] = (self._down - 1, own, kind)
                row.append(own)
            self._reach_down()

    def _reach_down(self) -> None:
        row = self.rows[-1]
        while span := self._above.pop(len(row), None):
            rows, text, kind = span
            if rows > 1:
                self._below[len(row)] = (rows - 1, text, kind)
            row.append(text)
            if kind:
                self._kinds[-1].append(kind)

    def text(self) -> str:
        self._remove_empty_columns()
        if not self._has_row_names():
            return table_text(self.rows)
        rows = [
            [f"{row[0].rstrip(' :')}:", *row[1:]]
            if row and _is_label(row[0]) and sum(map(bool, row)) == 2
            else row
            for row in self.rows
        ]
        return "\n".join(table_lines(rows, named=False))

    def _remove_empty_columns(self) -> None:
        used = sorted({column for row in self.rows for column, cell in enumerate(row) if cell})
        if used and len(used) <= used[-1]:
            self.rows = [[row[column] for column in used if column < len(row)] for row in self.rows]

    def _has_row_names(self) -> bool:
        """Whether the first column has the names of the rows, and no row has the names of columns.

        Then all rows begin with a `th` and also have a `td`; or, without any `th`, the rows are properties
        and the first is not set apart by `thead`, bold type, its class or its colour. Rows of a single cell,
        such as titles, are ignored.
        """
        numbers = [number for number, kinds in enumerate(self._kinds) if len(kinds) > 1]
        # An empty cell is above names of rows and before names of columns.
        if not numbers or not self.rows[numbers[0]][0]:
            return False
        if any("th" in self._kinds[number] for number in numbers):
            return all(
                kinds[0] == "th" and "td" in kinds for kinds in (self._kinds[number] for number in numbers)
            )
        plain = [self._has_plain[number] for number in numbers]
        color, *colors = (self._colors[number] for number in numbers)
        is_apart = (
            self.has_head
            or (not plain[0] and any(plain))
            or self._is_head[numbers[0]]
            or (color != "" and color not in colors and len(colors) > 1)  # otherwise colours may alternate
        )
        return not is_apart and _are_properties([self.rows[number] for number in numbers])


def _is_label(text: str) -> bool:
    return len(text) <= NAME_CHARACTERS and any(map(str.isalpha, text))


def _are_properties(rows: Sequence[Sequence[str]]) -> bool:
    """Whether rows without a `th` are names and values, such as an address above a phone number.

    The first row names columns only if it has no digit in that column and the cells below are texts with
    digits, or at least AMOUNT_ROWS amounts of one unit.
    """
    rows = [[without_note_marks(cell).strip() for cell in row] for row in rows]
    if len(rows) < 2 or any(len(row) != 2 for row in rows) or not all(rows[0]):
        return False
    (first, second), *below = rows
    labels = [label for label, _ in below if label]
    if not _has_digit(first) and labels and all(map(_has_digit, labels)):
        return len(labels) == 1 and not is_number(labels[0])
    values = [value for _, value in below if value]
    is_list = len(values) >= AMOUNT_ROWS and not any(map(PHONE.match, values))
    return (
        _has_digit(second)
        or not is_list
        or any(len(AMOUNT.findall(value)) != 1 for value in values)
        or len({AMOUNT.sub("", value).strip(" +-−") for value in values}) > 1
    )


ROW_CHARACTERS = 450  # a longer row becomes several lines, which repeat the first value if it is short
CELL_CHARACTERS = 1_000_000
NAME_CHARACTERS = 100  # characters of a column's name, or of the name of a row before its value
AMOUNT_ROWS = 4  # minimum number of amounts below the name of the second of two columns
AMOUNT = re.compile(r"\d+(?:[.,:'’ ]\d+)*")
HEAD = re.compile(r"(?:^|[\s_-])t?head(?:er)?(?:[\s_-]|$)", re.IGNORECASE)  # the class of a row
PHONE = re.compile(r"\(?(?:\+|0\d+(?![\d.,:]))")
MAX_HEADER_ROWS = 3
# A row of up to FORM_COLUMNS cells, with fewer than FORM_ROWS rows below it, may begin a form.
FORM_COLUMNS, FORM_ROWS = 2, 3
TITLE_WIDTH = 2  # a row may be a title if the next row has at least this many times as many filled cells
HEADER_ROWS_BELOW = 3  # minimum number of rows below a title with a note: the names, and two rows of values
HEADER_AHEAD = 8  # number of rows that are searched for the header
PLACE_ROWS = 50  # rows in each section of a longer table
MAX_BESIDE_ROWS = 2_000  # longer sheets are not searched for tables beside each other
ROWS_BESIDE = 3  # minimum number of rows of a table beside another
ROWS_APART = 2  # number of rows by which the first or last rows of two tables beside each other must differ
WORDS_SHARE = 0.8  # minimum share of the rows of a table beside another that begin with words
SIGNS = frozenset("#№%€$£")  # these look like numbers, but can name a column
PERIOD = re.compile(r"(?:19|20)\d\d(?:[-/.]\d\d?){0,2}")  # a number that can name a column


def table_text(rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(table_lines(rows))


def table_lines(rows: Iterable[Sequence[str]], named: bool = True) -> Iterator[str]:
    """The table as lines.

    Rows have the form "Column: value; …"; a row with a single filled cell becomes its text. If `named` is
    False, the first row is a normal row and does not name the columns.
    """
    return (line for _, line in numbered_lines(enumerate(rows, 1), named))


class BoldRow(list[str]):
    """The cells of a row whose texts are all bold."""


class _Row(NamedTuple):
    """A row with text. `is_apart` says whether empty rows are before it."""

    number: int
    cells: Sequence[str]
    is_apart: bool
    is_bold: bool


def numbered_lines(
    rows: Iterable[tuple[int, Sequence[str]]], named: bool = True
) -> Iterator[tuple[int, str]]:
    """Like :func:`table_lines`, for numbered rows; returns each line with the number of its row.

    The header may have several rows. Further tables may follow with their own headers.
    """
    filled = _filled(rows)
    columns: _Columns | None = None if named else _Columns([])
    at = 0
    is_new = False  # whether another table may begin
    ahead: list[_Row] = []
    while ahead or (ahead := list(itertools.islice(filled, 1))):
        row = ahead.pop(0)
        before, at, cells = at, row.number, row.cells
        is_new = is_new or row.is_apart
        if columns and columns.are(cells):  # a repetition of the names
            is_new = False
            continue
        may_begin = columns is None or (named and (is_new or row.is_bold or columns.is_nameless))
        if may_begin and sum(map(bool, cells)) > 1:
            ahead += itertools.islice(filled, HEADER_AHEAD - len(ahead))
            block = list(itertools.takewhile(lambda each: not each.is_apart, ahead))
            if columns is None and _is_above_header(cells, [each.cells for each in block]):
                yield at, "; ".join(filter(None, cells))
                continue
            if columns is None or _begins_table(row, block, columns, is_new=is_new):
                following = [each.cells for each in (ahead if columns is None else block)]
                deeper = _header_rows([cells, *following])
                whole = _column_names([cells, *following[: deeper - 1]])
                if whole and columns and (rest := columns.rest()):
                    yield before, rest
                columns = _Columns(whole)
                if whole:
                    is_new = False
                    del ahead[: deeper - 1]
                    yield from ((at, line) for line in columns.long_names)
                    continue
            is_new = False
        yield from ((at, line) for line in (columns or _Columns([])).lines(cells))
    if columns and (rest := columns.rest()):
        yield at, rest


class _Columns:
    """The names of a table's columns, and those that no row has used yet."""

    def __init__(self, whole: Sequence[str]) -> None:
        self._names = [name[:NAME_CHARACTERS].rstrip(" :") for name in whole]
        self.long_names: Sequence[str] = ()  # all names as lines, if some are too long to be repeated
        self._unused: dict[int, str] = {}
        self._only = ""  # the names, if no row has followed
        if any(len(name) > NAME_CHARACTERS for name in whole):
            self.long_names = list(row_lines([], whole))
        else:
            self._only = " ".join(filter(None, self._names))
            self._unused = {column: name for column, name in enumerate(self._names) if name}

    @property
    def is_nameless(self) -> bool:
        return not any(self._names)

    def lack(self, cells: Sequence[str]) -> bool:
        """Whether a cell with text is in a column without a name."""
        return any(cell and not any(self._names[at : at + 1]) for at, cell in enumerate(cells))

    def are(self, cells: Sequence[str]) -> bool:
        """Whether a row repeats all column names, of which there are at least two."""
        return sum(map(bool, cells)) > 1 and [cell.rstrip(" :") for cell in cells] == self._names

    def lines(self, cells: Sequence[str]) -> Iterator[str]:
        """The lines of a row."""
        self._only = ""
        if sum(map(bool, cells)) == 1 and len(cells) > 1:
            yield next(filter(None, cells))
            return
        for column in [column for column in self._unused if column < len(cells) and cells[column]]:
            del self._unused[column]
        yield from row_lines(self._names, cells)

    def rest(self) -> str:
        """The names that no row has used, as a line."""
        return self._only or "; ".join(self._unused.values())


def _filled(rows: Iterable[tuple[int, Sequence[str]]]) -> Iterator[_Row]:
    last: int | None = None
    for number, raw in rows:
        cells = [one_line(cell, CELL_CHARACTERS) for cell in raw]
        if any(cells):
            yield _Row(number, cells, last is not None and number > last + 1, isinstance(raw, BoldRow))
            last = number


def _is_above_header(cells: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether a row is a title with a note, and the row below it names the columns."""
    if len(rows) < HEADER_ROWS_BELOW or _header_rows([cells, *rows]) > 1:
        return False
    names, *values = rows
    width = sum(map(bool, names))
    if sum(map(bool, cells)) * TITLE_WIDTH > width or not _column_names([names]):
        return False
    return _names_numbers(names, values) and not _names_numbers(cells, rows)


def _begins_table(row: _Row, block: Sequence[_Row], columns: _Columns, *, is_new: bool) -> bool:
    """Whether a row begins a further table, whose columns it names.

    A bold row does if the next row is not bold, begins in the same column and has text only below names. A
    row that follows empty rows does if it has a word above a column of numbers. If no column has a name yet,
    a row does if all of its words but the first are above columns of numbers.
    """
    names, rows = row.cells, [each.cells for each in block]
    width = sum(map(bool, names))
    if not _column_names([names]):
        return False
    if row.is_bold and block and not block[0].is_bold and not _Columns(names).lack(rows[0]):
        return _first(names) == _first(rows[0]) and not any(name and is_number(name) for name in names)
    if any(sum(map(bool, each)) > width for each in rows):
        return False
    if len(rows) < (1 if width > FORM_COLUMNS else FORM_ROWS):
        return False  # perhaps a form: labels and what was filled in
    if is_new:
        return _names_numbers(names, rows)
    if width <= FORM_COLUMNS or len(rows) < FORM_ROWS or any(map(_has_digit, names)):
        return False
    rest = ["" if column == _first(names) else name for column, name in enumerate(names)]
    return columns.is_nameless and _all_above_numbers(rest, rows)


def _first(cells: Sequence[str]) -> int:
    """The first column with text."""
    return next(column for column, cell in enumerate(cells) if cell)


def _names_numbers(names: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether a word is above a column of numbers."""
    for column, name in enumerate(names):
        values = [row[column] for row in rows if column < len(row) and row[column]]
        if name and not is_number(name) and values and all(map(is_number, values)):
            return True
    return False


def header_of(rows: Sequence[Sequence[str]]) -> Sequence[Sequence[str]]:
    """The rows that :func:`numbered_lines` uses as column names.

    A title with a note above them is not recognised here.
    """
    start = next((place for place, row in enumerate(rows) if sum(map(bool, row)) > 1), len(rows))
    ahead = rows[start : start + HEADER_AHEAD]
    header = ahead[: _header_rows(ahead)] if ahead else []
    return header if header and _column_names(header) else []


Rows = Iterable[tuple[int, Sequence[str]]]


def add_rows(
    contents: Contents,
    heading: str,
    rows: Rows,
    place: str,
    notes: Mapping[int, Sequence[str]] | None = None,
) -> None:
    """Add a table in one section, or in several of PLACE_ROWS each, cited by cell range.

    Tables beside each other have separate sections. `notes` has further lines, such as comments, by the
    number of the row that they follow; they are added to the first of these tables.
    """
    widest: dict[int, int] = {}  # by a table's first column, the number of its last column

    def measured(left: int, rows: Rows) -> Iterator[tuple[int, Sequence[str]]]:
        for number, cells in rows:
            widest[left] = max(widest.get(left, 0), left + len(cells))
            yield number, cells

    # For each section: its first column, the numbers of its rows, and their lines.
    parts: list[tuple[int, list[int], list[str]]] = []
    size = 0
    for place_in_order, (left, table) in enumerate(_side_by_side(rows)):
        lines = numbered_lines(measured(left, table))
        for number, line in lines if place_in_order else _with_notes(lines, notes or {}):
            last = parts[-1] if parts and parts[-1][0] == left else None
            if last is None or (number != last[1][-1] and len(last[1]) >= PLACE_ROWS):
                parts.append(last := (left, [], []))
            if not last[1] or last[1][-1] != number:
                last[1].append(number)
            last[2].append(line)
            size += len(line) + 1
            contents.check(size)
    for left, numbers, texts in parts:
        where = anchor(place)
        if len(parts) > 1:
            cells = (
                f"{column_letters(left + 1)}{numbers[0]}:{column_letters(widest.get(left, 0))}{numbers[-1]}"
            )
            where = f"{where}!{cells}" if where else f"cells={cells}"
        contents.add(where, None, heading, "\n".join(texts))


def _side_by_side(rows: Rows) -> Iterator[tuple[int, Rows]]:
    """The tables beside each other, each with the number of columns left of it."""
    iterator = iter(rows)
    beginning = list(itertools.islice(iterator, MAX_BESIDE_ROWS))
    following = next(iterator, None)
    if following is not None:  # a longer sheet is read row by row
        yield 0, itertools.chain(beginning, [following], iterator)
        return
    used = sorted({column for _, cells in beginning for column, cell in enumerate(cells) if cell})
    spans: list[list[int]] = []  # the first and last columns of adjacent columns with text
    for column in used:
        if spans and column == spans[-1][1] + 1:
            spans[-1][1] = column
        else:
            spans.append([column, column])
    groups = [
        [(number, _part(cells, first, last)) for number, cells in beginning if any(cells[first : last + 1])]
        for first, last in (spans if len(spans) > 1 else ())
    ]
    if groups and _are_apart(groups):
        yield from zip((first for first, _ in spans), groups, strict=True)
    else:
        yield 0, beginning


def _part(cells: Sequence[str], first: int, last: int) -> Sequence[str]:
    part = cells[first : last + 1]
    return BoldRow(part) if isinstance(cells, BoldRow) else part


def _are_apart(groups: Sequence[Sequence[tuple[int, Sequence[str]]]]) -> bool:
    """Whether groups of columns are separate tables, and not parts of one with empty columns.

    In each, the first column must have mostly words below its name, and at least half of the rows must have
    several cells. A group must begin or end at least ROWS_APART rows away from the group before it, or share
    a column name with it.
    """
    before: tuple[int, int, set[str]] | None = None
    for rows in groups:
        full = [(number, cells) for number, cells in rows if sum(map(bool, cells)) > 1]
        if len(full) < ROWS_BESIDE or not _column_names([full[0][1]]):
            return False
        (first, names), last = full[0], full[-1][0]
        column = _first(names)
        values = ["".join(cells[column : column + 1]) for number, cells in rows if number > first]
        words = sum(bool(value) and not is_number(value) for value in values)
        if words < WORDS_SHARE * len(values) or last - first >= len(full) * 2:
            return False
        own = set(filter(None, names))
        same_rows = before and abs(before[0] - first) < ROWS_APART and abs(before[1] - last) < ROWS_APART
        if same_rows and before and before[2].isdisjoint(own):
            return False
        before = first, last, own
    return True


def _with_notes(
    lines: Iterable[tuple[int, str]], notes: Mapping[int, Sequence[str]]
) -> Iterator[tuple[int, str]]:
    waiting = sorted(notes, reverse=True)
    for number, line in lines:
        while waiting and waiting[-1] < number:
            row = waiting.pop()
            yield from ((row, note) for note in notes[row])
        yield number, line
    yield from ((row, note) for row in reversed(waiting) for note in notes[row])


def column_letters(number: int) -> str:
    """The letters of a column number (from 1): A to Z, then AA."""
    letters = ""
    while number > 0:
        number, rest = divmod(number - 1, 26)
        letters = chr(65 + rest) + letters
    return letters or "A"


def _header_rows(rows: Sequence[Sequence[str]]) -> int:
    """How many rows the header has.

    The names of groups of columns are above the names of their columns. The next row belongs to the header if
    it has only words or periods (PERIOD), numbers follow below them, and one of these conditions is met:
    - All its cells are above columns of numbers, and some have the same text.
    - The first column has one cell over both rows, and the next row has text where the row above has gaps.
    - Its first cell is empty, and all its other cells are above columns of numbers.
    """
    count = 1
    while count < min(MAX_HEADER_ROWS, len(rows) - 1):
        upper, row = rows[count - 1], rows[count]
        width = max(len(upper), len(row))
        above, below = _padded(upper, width), _padded(row, width)
        gaps = [column for column in range(width) if below[column] and not above[column]]
        words = not any(cell and is_number(cell) and not _is_period(cell) for cell in row)
        one_cell = not above[0] or below[0] in ("", above[0])
        counted = any(
            cell and is_number(cell)
            for later in rows[count + 1 :]
            for cell, name in zip(later, below, strict=False)
            if name
        )
        names = list(filter(None, below))
        stacked = (count > 1 or len(names) > 1) and _all_above_numbers(below, rows[count + 1 :])
        repeats = stacked and len(set(names)) < len(names)
        if not (words and counted and (repeats or (one_cell and (gaps or (stacked and not below[0]))))):
            break
        count += 1
    return count


def _all_above_numbers(names: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether each name is above a column of numbers; leading rows without any number are ignored."""
    values = list(itertools.dropwhile(lambda row: not any(cell and is_number(cell) for cell in row), rows))
    for column, name in enumerate(names):
        own = [row[column] for row in values if column < len(row) and row[column]]
        if name and (not own or not all(map(is_number, own))):
            return False
    return bool(values)


def _column_names(rows: Sequence[Sequence[str]]) -> Sequence[str]:
    """The names of the columns, each preceded by the names of its groups.

    Empty if these rows are not a header but values, or a name with its value.
    """
    width = max(map(len, rows))
    names = _padded(rows[0], width)
    for row in rows[1:]:
        group = ""
        for column, below in enumerate(_padded(row, width)):
            above = names[column]
            if above:
                group = above if below and below != above else ""
            if below and below != above:
                names[column] = f"{above or group} {below}".strip()
    numbers = [name for name in names if name and is_number(name) and not SIGNS.issuperset(name)]
    values = [name for name in numbers if not _is_period(name)]
    pair = len(names) == 2 and names[0].endswith(":")
    # Periods alone may be values, unless the corner above the names of the rows is empty.
    periods = set(filter(None, names))
    only_periods = all(map(_is_period, periods)) and (names[0] != "" or len(periods) < 2)
    if values or pair or only_periods:
        return []
    return [name.rstrip(" :") for name in names]


def _padded(cells: Sequence[str], width: int) -> list[str]:
    return [*cells, *[""] * (width - len(cells))]


def row_lines(names: Sequence[str], cells: Sequence[str]) -> Iterator[str]:
    """A row as "Column: value; …"; a long row has several such lines."""
    pairs = [
        f"{names[index]}: {cell}" if index < len(names) and names[index] else cell
        for index, cell in enumerate(cells)
        if cell
    ]
    if len(pairs) == 2 and pairs[0].endswith(":"):  # a form: a label and the filled-in text
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


def _has_digit(text: str) -> bool:
    return any(map(str.isdecimal, text))  # superscript digits are not decimal


def _is_period(text: str) -> bool:
    """Whether a text is a period (PERIOD), perhaps with the mark of a footnote."""
    return bool(PERIOD.fullmatch(without_note_marks(text).strip()))


def is_number(text: str) -> bool:
    return not any(character.isalpha() for character in text)
