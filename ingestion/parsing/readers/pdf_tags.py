"""Finds the tables of a tagged PDF, whose tags mark the rows and cells.

Browsers and word processors write these tags for screen readers. Tags say more than positions: which lines
form one cell, where rows end without drawn lines, and which row continues on the next page.
"""

import bisect
import ctypes
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium

from .pdf_tables import Table, is_named
from .pdf_words import Span, Word
from .tables import MAX_SPAN

MAX_PAGES = 1_000  # pages of a document: for each page, PDFium goes through the tags of all pages
MAX_TAGS = 50_000  # tags of a page
MAX_DEPTH = 60
MAX_COLUMNS = 100
MAX_TEXTS = 20_000  # objects of a page that are searched for texts
TYPE_BYTES = 64
LAYOUT_CHARACTERS = 800  # a table without header cells (TH) and with a longer cell only arranges text


@dataclass(slots=True)
class TaggedCell:
    """A cell: its first column, its spans, and the ids of the marked contents that are its text."""

    column: int
    across: int
    down: int
    is_name: bool
    marks: list[int]


@dataclass(slots=True)
class TaggedTable:
    """The rows of a table that have text on the page, by row number within the whole table."""

    rows: dict[int, list[TaggedCell]] = field(default_factory=dict)
    columns: int = 0
    count: int = 0  # number of rows of the whole table, plus `start`
    start: int = 0  # the number of the table's first row, after contents such as its background
    extents: dict[int, Span] = field(default_factory=dict)  # horizontal extents of the words in each column


def has_tags(page: pypdfium2.PdfPage) -> bool:
    """Whether the document has tags and is short enough (MAX_PAGES) to read them."""
    document = page.pdf.raw
    return bool(pdfium.FPDFCatalog_IsTagged(document)) and pdfium.FPDF_GetPageCount(document) <= MAX_PAGES


def tagged_tables(page: pypdfium2.PdfPage) -> list[TaggedTable]:
    """The page's tables of several rows and columns; of nested tables, only the innermost."""
    tree = pdfium.FPDF_StructTree_GetForPage(page.raw)
    if not tree:
        return []
    try:
        reader = _TagReader()
        for place in range(pdfium.FPDF_StructTree_CountChildren(tree)):
            if element := pdfium.FPDF_StructTree_GetChildAtIndex(tree, place):
                reader.walk(element)
        return [table for table in reader.tables if table.columns > 1 and table.count > 1]
    finally:
        pdfium.FPDF_StructTree_Close(tree)


def words_in_cells(
    page: pypdfium2.PdfPage,
    textpage: pypdfium2.PdfTextPage,
    words: Iterable[Word],
    tagged: Sequence[TaggedTable],
    above: Table | None = None,
) -> tuple[list[Table], list[Word]]:
    """The tables with their words, and the words outside of tables.

    `above` is the table at the end of the previous page, which the first table may continue.
    """
    cell_of: dict[int, TaggedCell] = {}  # the cell of each marked content
    place_of: dict[int, int] = {}  # the position of each marked content within its cell
    for table in tagged:
        for row in table.rows.values():
            for cell in row:
                for place, mark in enumerate(cell.marks):
                    cell_of.setdefault(mark, cell)
                    place_of.setdefault(mark, place)
    objects = _marked_texts(page)
    # Words by identity of the cell, with the positions of their marked contents.
    words_of: dict[int, list[tuple[int, Word]]] = {}
    outside: list[Word] = []

    def mark_at(index: int) -> int:
        text = pdfium.FPDFText_GetTextObject(textpage.raw, index)
        return objects.get(ctypes.addressof(text.contents), -1) if text else -1

    for word in words:
        for part, mark in _parts(word, mark_at, cell_of):
            around = cell_of.get(mark)
            if around is None:
                outside.append(part)
            else:
                words_of.setdefault(id(around), []).append((place_of[mark], part))

    found = []
    for table in tagged:
        texts = {
            id(cell): [word for _, word in sorted(words_of.get(id(cell), ()), key=lambda each: each[0])]
            for row in table.rows.values()
            for cell in row
        }
        _align(table, texts, above)
        if read := _table(table, texts):
            found.append(read)
        else:
            outside += [word for each in texts.values() for word in each]
    outside.sort(key=lambda word: word.first)
    if found and above and above.goes_on_in(found[0]) and (names := _repeated_names(above, outside)):
        found[0] = replace(found[0], lines=found[0].lines | {word.line for word in names})
        repeated = {word.first for word in names}
        outside = [word for word in outside if word.first not in repeated]
    return found, outside


def _repeated_names(above: Table, outside: Sequence[Word]) -> Sequence[Word]:
    """The words of `outside` that repeat the column names of `above`; empty if there are none.

    Word processors repeat the names at the top of the next page, but do not tag them there.
    """
    rows = above.header
    cells = [
        cell
        for number, row in enumerate(rows)
        for column, cell in enumerate(row)
        if not number or cell != rows[number - 1][column]  # otherwise, one cell spans both rows
    ]
    names = "".join("".join(cells).split())
    for start in range(len(outside) if names else 0):
        end, text = start, ""
        while end < len(outside) and len(text) < len(names) and names.startswith(text):
            text += outside[end].text
            end += 1
        if text == names:
            return outside[start:end]
    return []


def _parts(
    word: Word, mark_at: Callable[[int], int], cells: Mapping[int, TaggedCell]
) -> Iterator[tuple[Word, int]]:
    """Yield the word with the id of its marked content, split where another cell begins."""
    first, last = mark_at(word.first), mark_at(word.last)
    if cells.get(first) is cells.get(last) or len(word.text) != word.last - word.first + 1:
        yield word, first
        return
    marks = [mark_at(index) for index in range(word.first, word.last + 1)]
    start = 0
    for _, group in itertools.groupby(marks, key=lambda mark: id(cells.get(mark))):
        end = start + len(list(group))
        share = (word.right - word.left) / len(word.text)
        yield (
            replace(
                word,
                text=word.text[start:end],
                left=word.left + start * share,
                right=word.left + end * share,
                first=word.first + start,
                last=word.first + end - 1,
            ),
            marks[start],
        )
        start = end


def _align(tagged: TaggedTable, words: Mapping[int, list[Word]], above: Table | None) -> None:
    """In rows that lack cells, move each cell to the column at its position on the page.

    Browsers omit the tags of empty cells. The positions of columns are known from complete rows, or from the
    table that this one continues.
    """
    extents: dict[int, Span] = {}
    if above and tagged.rows and above.numbers and above.goes_on_at(min(tagged.rows)):
        extents = dict(above.extents)
        tagged.columns = max(tagged.columns, len(above.cells[0]))
    for row in tagged.rows.values():
        if sum(cell.across for cell in row if words[id(cell)]) == tagged.columns:
            for cell in row:
                if cell.across == 1:
                    left, right = _extent(words[id(cell)])
                    before = extents.get(cell.column, (left, right))
                    extents[cell.column] = min(left, before[0]), max(right, before[1])
    tagged.extents = extents
    for row in tagged.rows.values():
        filled = [cell for cell in row if words[id(cell)]]
        taken = sum(cell.across for cell in filled)
        if taken == tagged.columns or any(cell.across > 1 for cell in filled):
            continue
        free = [column for column in range(tagged.columns) if column in extents]
        for place, cell in enumerate(filled):
            left, right = _extent(words[id(cell)])
            choice = free[: len(free) - (len(filled) - place) + 1]
            if not choice:
                break
            cell.column = max(choice, key=lambda column: _overlap(extents[column], (left, right)))
            free = [column for column in free if column > cell.column]


def _extent(words: Sequence[Word]) -> Span:
    return min(word.left for word in words), max(word.right for word in words)


def _overlap(one: Span, other: Span) -> float:
    """The overlap of two spans; if negative, the distance between them."""
    return min(one[1], other[1]) - max(one[0], other[0])


def _table(tagged: TaggedTable, words: dict[int, list[Word]]) -> Table | None:
    """The table with its words; None if it is empty or only arranges text."""
    # Words by row and column; a cell is in all rows that it spans.
    placed: dict[int, dict[int, list[Word]]] = {}
    for number, row in tagged.rows.items():
        for cell in row:
            for place in range(number, number + cell.down if words[id(cell)] else number):
                if place in tagged.rows:
                    placed.setdefault(place, {})[cell.column] = words[id(cell)]
    numbers = sorted(placed)
    cells = [[placed[number].get(column, []) for column in range(tagged.columns)] for number in numbers]
    first = next((place for place, row in enumerate(cells) if sum(map(bool, row)) > 1), None)
    if not cells or (first is None and numbers[0] == tagged.start):
        return None
    first = first or 0
    named_columns = any(cell.is_name for row in tagged.rows.values() for cell in row)
    longest = max(sum(len(word.text) + 1 for word in cell) for row in cells for cell in row)
    if not named_columns and longest > LAYOUT_CHARACTERS:
        return None
    if named_columns:
        names = tagged.rows[numbers[first]]
        named = all(cell.is_name for cell in names if cell.column and words[id(cell)])
        # If there are only header cells, they name rows, unless only the table's first row is on this page.
        is_header = numbers == [tagged.start] and len(numbers) < tagged.count - tagged.start
        has_values = any(not cell.is_name for row in tagged.rows.values() for cell in row)
        named = named and (has_values or is_header)
    else:
        named = numbers[0] == tagged.start and is_named(cells[first:])
    lines = frozenset(word.line for row in cells for cell in row for word in cell)
    return Table(
        cells,
        named,
        lines,
        [],
        numbers=tuple(numbers),
        count=tagged.count,
        extents=tagged.extents,
        has_names=named_columns,
    )


class _TagReader:
    """Collects the tables below the elements given to `walk`, from at most MAX_TAGS tags."""

    def __init__(self) -> None:
        self.tables: list[TaggedTable] = []
        self._left = MAX_TAGS
        self._type = ctypes.create_string_buffer(TYPE_BYTES)

    def walk(self, element: Any, depth: int = 0) -> None:
        """Add the tables at and below the element."""
        if self._kind(element) == "Table":
            self._table(element, depth)
        else:
            for _, child in self._children(element, depth):
                self.walk(child, depth + 1)

    def _kind(self, element: Any) -> str:
        size = pdfium.FPDF_StructElement_GetType(element, self._type, TYPE_BYTES)
        return self._type.raw[: size - 2].decode("utf-16-le", "replace") if 2 < size <= TYPE_BYTES else ""

    def _children(self, element: Any, depth: int) -> Iterator[tuple[int, Any]]:
        """The child elements with content on the page, with their positions among all children."""
        if depth > MAX_DEPTH:
            return
        child_at = pdfium.FPDF_StructElement_GetChildAtIndex
        count = min(pdfium.FPDF_StructElement_CountChildren(element), self._left)
        self._left -= count
        for place in range(count):
            if child := child_at(element, place):
                yield place, child

    def _table(self, element: Any, depth: int) -> None:
        table = TaggedTable()
        before = len(self.tables)
        spanned: dict[int, int] = {}  # by column, the first row below a cell that spans rows
        for number, row in self._rows(element, table, depth):
            cells = []
            column = next_place = 0
            children, count = self._cells(row, depth + 2)
            for place, child in children:
                column += place - next_place  # cells without text on the page
                next_place = place + 1
                while spanned.get(column, 0) > number:
                    column += 1
                if (kind := self._kind(child)) not in ("TH", "TD") or column >= MAX_COLUMNS:
                    continue
                across, down = (self._span(child, name) for name in (b"ColSpan", b"RowSpan"))
                cell = TaggedCell(column, across, down, kind == "TH", list(self._marks(child, depth + 3)))
                cells.append(cell)
                spanned |= dict.fromkeys(range(column, column + across), number + down)
                column += across
            width = column + count - next_place
            table.columns = max(table.columns, min(width, MAX_COLUMNS))
            table.rows[number] = cells
        if len(self.tables) == before:  # no cell contains a table
            self.tables.append(table)

    def _cells(self, row: Any, depth: int) -> tuple[list[tuple[int, Any]], int]:
        """The cells with content on the page, with their positions, and the number of all cells.

        Contents of the row itself, such as its background, are not cells.
        """
        cells = list(self._children(row, depth))
        elements = {place for place, _ in cells}
        count = min(pdfium.FPDF_StructElement_CountChildren(row), MAX_COLUMNS)
        marked = pdfium.FPDF_StructElement_GetChildMarkedContentID
        marks = [place for place in range(count) if place not in elements and marked(row, place) >= 0]
        return [(place - bisect.bisect(marks, place), cell) for place, cell in cells], count - len(marks)

    def _rows(self, element: Any, table: TaggedTable, depth: int) -> Iterator[tuple[int, Any]]:
        """Yield the rows on this page with their numbers; sets `start` and `count` of `table`."""
        first = 0
        marked = pdfium.FPDF_StructElement_GetChildMarkedContentID
        while table.start < MAX_COLUMNS and marked(element, table.start) >= 0:
            table.start += 1  # the background of the table
        table.count = pdfium.FPDF_StructElement_CountChildren(element)
        for place, child in self._children(element, depth):
            kind = self._kind(child)
            if kind == "TR":
                yield first + place, child
            elif kind in ("THead", "TBody", "TFoot"):
                for number, row in self._children(child, depth + 1):
                    if self._kind(row) == "TR":
                        yield first + place + number, row
                further = pdfium.FPDF_StructElement_CountChildren(child) - 1
                first += further
                table.count += further

    def _marks(self, element: Any, depth: int) -> Iterator[int]:
        """The marked contents of this page below an element. Also adds the tables below it."""
        for place in range(min(pdfium.FPDF_StructElement_CountChildren(element), self._left)):
            self._left -= 1
            if child := pdfium.FPDF_StructElement_GetChildAtIndex(element, place):
                if self._kind(child) == "Table":
                    self._table(child, depth)
                elif depth < MAX_DEPTH:
                    yield from self._marks(child, depth + 1)
            elif (mark := pdfium.FPDF_StructElement_GetChildMarkedContentID(element, place)) >= 0:
                yield mark

    @staticmethod
    def _span(element: Any, name: bytes) -> int:
        number = ctypes.c_float()
        for place in range(pdfium.FPDF_StructElement_GetAttributeCount(element)):
            attribute = pdfium.FPDF_StructElement_GetAttributeAtIndex(element, place)
            value = pdfium.FPDF_StructElement_Attr_GetValue(attribute, name) if attribute else None
            if value and pdfium.FPDF_StructElement_Attr_GetNumberValue(value, number):
                # A broken file may contain NaN, for which every comparison is false.
                return int(min(number.value, MAX_SPAN)) if number.value >= 1 else 1
        return 1


def _marked_texts(page: pypdfium2.PdfPage) -> dict[int, int]:
    """The ids of marked contents, by the addresses of their text objects."""
    found = {}
    for place in range(min(pdfium.FPDFPage_CountObjects(page.raw), MAX_TEXTS)):
        shape = pdfium.FPDFPage_GetObject(page.raw, place)
        if pdfium.FPDFPageObj_GetType(shape) == pdfium.FPDF_PAGEOBJ_TEXT:
            mark = pdfium.FPDFPageObj_GetMarkedContentID(shape)
            if mark >= 0:
                found[ctypes.addressof(shape.contents)] = mark
    return found
