"""Days of the week in table cells: “Mon-Fri”, “Tue, Fri”, “Daily”.

A row applies only to these days: a sailing on “Mon-Fri” does not answer “and on Sundays?”.
"""

import re
from functools import lru_cache

from ingestion.search.table_rows import cells_of

MAX_CELL = 60  # characters of a cell that contains nothing but days
MAX_CACHED = 5_000  # cached rows

_EVERY = frozenset(range(7))
_ENGLISH = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_GERMAN = ("mo", "di", "mi", "do", "fr", "sa", "so")
# Longer names come first, so that “Montag” is not read as “Mon”.
_DAY = (
    r"(?:(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch)s?"
    r"|(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:days?)?|mo|di|mi|do|fr|sa|so"
)
_NAMED = re.compile(
    r"\b(?:(mon)|(tues)|(wednes)|(thurs)|(fri)|(satur)|(sun))days?\b"
    r"|\b(?:(mon)tag|(diens)tag|(mittwoch)|(donners)tag|(frei)tag|(sams)tag|(sonn)tag)s?\b",
    re.IGNORECASE,
)
_RANGE = re.compile(rf"({_DAY})\.?(?: ?(?:[-–—]|to|bis) ?({_DAY})\.?)?", re.IGNORECASE)
_CELL = re.compile(rf"{_RANGE.pattern}(?:(?:, ?| ?[&+/] ?| and | und ){_RANGE.pattern})*", re.IGNORECASE)
_DAILY = re.compile(r"daily|every day|täglich|jeden Tag", re.IGNORECASE)


def days_named(text: str) -> frozenset[int]:
    """The weekdays that a text names in full, as numbers from 0 for Monday."""
    return frozenset(
        next(place for place, found in enumerate(match.groups()) if found) % 7
        for match in _NAMED.finditer(text)
    )


@lru_cache(maxsize=MAX_CACHED)
def days_of_row(row: str) -> frozenset[int] | None:
    """The days in the cells that contain nothing but days; None if the row has no such cell."""
    found = [days for cell in cells_of(row).values() if (days := days_of(cell.strip())) is not None]
    return frozenset[int]().union(*found) if found else None


def days_of(cell: str) -> frozenset[int] | None:
    """The days in a cell that contains nothing but days; None for any other cell."""
    if _DAILY.fullmatch(cell):
        return _EVERY
    if len(cell) > MAX_CELL or not _CELL.fullmatch(cell):
        return None
    days: set[int] = set()
    for match in _RANGE.finditer(cell):
        first, last = _number(match[1]), _number(match[2] or match[1])
        days.update((first + each) % 7 for each in range((last - first) % 7 + 1))
    return frozenset(days)


def _number(day: str) -> int:
    """The number of a weekday, from the first letters of its English or German name."""
    names, length = (_ENGLISH, 3) if day[:3].lower() in _ENGLISH else (_GERMAN, 2)
    return names.index(day[:length].lower())
