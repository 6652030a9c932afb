"""The text of a passage for display: joined lines, marked words, and rows as tables."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from ingestion.versions.text_comparison import BROKEN


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a passage, cited or not."""

    text: str
    marked: bool


def flowing(text: str) -> str:
    """Join lines broken by the page's width; the positions of characters do not change.

    Text after a table row starts a new line, even if the row ends without a full stop.
    """

    def joint(broken: re.Match[str]) -> str:
        line_start = text.rfind("\n", 0, broken.start()) + 1
        return "\n" if _row_of(text[line_start : broken.start()], 0) else " "

    return BROKEN.sub(joint, text)


def marked(content: str, quotes: Sequence[Sequence[int]]) -> list[Piece]:
    """The whole content in pieces, of which those within `quotes` are marked."""
    edges = {0, len(content)}
    for start, end in quotes:
        edges |= {max(0, min(start, len(content))), max(0, min(end, len(content)))}
    return [
        Piece(content[left:right], any(start <= left and right <= end for start, end in quotes))
        for left, right in pairwise(sorted(edges))
    ]


PAIR = re.compile(r"([^:;\n]{1,100}): ")
MIN_PAIRS = 2  # minimum number of cells in a table row
MIN_STACKED_COLUMNS = 3  # a table with fewer columns fits on a phone
MAX_STACKED_ROWS = 3  # a wide table in an answer is not stacked but scrolls if it has more rows
PHONE_WIDTH = 48  # characters of a table that fit across a phone
CELL_SPACE = 4  # space around a cell, in characters
MIN_WIDE_COLUMNS = 6  # a table with at least this many columns may be wider than the text


def fits_phone(cells: Iterable[tuple[int, int]]) -> bool:
    """Whether a table fits on a phone; `cells` are (column number, number of characters)."""
    widths: dict[int, int] = {}
    for column, characters in cells:
        widths[column] = max(widths.get(column, 0), characters + CELL_SPACE)
    return len(widths) < MIN_STACKED_COLUMNS or sum(widths.values()) <= PHONE_WIDTH


def is_wide(columns: int) -> bool:
    """Whether a table may be wider than the text, with its first column always visible."""
    return columns >= MIN_WIDE_COLUMNS


@dataclass(frozen=True, slots=True)
class Part:
    """Text of a passage, or rows of a table with each cell in pieces."""

    pieces: list[Piece] = field(default_factory=list)
    head: list[str] = field(default_factory=list)
    rows: list[list[list[Piece]]] = field(default_factory=list)

    @property
    def stacked(self) -> bool:
        """Whether each cell becomes a line “column: value” on narrow pages."""
        texts = [self.head, *(["".join(piece.text for piece in cell) for cell in row] for row in self.rows)]
        return not fits_phone((column, len(text)) for row in texts for column, text in enumerate(row))

    @property
    def wide(self) -> bool:
        return is_wide(len(self.head))

    @property
    def named_rows(self) -> list[tuple[bool, list[tuple[str, list[Piece]]]]]:
        """For each row, whether any of its words are marked, and its (column name, cell) pairs."""
        return [
            (
                any(piece.marked for cell in row for piece in cell),
                list(zip(self.head, row, strict=True)),
            )
            for row in self.rows
        ]


def parts_of(content: str, quotes: Sequence[Sequence[int]]) -> list[Part]:
    """The passage, with the spans of `quotes` marked and its rows shown as tables.

    A row is a line such as “Case: a; Days: 5”.
    """
    parts: list[Part] = []
    rows: list[dict[str, tuple[int, int]]] = []
    text_start = position = 0

    def end_text(end: int) -> None:
        if content[text_start:end].strip():
            parts.append(Part(pieces=_marked_within(content, quotes, text_start, end)))

    def end_table() -> None:
        head = list(dict.fromkeys(name for row in rows for name in row))
        cells = [[_marked_within(content, quotes, *row.get(name, (0, 0))) for name in head] for row in rows]
        parts.append(Part(head=head, rows=cells))
        rows.clear()

    for line in content.splitlines(keepends=True):
        row = _row_of(line, position)
        if row and not rows:
            end_text(position)
        elif rows and not (row and set(row) & set(rows[-1])):
            end_table()
            text_start = position
        if row:
            rows.append(row)
        position += len(line)
    if rows:
        end_table()
    else:
        end_text(len(content))
    return parts


def is_table(content: str) -> bool:
    """Whether a passage consists only of table rows."""
    return all(_row_of(line, 0) for line in content.splitlines())


def is_table_continued(content: str, following: str) -> bool:
    """Whether the table at the end of this passage continues in the following passage."""
    last, first = content.splitlines()[-1:], following.splitlines()[:1]
    return any(
        _row_of(row, 0).keys() & _row_of(other, 0).keys() for row, other in zip(last, first, strict=False)
    )


def _row_of(line: str, position: int) -> dict[str, tuple[int, int]]:
    """The position of each column's value; empty if the line is not a table row."""
    row: dict[str, tuple[int, int]] = {}
    name, start, place = "", 0, 0
    for piece in line.rstrip("\n").split("; "):
        pair = PAIR.match(piece)
        if pair:
            if name:
                row[name] = (position + start, position + place - 2)
            name, start = pair[1], place + pair.end()
        elif not name:
            return {}
        place += len(piece) + 2
    if name:
        row[name] = (position + start, position + place - 2)
    return row if len(row) >= MIN_PAIRS else {}


def _marked_within(content: str, quotes: Sequence[Sequence[int]], start: int, end: int) -> list[Piece]:
    within = [(max(0, first - start), last - start) for first, last in quotes if first < end and last > start]
    return [piece for piece in marked(content[start:end], within) if piece.text]
