"""Words of a PDF page with their boxes, and the white space between them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

CELL_CHARACTERS = 28  # a column whose median cell is longer is text; a table may have one such column
SAME_HEIGHT = 3.0  # maximum vertical distance between the centres of words on one line
MARKERS = 3  # maximum length of a bullet or a list number, in characters

Span = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Word:
    """A word, its box in points from the page's lower left corner, and the number of its line.

    `first` and `last` are PDFium's indices of its characters.
    """

    text: str
    left: float
    right: float
    bottom: float
    top: float
    line: int
    bold: bool = False
    first: int = 0
    last: int = 0

    @property
    def middle(self) -> float:
        return (self.bottom + self.top) / 2

    @property
    def middle_across(self) -> float:
        return (self.left + self.right) / 2


def free_spans(band: Sequence[Word], least: float) -> list[Span]:
    """The white space in a row, where it is at least `least` points wide.

    This includes the space before the first word and after the last word, because cells may be empty.
    """
    spans: list[Span] = []
    end = -math.inf
    for word in sorted(band, key=lambda word: word.left):
        if word.left - end >= least:
            spans.append((end, word.left))
        end = max(word.right, end)
    return [*spans, (end, math.inf)]


def common_spans(one: Sequence[Span], other: Sequence[Span], least: float) -> list[Span]:
    """The overlaps of `one` and `other` of at least `least` points, from left to right."""
    both = []
    place = next_place = 0
    while place < len(one) and next_place < len(other):
        first, second = one[place], other[next_place]
        start, end = max(first[0], second[0]), min(first[1], second[1])
        if end - start >= least:
            both.append((start, end))
        if first[1] < second[1]:
            place += 1
        else:
            next_place += 1
    return both


def distance(above: Sequence[Word], below: Sequence[Word]) -> float:
    """The distance between two rows: from the last line of `above` to the first of `below`."""
    lowest, highest = min(word.middle for word in above), max(word.middle for word in below)
    start = lowest if above[0].middle - lowest > SAME_HEIGHT else above[0].middle
    end = highest if highest - below[0].middle > SAME_HEIGHT else below[0].middle
    return start - end


def is_leader(word: Word) -> bool:
    """Whether the word consists of dots that lead from one column to the next."""
    return not word.text.strip(".…")
