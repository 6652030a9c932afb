"""Finds tables with close columns and without drawn lines, by the alignment of cells.

Such columns are often no further apart than words. They are recognised by space at the same place in many
adjacent lines, next to cells that are aligned on one side.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from .pdf_words import CELL_CHARACTERS, MARKERS, Span, Word, common_spans, distance, free_spans, is_leader
from .tables import is_number

ROWS = 6  # minimum number of rows
CLOSE_ROWS = 8  # minimum number of rows if columns are close together
FILLED = 0.7  # share of the cells that must have text
NARROW = 0.2  # minimum space between columns, in em
WIDE = 1.1  # space between columns that needs no alignment, in em
PITCH = 2.6  # greatest distance between rows, in em
HEADER_LINES = 5
NAMES_APART = 0.6  # minimum space between the names of columns, in em
ALIGNED = 1.2  # greatest difference of aligned edges, in points
SUMS = 2  # minimum number of sums below a table
LARGE = 1.4  # a line taller than the first row by this factor is a title
SENTENCE_ENDS = ".!?"
CAPITALS = 0.72  # height of capital letters, in em
PERIOD = 4  # characters of a year, which may name a column
SHARE = 0.8  # share of a column's cells, or of rows, that must be alike

Cells = list[list[Word]]


@dataclass(frozen=True, slots=True)
class Found:
    """The rows of a table, the space between its columns, and whether its first row has their names."""

    cells: list[Cells]
    gutters: list[Span]
    named: bool


def close_tables(lines: Sequence[Sequence[Word]], em: float) -> Iterator[Found]:
    """Yield the tables in `lines`, which run from top to bottom, with words from left to right."""
    spaces = [_spaces(line, NARROW * em) for line in lines]
    numbers = [any(any(map(str.isdigit, word.text)) for word in line[1:]) for line in lines]
    top = above = 0  # `above` is the first line that may name columns
    failed_columns = failed_end = failed_rows = 0
    following = _gutters(lines, spaces, numbers, top, em)
    while top + ROWS <= len(lines):
        gutters, following = following, _gutters(lines, spaces, numbers, top + 1, em)
        if not gutters or len(following) > len(gutters):
            top += 1
            continue
        if len(gutters) == failed_columns and failed_end - top > failed_rows * 7 / 8:
            top += 1  # nearly the same rows were just found not to be a table
            continue
        if sentence := _sentence_lines(lines[top : top + HEADER_LINES], gutters, em):
            top += sentence
            following = _gutters(lines, spaces, numbers, top, em)
            continue
        gutters, end = _extended(lines, spaces, top, gutters, em)
        for start in range(top + 1, min(top + ROWS, end - ROWS) + 1):
            more = _gutters(lines, spaces, numbers, start, em)
            if len(more) > len(gutters):
                more, more_end = _extended(lines, spaces, start, more, em)
                if more_end >= end:  # the rows from `start` on have more columns, and reach as far
                    top, gutters, end = start, more, more_end
        rows = [_divided(line, gutters) for line in lines[top:end]]
        is_wide = all(right - left >= WIDE * em for left, right in gutters)
        if end - top >= (ROWS if is_wide else CLOSE_ROWS) and _is_table(rows):
            if end < len(lines) and len(common_spans(gutters, spaces[end], 0)) == len(gutters):
                last = _divided(lines[end], gutters)
                if has_sums(rows, last):
                    rows.append(last)
                    end += 1
            names = _names(lines[above:top], lines[top], rows, gutters, em)
            yield Found([*names, *rows], gutters, named=bool(names))
            top = above = end
            following = _gutters(lines, spaces, numbers, top, em)
        else:
            failed_columns, failed_end, failed_rows = len(gutters), end, end - top
            # Skip lines in proportion to the rows that formed no table, so that a page takes linear time.
            top += 1 + (end - top) // 32
            following = _gutters(lines, spaces, numbers, top, em)


def has_sums(rows: Sequence[Cells], row: Cells) -> bool:
    """Whether a row below other rows has their sums: a name, and numbers below numbers."""
    columns = [[cell for cell in column if cell] for column in zip(*rows, strict=True)]
    is_numeric = [_are_numbers(column) for column in columns]
    sums = [cell for cell, numeric in zip(row, is_numeric, strict=True) if cell and numeric]
    others = [cell for cell, numeric in zip(row, is_numeric, strict=True) if cell and not numeric]
    return (
        len(sums) >= SUMS
        and _are_numbers(sums)
        and others == row[:1]
        and any(map(str.isalpha, _text(row[0])))
    )


def _extended(
    lines: Sequence[Sequence[Word]],
    spaces: Sequence[Sequence[Span]],
    top: int,
    gutters: list[Span],
    em: float,
) -> tuple[list[Span], int]:
    """The gutters that the rows from `top` on have in common, and the end of these rows."""
    end = top + ROWS
    while end < len(lines) and _is_near(lines, end, em):
        common = common_spans(gutters, spaces[end], NARROW * em)
        if len(common) < len(gutters):
            break
        gutters = common
        end += 1
    return gutters, end


def _spaces(line: Sequence[Word], least: float) -> list[Span]:
    """The white space in a line; none if the line has dots that lead to a number."""
    return [] if any(map(is_leader, line)) else free_spans(line, least)


def _is_near(lines: Sequence[Sequence[Word]], number: int, em: float) -> bool:
    return distance(lines[number - 1], lines[number]) < PITCH * em


def _gutters(
    lines: Sequence[Sequence[Word]],
    spaces: Sequence[Sequence[Span]],
    numbers: Sequence[bool],
    top: int,
    em: float,
) -> list[Span]:
    """The space between columns in the ROWS lines from `top` on; empty if these are not rows."""
    if top + ROWS > len(lines) or sum(numbers[top : top + ROWS]) < ROWS / 2:
        return []  # most text has no numbers, and needs no closer look
    common = list(spaces[top])
    for number in range(top + 1, top + ROWS):
        if len(common) < 3 or not _is_near(lines, number, em):
            return []
        common = common_spans(common, spaces[number], NARROW * em)
    rows = lines[top : top + ROWS]
    left, right = min(line[0].left for line in rows), max(word.right for line in rows for word in line)
    inside = [span for span in common if left < span[0] and span[1] < right]
    columns = list(zip(*(_divided(line, inside) for line in rows), strict=True)) if inside else []
    if any(not any(column[1:]) for column in columns):
        return []  # in a column, only the first line has text: perhaps names, aligned differently
    return [
        span
        for span, (before, after) in zip(inside, pairwise(columns), strict=True)
        if span[1] - span[0] >= WIDE * em or _are_aligned(before, after)
    ]


def _are_aligned(before: Sequence[Sequence[Word]], after: Sequence[Sequence[Word]]) -> bool:
    """Whether the cells before a space are aligned at their ends, or those after it at their beginnings.

    Numbers may also be aligned at their other side.
    """
    one, other = [cell for cell in before if cell], [cell for cell in after if cell]
    return (
        _same(cell[0].left for cell in other)
        or _same(cell[-1].right for cell in one)
        or (_are_numbers(other) and _same(cell[-1].right for cell in other))
        or (_are_numbers(one) and _same(cell[0].left for cell in one))
    )


def _same(places: Iterable[float]) -> bool:
    found = list(places)
    usual = median(found) if found else 0.0
    return len(found) > 1 and sum(abs(each - usual) < ALIGNED for each in found) >= SHARE * len(found)


def _are_numbers(cells: Sequence[Sequence[Word]]) -> bool:
    texts = [_text(cell) for cell in cells]
    numbers = sum(is_number(text) and any(map(str.isdigit, text)) for text in texts)
    return bool(texts) and numbers >= SHARE * len(texts)


def _text(cell: Sequence[Word]) -> str:
    return " ".join(word.text for word in cell)


def _divided(line: Sequence[Word], gutters: Sequence[Span]) -> Cells:
    cells: Cells = [[] for _ in range(len(gutters) + 1)]
    middles = [(start + end) / 2 for start, end in gutters]
    for word in line:
        cells[bisect_right(middles, word.left)].append(word)
    return cells


def _is_table(rows: Sequence[Cells]) -> bool:
    """Whether these are rows of short cells with a column of numbers, not columns of text or a list."""
    columns = [[cell for cell in column if cell] for column in zip(*rows, strict=True)]
    texts = [list(map(_text, column)) for column in columns]
    least = SHARE * len(rows)
    long = sum(median(map(len, column)) > CELL_CHARACTERS for column in texts if column)
    first = texts[0]
    return (
        len(first) >= least
        and sum(sum(map(bool, row)) > 1 for row in rows) >= least
        and sum(map(len, texts)) >= FILLED * len(rows) * len(texts)
        and any(len(text) > MARKERS for text in first)
        and any(map(_are_numbers, columns[1:]))
        and long <= (len(columns) > 2 or median(map(len, first)) <= CELL_CHARACTERS / 2)
    )


def _names(
    above: Sequence[Sequence[Word]],
    first: Sequence[Word],
    rows: Sequence[Cells],
    gutters: Sequence[Span],
    em: float,
) -> list[Cells]:
    """The row with the names of the columns, from the lines above the first row; empty if there is none."""
    height = median(word.top - word.bottom for word in first)
    found: list[Cells] = []
    below = first
    for line in above[: -HEADER_LINES - 1 : -1]:
        is_large = max(word.top - word.bottom for word in line) > LARGE * height
        if is_large or distance(line, below) > PITCH * em:
            break
        cells = _named(line, gutters, em)
        texts = [_text(cell) for cell in cells if cell]
        if not texts or any(is_number(text) and not _is_year(text) for text in texts):
            break
        found.insert(0, cells)
        below = line
    while found and sum(map(bool, found[0])) < 2:
        found.pop(0)
    names = [[word for cells in found for word in cells[column]] for column in range(len(gutters) + 1)]
    return [names] if 2 * sum(map(bool, names)) > len(names) else []


def _is_year(text: str) -> bool:
    return text.isdigit() and len(text) <= PERIOD


def _sentence_lines(lines: Sequence[Sequence[Word]], gutters: Sequence[Span], em: float) -> int:
    """How many of the first lines are text above a table, with words beside the gutters by chance.

    They have no wide space, and the last of them ends a sentence.
    """
    count = 0
    for number, line in enumerate(lines, 1):
        least = NAMES_APART * max(em, max(word.top - word.bottom for word in line) / CAPITALS)
        if len(_parts(line, least)) > 1:
            break
        if line[-1].text[-1] in SENTENCE_ENDS and sum(map(bool, _divided(line, gutters))) > 1:
            count = number
    return count


def _named(line: Sequence[Word], gutters: Sequence[Span], em: float) -> Cells:
    """The cells of a line above the rows; empty if it is a sentence, or a word in it spans columns.

    Names may be aligned differently from the cells below them.
    """
    parts = _parts(line, NAMES_APART * em)
    if len(parts) == len(gutters) + 1:
        return parts
    if _sentence_lines([line], gutters, em):
        return []
    edges = []
    for start, end in gutters:
        spaces = [
            (one.right, other.left)
            for one, other in pairwise(line)
            if one.right < end + ALIGNED and start - ALIGNED < other.left
        ]
        if any(word.left < start and end < word.right for word in line):
            return []
        aligned = [span for span in spaces if abs(span[1] - end) < ALIGNED or abs(span[0] - start) < ALIGNED]
        left, right = max(aligned or spaces, key=lambda span: span[1] - span[0], default=(start, end))
        if right - left < NAMES_APART * em and end - start >= WIDE * em:
            return []  # a sentence
        edges.append((left + right) / 2)
    cells: Cells = [[] for _ in range(len(gutters) + 1)]
    for word in line:
        cells[sum(word.middle_across > edge for edge in edges)].append(word)
    return cells


def _parts(line: Sequence[Word], least: float) -> list[list[Word]]:
    parts: list[list[Word]] = []
    for word in line:
        if parts and word.left - parts[-1][-1].right < least:
            parts[-1].append(word)
        else:
            parts.append([word])
    return parts
