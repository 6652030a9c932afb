"""Selects rows from tables of opening hours: “Which desks are open after 6 pm on Friday?”

A table may have a column for each day, one column (*Hours: 9:00–17:00*), or two (*Opens*, *Closes*).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chat.sources import SourceView
from ingestion.search.rough_stems import held_stems, stems, weak_stems
from ingestion.search.table_rows import rows_of
from ingestion.search.translations import without_grammar

from .clock_times import DAY, asked_times, minutes_of
from .weekdays import days_named, days_of, days_of_row

MIN_ROWS = 2  # rows of a table

_ASKS = re.compile(
    r"\b(?:which|what|welche[nrsm]?) .{1,100}\b(?:open|opened|staffed|geöffnet|offen|besetzt|auf)\b",
    re.IGNORECASE,
)
_ASKS_WHETHER = re.compile(
    r"\s*(?:is|are|will|ist|sind|hat|haben|does|do)\b.{1,100}"
    r"\b(?:open|opened|staffed|closed|geöffnet|offen|besetzt|auf|zu|geschlossen)\b",
    re.IGNORECASE,
)
_UNTIL = re.compile(r"\b(?:until|till|bis|not|nicht|never|always|immer|first|last|longest)\b", re.IGNORECASE)
_OPENS = re.compile(r"(?:open|from|begin|start|von|ab\b|öffnet|beginn)", re.IGNORECASE)
_CLOSES = re.compile(r"(?:clos|to\b|until|end|bis|schließ|ende)", re.IGNORECASE)
_RANGE = re.compile(
    r"([\d:.]{1,5} ?(?:[ap]\.?m\.?)?)(?: Uhr)? ?(?:[-–—]|to|bis) ?([\d:.]{1,5} ?(?:[ap]\.?m\.?)?)(?: Uhr)?",
    re.IGNORECASE,
)
_CLOSED = re.compile(r"(?:closed|geschlossen|zu|[-–—])", re.IGNORECASE)
_ALWAYS = re.compile(r"(?:all day|24 hours|24/7|24 h|durchgehend)", re.IGNORECASE)
_WORD = re.compile(r"\w+")
_DIGITS = re.compile(r"\d{1,2}")
_OPEN_WORDS = stems(
    "open opened staffed geöffnet offen besetzt auf uhr haben hat sind ist time clock after before still noch"
    " closed zu geschlossen"
)


@dataclass(frozen=True, slots=True)
class OpenRows:
    """The rows that are open at the time asked for, or the row that a yes-or-no question is about.

    `is_clear` says whether all meanings of the time (“six”) select the same rows, and the hours of all rows
    are known.
    """

    rows: tuple[str, ...] = ()
    is_clear: bool = False


def open_rows(question: str, wording: str, passages: Sequence[SourceView]) -> OpenRows:
    """The rows that `question` asks for; none if it asks for something else.

    `wording` is the question in the language of the passages.
    """
    times, days = asked_times(question), days_named(question)
    if _ASKS_WHETHER.match(question) and (times.spans or days):
        return _named_rows(wording, days, passages)
    if not times.spans or not _ASKS.search(question) or _UNTIL.search(question):
        return OpenRows()
    named = _named(wording)
    found: dict[str, list[tuple[int, int]]] = {}
    is_known = True
    for passage in passages:
        above = held_stems(f"{passage.title} {passage.heading}")
        rows = {
            row: _hours(row, cells, days)
            for row, cells in rows_of(passage.content).items()
            if named <= above | held_stems(row)
        }
        known = {row: hours for row, hours in rows.items() if hours is not None}
        if len(known) >= MIN_ROWS:
            found.update(known)
            is_known &= len(known) == len(rows)
    chosen = {
        tuple(row for row, hours in found.items() if any(_meet(each, span) for each in hours))
        for span in times.spans
    }
    rows_then = tuple(row for row in found if any(row in of_span for of_span in chosen))
    return OpenRows(rows_then, is_known and len(chosen) == 1)


def _named(wording: str) -> frozenset[str]:
    """The stems that say which rows are meant: without times, days, function words and words like “open”."""
    words = _WORD.findall(asked_times(wording).rest.lower())
    rest = [word for word in words if not days_named(word) and not word.isdigit()]
    return stems(" ".join(without_grammar(rest, "german"))) - weak_stems() - _OPEN_WORDS


def _named_rows(wording: str, days: frozenset[int], passages: Sequence[SourceView]) -> OpenRows:
    """The row that a yes-or-no question asks about: “Is the library open on Friday?”

    Empty unless exactly one of the named rows has known hours on the days asked about.
    """
    named = _named(wording)
    found: list[str] = []
    for passage in passages:
        above = held_stems(f"{passage.title} {passage.heading}")
        rows = rows_of(passage.content)
        here = [row for row in rows if named <= above | held_stems(row) and named & held_stems(row)]
        if len(rows) >= MIN_ROWS and len(here) < len(rows):
            found += [row for row in here if _hours(row, rows[row], days) is not None]
    kept = tuple(dict.fromkeys(found))
    return OpenRows(kept, is_clear=True) if len(kept) == 1 else OpenRows()


def _meet(hours: tuple[int, int], span: tuple[int, int]) -> bool:
    """Whether the hours overlap the span asked for; hours that end when it begins do not."""
    first, last = span
    return hours[0] <= last and hours[1] > first


def _hours(row: str, cells: Mapping[str, str], days: frozenset[int]) -> list[tuple[int, int]] | None:
    """The hours of a row on these days, or on any day if `days` is empty; None if unknown."""
    by_day = {name: of for name in cells if (of := days_of(name))}
    if by_day:
        wanted = [cells[name] for name, of in by_day.items() if not days or days & of]
    elif days and days.isdisjoint(days_of_row(row) or frozenset(range(7))):
        return []
    elif days and days_of_row(row) is None:
        return None
    else:
        opens = [minutes_of(cell) for name, cell in cells.items() if _OPENS.match(name)]
        closes = [minutes_of(cell) for name, cell in cells.items() if _CLOSES.match(name)]
        if len(opens) == len(closes) == 1 and opens[0] is not None and closes[0] is not None:
            return [_until(opens[0], closes[0])]
        wanted = [cell for cell in cells.values() if _RANGE.fullmatch(cell.strip())]
    read = [_read(cell.strip()) for cell in wanted]
    return [each for hours in read for each in hours or ()] if read and None not in read else None


def _read(cell: str) -> list[tuple[int, int]] | None:
    """The hours in a cell; empty for “closed”, None for any other text."""
    if _CLOSED.fullmatch(cell):
        return []
    if _ALWAYS.fullmatch(cell):
        return [(0, DAY)]
    match = _RANGE.fullmatch(cell)
    if match is None:
        return None
    first, last = (
        minutes_of(f"{each}:00" if _DIGITS.fullmatch(each) else each)
        for each in map(str.strip, match.groups())
    )
    return [_until(first, last)] if first is not None and last is not None else None


def _until(first: int, last: int) -> tuple[int, int]:
    """Opening and closing times; if closing is not after opening, it is on the next day."""
    return first, last + DAY * (last <= first)
