"""The rows of tables within a passage: “Case: illness; Days: 5”."""

import functools
import re
from collections.abc import Mapping, Sequence

from .sentence_splitting import Span, spans_of

MAX_CACHED = 5_000  # rows, some hundred bytes each

_TIME = r"\d{1,2}[:.]\d{2}(?::\d{2})?(?: ?[ap]\.?m\.?)?(?: Uhr)?"
_TIME_OF_DAY = re.compile(rf"{_TIME}(?: ?[-–] ?{_TIME})?", re.IGNORECASE)
_COLUMN = re.compile(r"([^:;\n]{1,100}): ")


def table_around(spans: Sequence[Span], at: int) -> Sequence[Span]:
    """The rows of the table that contains the row `spans[at]`: adjacent rows that share a column."""
    first = last = at
    while first > 0 and spans[first - 1].is_row and continues(spans[first - 1].text, spans[first].text):
        first -= 1
    while (
        last + 1 < len(spans) and spans[last + 1].is_row and continues(spans[last].text, spans[last + 1].text)
    ):
        last += 1
    return spans[first : last + 1]


def continues(row: str, following: str, least: int = 1) -> bool:
    """Whether two adjacent rows belong to one table: at least `least` of their columns are the same."""
    return len(cells_of(row).keys() & cells_of(following).keys()) >= least


def rows_of(content: str) -> dict[str, Mapping[str, str]]:
    """The cells of each row of a passage, by the row's text."""
    return {span.text: cells_of(span.text) for span in spans_of(content) if span.is_row}


@functools.lru_cache(maxsize=MAX_CACHED)
def cells_of(row: str) -> Mapping[str, str]:
    """The cells of a row such as “Case: illness; Days: 5”, by column."""
    cells: dict[str, str] = {}
    name = ""
    for piece in row.split("; "):
        pair = _COLUMN.match(piece)
        if pair and pair[1] not in cells:
            name = pair[1]
            cells[name] = piece[pair.end() :]
        else:
            cells[name] = f"{cells[name]}; {piece}" if name in cells else piece
    return cells


def has_time(row: str) -> bool:
    """Whether a cell consists of one or two times of day: “18:35”, “9:00–17:00”."""
    return any(_TIME_OF_DAY.fullmatch(cell.strip()) for cell in cells_of(row).values())
