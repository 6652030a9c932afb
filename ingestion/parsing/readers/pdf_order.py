"""The reading order of the lines of a PDF page, which may differ from their order in the file."""

from collections.abc import Container, Sequence
from itertools import pairwise

from .pdf_page_text import Line

FRAGMENT = 3  # letters; a line with fewer may be a mark, a number or an exponent beside another line
UPWARDS = 1.5  # a line that is this much higher than the one before it, in em, is out of order
SAME_LINE = 0.75  # greatest vertical distance between the baselines of lines in one row, in em
TITLE_LINES = 2  # rows at the top and at the bottom of a page that may consist of several lines
Place = tuple[str, int]  # the text of a line and its height on the page


def places_of(lines: Sequence[Line]) -> frozenset[Place]:
    return frozenset((line.text, round(line.baseline)) for line in lines if line.baseline is not None)


def reading_order(
    lines: Sequence[Line], in_tables: Container[int] = (), repeated: Container[Place] = ()
) -> Sequence[int]:
    """The indexes of the lines in the order of the file, or from top to bottom.

    Some programs write the headings of a page, or paragraphs that were changed, before or after its other
    text. If fewer than half of the lines are out of order, the page is read from top to bottom, unless lines
    outside its tables are side by side: they may be columns, whose order is known only from the file.
    `repeated` has the places of the previous page's lines: lines at the same places are running titles, and
    remain before or after the other text.
    """
    as_written = range(len(lines))
    own = [
        number for number in as_written if (lines[number].text, round(_height(lines[number]))) not in repeated
    ]
    texts = [lines[number] for number in own if _is_text(lines[number])]
    raised = sum(_is_above(after, before) for before, after in pairwise(texts))
    if not raised or 2 * raised >= len(texts) or any(line.baseline is None for line in lines):
        return as_written
    rows: list[list[int]] = []
    for number in sorted(own, key=lambda number: -_height(lines[number])):
        first = lines[rows[-1][0]] if rows else None
        if first and _height(first) - _height(lines[number]) < SAME_LINE * min(
            first.size, lines[number].size
        ):
            rows[-1].append(number)
        else:
            rows.append([number])
    for row in rows[TITLE_LINES:-TITLE_LINES]:
        if sum(number not in in_tables and _is_text(lines[number]) for number in row) > 1:
            return as_written
    others = sorted(set(as_written).difference(own))
    before = [number for number in others if number < own[0]]
    return [*before, *(number for row in rows for number in sorted(row)), *others[len(before) :]]


def _is_text(line: Line) -> bool:
    return sum(map(str.isalpha, line.text)) >= FRAGMENT


def _height(line: Line) -> float:
    return line.baseline or 0.0


def _is_above(line: Line, other: Line) -> bool:
    return _height(line) - _height(other) > UPWARDS * max(line.size, other.size)
