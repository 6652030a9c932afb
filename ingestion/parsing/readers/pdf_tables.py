"""Finds tables on a PDF page from the positions of words and drawn lines.

Without tags, a PDF contains only words and drawn lines. A table is only recognised if its columns are
separated by white space through all rows; everything else remains text.
"""

import itertools
import math
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median

from .pdf_columns import Found, close_tables, has_sums
from .pdf_words import (
    CELL_CHARACTERS,
    MARKERS,
    SAME_HEIGHT,
    Span,
    Word,
    common_spans,
    distance,
    free_spans,
    is_leader,
)
from .tables import header_of, is_number, numbered_lines

EDGE_TOLERANCE = 4.0  # maximum distance, in points, between edges of drawn lines that belong together
WIDTH = 60.0  # minimum width, in points, of a drawn line between two rows
EM = 1 / 0.72  # an em, as a multiple of the height of a capital letter
RULED_GUTTER, GUTTER = 0.7, 1.1  # minimum white space between columns in em, with and without drawn lines
BORDERED_GUTTER = 0.5  # minimum white space around a vertical line between columns, in points
MAX_BORDERS = 500  # a page with more vertical lines has drawings, not only tables
LINE_PITCH = 1.6  # maximum distance, in em, between the lines of a cell
PITCH = 2.6  # maximum distance, in em, between rows without drawn lines
CENTRES = 0.2  # maximum vertical distance between the centres of words on one line, relative to their height
ROWS = 3  # minimum number of rows without drawn lines
LEVEL = 0.15  # greatest difference of the tops of cells on one line, as a share of their height
MAX_NUMBERS = 4  # text with a cell of more words, most of them numbers, is not a table of wrapped cells
CENTRED = 0.25  # greatest difference, in em, of the distances from a centred cell to the lines around it
CENTRED_APART = 1.4  # rows with centred cells are further apart than the lines of their cells by this factor
SPACED = 1.15  # rows are further apart than the lines of a cell by this factor


MIN_ALIKE = 2  # minimum number of cells in a column to determine its kind
REST = 0.2  # share of a table's lines that is neglected when it is compared with another table
ALIKE = 0.8  # share of a column's cells, or of rows, that must be alike, such as numbers


@dataclass(frozen=True, slots=True)
class Rule:
    """A drawn horizontal line."""

    left: float
    right: float
    height: float


@dataclass(frozen=True, slots=True)
class Border:
    """A drawn vertical line."""

    place: float
    bottom: float
    top: float


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table on a page.

    `cells` has the words of each cell by row; `named` says whether the first row names the columns. `lines`
    are the numbers of the lines of text in the table, `gutters` the white space between columns. `above` has
    the header rows of the table that this one continues, if any. A tagged table has the `numbers` of its
    rows, and the `count` of the rows on all pages; it has the `extents` of its columns instead of gutters.
    `has_names` says whether tags name columns or rows, `ends_page` whether at most running titles
    are between it and the next page's table.
    """

    cells: list[list[list[Word]]]
    named: bool
    lines: frozenset[int]
    gutters: list[Span]
    above: Sequence[Sequence[str]] = ()
    numbers: Sequence[int] = ()
    count: int = 0
    extents: Mapping[int, Span] = field(default_factory=dict)
    has_names: bool = False
    ends_page: bool = False

    @property
    def rows(self) -> list[list[str]]:
        return _texts(self.cells)

    @property
    def header(self) -> Sequence[Sequence[str]]:
        return self.above or (header_of(self.rows) if self.named else ())

    def numbered_lines(self) -> Iterator[tuple[int, str]]:
        """The rows as lines of text, each with the number of its row in `cells`."""
        rows = itertools.chain(self.above, self.rows)
        return numbered_lines(enumerate(rows, -len(self.above)), self.named)

    def continued_by(self, other: "Table") -> "Table":
        """`other`, the next page's first table, with this table's column names if it continues this one.

        Without tags, `other` does so if it has columns at the same positions, if it has no names of its own,
        and if its first row has numbers in the columns that contain numbers here.
        """
        header, rows = self.header, other.rows
        if other.numbers:
            goes_on = self.goes_on_in(other) or self.is_split_before(other)
            return replace(other, named=True, above=header) if goes_on and header else other
        if not header or list(header) == rows[: len(header)] or len(self.gutters) != len(other.gutters):
            return other
        if not all(
            one[0] < two[1] and two[0] < one[1] for one, two in zip(self.gutters, other.gutters, strict=True)
        ):
            return other
        has_bold_names = all(word.bold for cell in other.cells[0] for word in cell) and len(rows) > 1
        if has_bold_names and not all(word.bold for cell in other.cells[1] for word in cell):
            return other
        counted = 0
        for column, cell in enumerate(rows[0]):
            here = [row[column] for row in self.rows[0 if self.above else len(header) :] if row[column]]
            if len(here) >= MIN_ALIKE and sum(map(_has_digit, here)) >= ALIKE * len(here) and cell:
                if not _has_digit(cell):
                    return other
                counted += 1
        return replace(other, named=True, above=header) if counted else other

    def is_same(self, other: "Table") -> bool:
        """Whether these may be parts of one tagged table: equal `count` and number of columns."""
        same = bool(self.numbers and other.numbers) and self.count == other.count
        return same and len(self.cells[0]) == len(other.cells[0])

    def goes_on_in(self, other: "Table") -> bool:
        """Whether `other` continues this part of a tagged table."""
        return self.is_same(other) and self.goes_on_at(other.numbers[0])

    def goes_on_at(self, number: int) -> bool:
        """Whether a row with this number is below this part, or the rest of its last row (not a header)."""
        return number > self.numbers[-1] or number == self.numbers[-1] > 0

    def is_split_before(self, other: "Table") -> bool:
        """Whether `other` is the rest of this table, although its tags describe it as a separate table.

        Some programs begin a new table on each page, without names. `lines_of` (pdf_lines.py) clears
        `ends_page` if text precedes `other` on its page.
        """
        if not (self.ends_page and self.has_names and other.numbers) or other.has_names or other.numbers[0]:
            return False
        both = self.extents.keys() & other.extents.keys()
        if len(self.cells[0]) != len(other.cells[0]) or not both:
            return False
        return all(
            self.extents[column][0] < other.extents[column][1]
            and other.extents[column][0] < self.extents[column][1]
            for column in both
        )

    def completed_by(self, other: "Table") -> "tuple[Table, Table] | None":
        """Both tables, after moving the rest of the last row from the start of `other` to this one.

        None if `other` does not begin with the rest of that row. The second table may have no rows left.
        """
        if other.above and self.is_split_before(other):
            # A row without text in its first cell is the rest of the last row.
            if other.cells[0][0]:
                return None
            other = replace(other, numbers=[self.numbers[-1], *other.numbers[1:]])
        elif not self.is_same(other):
            return None
        number = self.numbers[-1]
        place = next((place for place, other_number in enumerate(other.numbers) if other_number == number), 0)
        is_below_header = place == 0 if other.above else place == len(other.header)
        if number not in other.numbers or not number or not is_below_header:
            return None
        whole = [here + rest for here, rest in zip(self.cells[-1], other.cells[place], strict=True)]
        completed = replace(self, cells=[*self.cells[:-1], whole])
        if place + 1 == len(other.cells):  # at most the header is left
            return completed, replace(other, cells=[], numbers=(), above=())
        cells = other.cells[:place] + other.cells[place + 1 :]
        numbers = [*other.numbers[:place], *other.numbers[place + 1 :]]
        return completed, replace(other, cells=cells, numbers=numbers)


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))


def _texts(rows: Iterable[Iterable[Iterable[Word]]]) -> list[list[str]]:
    return [[" ".join(word.text for word in cell) for cell in row] for row in rows]


def tables(words: Sequence[Word], rules: Iterable[Rule], borders: Iterable[Border] = ()) -> list[Table]:
    """The tables of a page, from top to bottom."""
    if not words:
        return []
    em = median(word.top - word.bottom for word in words) * EM
    joined = _joined_borders(borders)
    found = [table for group in _groups(rules) for table in _ruled(words, group, joined, em)]
    taken = {line for table in found for line in table.lines}
    rest = [word for word in words if word.line not in taken]

    # Keep only tables that contain every word of their lines; others are uncertain.
    certain = []
    for table in (*found, *_aligned(rest, em)):
        size = sum(len(word.text) for row in table.cells for cell in row for word in cell)
        if size == sum(len(word.text) for word in words if word.line in table.lines and not is_leader(word)):
            certain.append(table)
    return certain


def _groups(rules: Iterable[Rule]) -> Iterator[list[Rule]]:
    """Groups of drawn lines above each other, with the same left and right edges.

    Lines that are drawn cell by cell are joined first.
    """
    joined: list[Rule] = []
    for rule in sorted(rules, key=lambda rule: (-round(rule.height), rule.left)):
        last = joined[-1] if joined else None
        if (
            last
            and abs(last.height - rule.height) < SAME_HEIGHT / 2
            and rule.left <= last.right + EDGE_TOLERANCE
        ):
            joined[-1] = Rule(min(last.left, rule.left), max(last.right, rule.right), last.height)
        else:
            joined.append(rule)
    groups: list[list[Rule]] = []
    for rule in joined:
        if rule.right - rule.left < WIDTH:
            continue
        same = (
            group
            for group in groups
            if abs(group[0].left - rule.left) < EDGE_TOLERANCE
            and abs(group[0].right - rule.right) < EDGE_TOLERANCE
        )
        group = next(same, None)
        if group is None:
            groups.append([rule])
        elif group[-1].height - rule.height > EDGE_TOLERANCE:
            group.append(rule)
    return (group for group in groups if len(group) > 2)


def _joined_borders(borders: Iterable[Border]) -> list[Border]:
    """The vertical lines; those that are drawn cell by cell are joined. Empty if too many."""
    joined: list[Border] = []
    for border in sorted(borders, key=lambda border: (round(border.place), border.bottom)):
        last = joined[-1] if joined else None
        is_same = last and round(last.place) == round(border.place)
        if last and is_same and border.bottom <= last.top + EDGE_TOLERANCE:
            joined[-1] = replace(last, top=max(last.top, border.top))
        else:
            joined.append(border)
    return joined if len(joined) <= MAX_BORDERS else []


def _ruled(words: Sequence[Word], group: list[Rule], borders: Sequence[Border], em: float) -> Iterator[Table]:
    """Tables with drawn lines between rows: adjacent bands with the same space between columns.

    This space is wide, or contains a vertical line that crosses the band. A band is the space between two
    lines. The column names may be bold lines at the end of the text above the first drawn line.
    """
    left, right = group[0].left - EDGE_TOLERANCE, group[0].right + EDGE_TOLERANCE
    inside = [word for word in words if left < word.middle_across < right and not is_leader(word)]
    gutter = RULED_GUTTER * em
    run = _Run(gutter)
    run.takes(_names_at_the_end([word for word in inside if word.middle > group[0].height], em))
    for above, below in pairwise(group):
        band = [word for word in inside if below.height < word.middle < above.height]
        places = [
            border.place
            for border in borders
            if left < border.place < right
            and border.bottom < below.height + EDGE_TOLERANCE
            and border.top > above.height - EDGE_TOLERANCE
        ]
        row, below_row = run.split(band, places)
        rest = below_row or band
        names = _names_at_the_end(rest, em)
        has_text_above = len(names) < len(rest) and bool(free_spans(names, gutter)[1:-1])
        if below_row:
            run.takes(row, places)
        if below_row or has_text_above or not run.takes(band, places):
            yield from run.table()
            run = _Run(gutter)
            if not run.takes(names, places):
                run.takes(rest, places)
    yield from run.table()


def _names_at_the_end(words: Sequence[Word], em: float) -> list[Word]:
    """The bold lines at the end of these words."""
    names: list[Word] = []
    for line in reversed(_visual_lines(words)):
        near = not names or line[0].middle - names[-1].middle < LINE_PITCH * em
        if not near or not all(word.bold for word in line):
            break
        names += line
    return names


def _aligned(words: Sequence[Word], em: float) -> Iterator[Table]:
    """Tables without drawn lines: adjacent rows whose columns are separate everywhere."""
    lines = _with_centred_cells(_visual_lines(words), em)
    if _from_the_right(words):
        yield from _with_wide_gutters(lines, em)
        return
    wide = list(_with_wide_gutters(lines, em))
    close = [
        table
        for table in map(_table, close_tables(lines, em))
        if not any(_is_by_chance(table, other) for other in wide)
    ]
    yield from close
    yield from _with_wide_gutters(_without(lines, close), em)


def _table(found: Found) -> Table:
    cells = [[list(itertools.chain(*_visual_lines(cell))) for cell in row] for row in found.cells]
    lines = frozenset(word.line for row in cells for cell in row for word in cell)
    return Table(cells, found.named or is_named(cells), lines, found.gutters)


def _is_by_chance(close: Table, wide: Table) -> bool:
    """Whether `close` consists of words that are aligned by chance in rows of `wide`.

    `wide` is a table with wide gutters. Chance is likely if `close` has only a part of the rows of `wide`, or
    if `wide` has column names and `close` has none. Lines of `wide` with few cells, such as those above its
    rows, only count if `close` has them, too.
    """
    filled = [row for row in wide.cells if 2 * sum(map(bool, row)) > len(row)]
    rows = {word.line for row in filled for cell in row for word in cell} | (close.lines & wide.lines)
    is_part = len(close.lines) < (1 - REST) * len(rows)
    return len(close.lines & wide.lines) > REST * len(close.lines) and (
        is_part or (wide.named and not close.named)
    )


def _without(lines: Iterable[list[Word]], tables: Iterable[Table]) -> list[list[Word]]:
    """The lines that are in none of the tables."""
    taken = {number for table in tables for number in table.lines}
    return [line for line in lines if taken.isdisjoint(word.line for word in line)]


def _with_centred_cells(lines: Sequence[list[Word]], em: float) -> list[list[Word]]:
    """The lines; three lines become one if they are a row with centred cells of one and of two lines.

    A cell of one line is halfway between the two lines of the other cells.
    """
    middles = [math.inf, *(median(word.middle for word in line) for line in lines), -math.inf]
    steps = [above - below for above, below in pairwise(middles)]  # `steps[n]` is the distance above line n
    rows: list[list[Word]] = []
    place = 0
    while place < len(lines):
        three = lines[place : place + 3]
        if len(three) == 3:
            before, first, second, after = steps[place : place + 4]
            is_centred = (
                abs(first - second) < CENTRED * em
                and first + second < LINE_PITCH * em
                and min(before, after) > max(first, second) * CENTRED_APART
                and not _overlap(three[0], three[1])
                and not _overlap(three[1], three[2])
                and _overlap(three[0], three[2])
            )
            if is_centred:
                rows.append(sorted(itertools.chain(*three), key=lambda word: word.left))
                place += 3
                continue
        rows.append(lines[place])
        place += 1
    return rows


def _overlap(one: Iterable[Word], other: Sequence[Word]) -> bool:
    """Whether a word of one line is above or below a word of the other."""
    return any(word.left < below.right and below.left < word.right for word in one for below in other)


def _with_wide_gutters(lines: Iterable[list[Word]], em: float) -> Iterator[Table]:
    run = _Run(GUTTER * em, ruled=False)
    for line in lines:
        near = not run.bands or distance(run.bands[-1], line) < PITCH * em or run.is_summed_by(line)
        if not (near and run.takes(line)):
            yield from run.table()
            run = _Run(GUTTER * em, ruled=False)
            run.takes(line)
    yield from run.table()


class _Run:
    """Adjacent rows, added from top to bottom, with the same white space between columns."""

    def __init__(self, gutter: float, ruled: bool = True) -> None:
        self.bands: list[list[Word]] = []
        self._gutter = gutter
        self._ruled = ruled
        self._free: list[Span] = []
        self._borders: dict[Span, int] = {}  # in how many rows a vertical line crosses each free span
        self._taken = 0
        self._merged: list[list[Span]] = []  # for each of the bands, the free spans within its merged cells
        self._left, self._right = math.inf, -math.inf

    def takes(self, band: list[Word], borders: Sequence[float] = ()) -> bool:
        """Add the row if the columns remain separate; returns whether it was added.

        `borders` are the places of the vertical lines that cross the row. If one of most rows does not cross
        this one, cells of this row are merged there, unless their words are separate all the same.
        """
        if not band:
            return False
        left = min(self._left, *(word.left for word in band))
        right = max(self._right, *(word.right for word in band))
        bordered = {span for span, count in self._borders.items() if count > self._taken / 2}
        least = BORDERED_GUTTER if borders or bordered else self._gutter
        free = self._between_columns(free_spans(band, least), borders)
        common = common_spans(self._free, free, least) if self.bands else free
        # The span of the rows above that contains each span.
        before = {
            span: self._free[bisect_right(self._free, (span[0], math.inf)) - 1]
            for span in (common if self.bands else ())
        }
        wide = set(self._between_columns(common, borders))
        both = [span for span in common if span in wide or before.get(span) in bordered]
        if not any(left < start and end < right for start, end in both):
            return False
        crossed = {span for span in [*both, *bordered] if _is_crossed(span, borders)}
        merged: list[Span] = []
        if not crossed.isdisjoint(both):
            merged = list(bordered - crossed - {before.get(span) for span in both})
        rows = self._rows(band, free) if self._ruled else [band]
        self.bands += rows
        self._merged += [merged] * len(rows)
        self._borders = {
            span: self._borders.get(before.get(span, span), 0) + (span in crossed)
            for span in sorted([*both, *merged])
        }
        self._free, self._left, self._right = list(self._borders), left, right
        self._taken += 1
        return True

    def _between_columns(self, spans: Iterable[Span], borders: Sequence[float]) -> list[Span]:
        """The spans that are wide or contain a vertical line."""
        return [span for span in spans if span[1] - span[0] >= self._gutter or _is_crossed(span, borders)]

    def is_summed_by(self, line: Sequence[Word]) -> bool:
        """Whether a line, perhaps after a gap, has the sums of this table."""
        gutters = self._gutters()
        if len(self.bands) < 2 or len(common_spans(gutters, free_spans(line, 0), 0)) < len(gutters):
            return False
        return has_sums([_divided(band, gutters) for band in self.bands[1:]], _divided(line, gutters))

    def split(self, band: Sequence[Word], borders: Sequence[float] = ()) -> tuple[list[Word], list[Word]]:
        """Separate the words above the first line that spans several columns from the other words.

        A heading above that line belongs to the text below the table.
        """
        lines = _visual_lines(band)
        for place, line in enumerate(lines if len(self.bands) >= ROWS - 1 else ()):
            left, right = line[0].left, max(word.right for word in line)
            spaces = self._between_columns(free_spans(line, BORDERED_GUTTER), borders)
            is_one = not any(left < start and end < right for start, end in spaces)
            if is_one and any(left < start and end < right for start, end in self._gutters()):
                end = place
                while end and self._is_heading(lines[end - 1]):
                    end -= 1
                return list(itertools.chain(*lines[:end])), list(itertools.chain(*lines[end:]))
        return list(band), []

    def _is_heading(self, line: Sequence[Word]) -> bool:
        """Whether a line after the last row is bold, unlike that row, and only in the first column."""
        return (
            all(word.bold for word in line)
            and not all(word.bold for word in self.bands[-1])
            and max(word.right for word in line) <= self._gutters()[0][1]
        )

    @staticmethod
    def _rows(band: list[Word], free: list[Span]) -> list[list[Word]]:
        """The rows between two drawn rules.

        Many tables have rules only around all rows. If a column has a number in most lines of
        text, each line is a row. Otherwise all lines are one row, because a cell may have several lines.
        """
        lines = _visual_lines(band)
        if len(lines) < ROWS:
            return [band]
        for start, end in pairwise(free):
            cells = [
                [word for word in line if start[1] <= word.left and word.right <= end[0]] for line in lines
            ]
            texts = [" ".join(word.text for word in cell) for cell in cells if cell]
            numbers = sum(is_number(text) and _has_digit(text) for text in texts)
            if numbers >= max(ROWS, ALIKE * len(texts), len(lines) / 2):
                return lines
        return [band]

    def _gutters(self) -> list[Span]:
        return [span for span in self._free if self._left < span[0] and span[1] < self._right]

    def table(self) -> Iterator[Table]:
        gutters = self._gutters()
        cells = [
            _divided(band, gutters, merged) for band, merged in zip(self.bands, self._merged, strict=True)
        ]
        full = [row for row in cells if sum(map(bool, row)) > 1]
        if len(full) < (2 if self._ruled else ROWS):
            return
        if not self._ruled and not _like_cells(_texts(cells)):
            cells = _wrapped(self.bands, cells)
        if not cells:
            return
        if _from_the_right(word for band in self.bands for word in band):
            cells = [row[::-1] for row in cells]
        # Two names with their values may have lines around them, too.
        is_small = len(cells) == 2 and len(gutters) == 1
        named = (self._ruled and not is_small) or is_named(cells)
        lines = frozenset(word.line for band in self.bands for word in band)
        yield Table(cells, named, lines, gutters)


def _is_crossed(span: Span, borders: Iterable[float]) -> bool:
    return any(span[0] < place < span[1] for place in borders)


def _divided(band: Sequence[Word], gutters: Sequence[Span], merged: Sequence[Span] = ()) -> list[list[Word]]:
    """The words between the gutters, in the reading direction of the script.

    Cells are merged across gutters in a span of `merged`; the first of them gets their words.
    """
    starts = [
        (column, (start + end) / 2)
        for column, (start, end) in enumerate(gutters, 1)
        if not any(left <= start and end <= right for left, right in merged)
    ]
    columns: list[list[Word]] = [[] for _ in range(len(gutters) + 1)]
    backwards = _from_the_right(band)
    for line in _visual_lines(band):
        for word in reversed(line) if backwards else line:
            column = max((column for column, start in starts if word.left >= start), default=0)
            columns[column].append(word)
    return columns


def _wrapped(bands: Sequence[Sequence[Word]], lines: list[list[list[Word]]]) -> list[list[list[Word]]]:
    """The rows of a table whose cells may have several lines; empty if `lines` are no such table.

    A row begins where the distance to the line above is larger than that between the lines of a cell, or, if
    all distances are equal, at each line with text in the first column. All cells of a row begin on its first
    line, at the same height, and each row begins with a few words.
    """
    heights = [max(word.top for word in band) for band in bands]
    steps = [above - below for above, below in pairwise(heights)]
    # Lines of the same cell have the smallest distance, which varies with the letters of a line.
    continuing = [step for step, line in zip(steps, lines[1:], strict=True) if not line[0]]
    pitch = median(continuing) if continuing else min(steps)
    is_spaced = max(steps) > pitch * SPACED
    rows: list[list[list[Word]]] = []
    firsts: list[list[list[Word]]] = []  # the first line of each row
    for step, line in zip([math.inf, *steps], lines, strict=True):
        if not rows or (step > pitch * SPACED if is_spaced else bool(line[0])):
            rows.append(line)
            firsts.append(line)
        elif any(more and not cell for cell, more in zip(rows[-1], line, strict=True)):
            return []
        else:
            rows[-1] = [cell + more for cell, more in zip(rows[-1], line, strict=True)]
    texts = _texts(rows)
    columns = [[cell for cell in column if cell] for column in zip(*_texts(lines), strict=True)]
    long = sum(median(map(len, column)) > CELL_CHARACTERS for column in columns)
    first = [row[0] for row in texts]
    is_table = (
        len(rows) >= ROWS
        and len(rows) < len(lines)
        and sum(map(_is_level, firsts)) >= ALIKE * len(firsts)
        and all(row[0] and any(row[1:]) for row in texts)
        and not any(_is_numbers(cell) for row in texts for cell in row)
        and max(map(len, first)) <= 2 * CELL_CHARACTERS
        and sum(sum(map(str.isalpha, cell)) > MARKERS for cell in first) >= ALIKE * len(first)
        and long <= (len(columns) > 2 or median(map(len, first)) <= CELL_CHARACTERS / 2)
    )
    return rows if is_table else []


def _is_numbers(cell: str) -> bool:
    """Whether most of a cell's many words are numbers, such as line numbers at a margin."""
    words = cell.split()
    return len(words) > MAX_NUMBERS and sum(map(is_number, words)) > len(words) / 2


def _is_level(line: Iterable[Sequence[Word]]) -> bool:
    """Whether the cells of a line are at the same height, unlike columns of text in different sizes."""
    tops = [max(word.top for word in cell) for cell in line if cell]
    height = max(max(word.top - word.bottom for word in cell) for cell in line if cell)
    return max(tops) - min(tops) < LEVEL * height


def is_named(cells: Sequence[Sequence[Sequence[Word]]]) -> bool:
    """Whether the first row names the columns: bold above regular cells, or words above numbers."""
    first, *others = cells
    if all(word.bold for cell in first for word in cell) and not all(
        word.bold for row in others for cell in row for word in cell
    ):
        return True
    return any(
        head and not _has_digit(head) and any(column) and all(is_number(cell) for cell in column if cell)
        for head, *column in zip(*_texts(cells), strict=True)
    )


def _from_the_right(words: Iterable[Word]) -> bool:
    """Whether most letters are Arabic or Hebrew."""
    directions = [unicodedata.bidirectional(letter) for word in words for letter in word.text]
    return directions.count("R") + directions.count("AL") > directions.count("L")


def _visual_lines(words: Iterable[Word]) -> list[list[Word]]:
    lines: list[list[Word]] = []
    for word in sorted(words, key=lambda word: -word.middle):
        first = lines[-1][0] if lines else word
        # Capital and small letters have different centres, which matters in large type.
        if lines and first.middle - word.middle < max(SAME_HEIGHT, CENTRES * (first.top - first.bottom)):
            lines[-1].append(word)
        else:
            lines.append([word])
    return [sorted(line, key=lambda word: word.left) for line in lines]


def _like_cells(rows: list[list[str]]) -> bool:
    """Whether these are cells, and not newspaper columns or a bulleted list."""
    columns = [[cell for cell in column if cell] for column in zip(*rows, strict=True)]
    if min(map(len, columns)) < 2 or any(not row[0] for row in rows):
        return False
    long = sum(median(map(len, column)) > CELL_CHARACTERS for column in columns)
    return long <= (len(columns) > 2 or median(map(len, columns[0])) <= CELL_CHARACTERS / 2) and any(
        len(cell) > MARKERS for cell in columns[0]
    )
