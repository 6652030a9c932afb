"""Journeys in timetables: table rows that say when something goes from one place to another.

The places are in columns (*From*, *To*), or in the heading of the table (“Ellery to Sennick”), or each column
is a place and has a time (*Central: 08:10; Harbour: 08:25*).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from chat.sources import SourceView
from ingestion.search.table_rows import rows_of

from .clock_times import DAY, minutes_of
from .weekdays import days_named, days_of_row

MIN_ROWS = 2  # rows of a timetable
MIN_STOPS = 3  # columns that are places; with only two, the times may be a beginning and an end

_AWAY = re.compile(
    r"(?:from|departs?|departures?|departing|dep|leaves?|leaving|origin|source|start|von|ab|abfahrt\w*|abflug)\b",
    re.IGNORECASE,
)
_TOWARD = re.compile(
    r"(?:to|arrives?|arrivals?|arriving|arr|arv|destination|end|nach|an|ankunft\w*|ziel\w*)\b", re.IGNORECASE
)
_TIME = re.compile(r"(?:times?|zeit|uhrzeit)\b", re.IGNORECASE)
_NAME = r"\b[A-ZÄÖÜ][\w'’.-]{0,40}(?: (?:(?:auf|am|an der|bei|of|de|upon|on) )?[A-ZÄÖÜ][\w'’.-]{0,40}){0,5}"
_WAY = re.compile(rf"(?P<start>{_NAME}) (?:[Tt]o|nach|->|→|➔) (?P<end>{_NAME})")
_BEFORE_NAME = re.compile(
    r"\A.{0,200}\b(?:for|from|of|von|für|timetable|schedule|fahrplan|route|line|linie) ", re.IGNORECASE
)
_AFTER_NAME = re.compile(r" (?:timetable|schedule|fahrplan|route|line|linie)\b.*", re.IGNORECASE)
SEASONS = (
    ("winter", re.compile(r"\bwinter\w*", re.IGNORECASE)),
    ("summer", re.compile(r"\bsummer\w*|\bsommer\w*", re.IGNORECASE)),
)


@dataclass(frozen=True, slots=True)
class Journey:
    """A row's journey from one place to another, with its times in minutes, if known."""

    row: str
    passage: SourceView
    start: str
    end: str
    departure: int | None
    arrival: int | None

    @property
    def said(self) -> str:
        """The texts above the table."""
        return f"{self.passage.title} {self.passage.heading}"

    @property
    def days(self) -> frozenset[int] | None:
        """The weekdays for which the row is valid; None if unknown."""
        return days_of_row(self.row) or days_named(self.said) or None

    @property
    def seasons(self) -> frozenset[str]:
        return seasons_named(f"{self.said} {self.row}")

    def time(self, *, of_arrival: bool) -> int | None:
        """The time of departure or arrival in minutes; an arrival after midnight is on the next day."""
        if not of_arrival or self.arrival is None or self.departure is None:
            return self.arrival if of_arrival else self.departure
        return self.arrival + DAY * (self.arrival < self.departure)


def seasons_named(text: str) -> frozenset[str]:
    return frozenset(name for name, pattern in SEASONS if pattern.search(text))


def journeys_in(passages: Sequence[SourceView]) -> list[Journey]:
    """The journeys of all timetables in the passages, in order."""
    found: list[Journey] = []
    for passage in passages:
        tables: dict[tuple[str, ...], dict[str, Mapping[str, str]]] = {}
        for text, cells in rows_of(passage.content).items():
            tables.setdefault(_layout(cells), {})[text] = cells
        for layout, rows in tables.items():
            if len(rows) >= MIN_ROWS:
                found += _journeys(passage, layout, rows)
    return found


def _layout(cells: Mapping[str, str]) -> tuple[str, ...]:
    """The names of four columns: place of departure, destination, and the times of both.

    A name is empty if there is no such column. Names of other columns with times follow.
    """
    places, times, others = ["", ""], ["", ""], []
    for name, cell in cells.items():
        role = 0 if _AWAY.match(name) else 1 if _TOWARD.match(name) else None
        is_time = minutes_of(cell) is not None
        if role is not None and cell:
            kind = times if is_time else places
            kind[role] = kind[role] or name
        elif is_time:
            others.append(name)
    if not times[0] and len(others) == 1 and _TIME.match(others[0]):
        times[0] = others.pop()
    return (*places, *times, *others)


def _journeys(
    passage: SourceView, layout: Sequence[str], rows: Mapping[str, Mapping[str, str]]
) -> Iterable[Journey]:
    start, end, departure, arrival, *stops = layout
    if (start and end) or not (departure or arrival):
        names = ("", "")
    else:
        names = _way_in(passage.heading) or _way_in(passage.title) or ("", "")
    for text, cells in rows.items():
        times = (minutes_of(cells.get(departure, "")), minutes_of(cells.get(arrival, "")))
        if departure or arrival:
            places = (cells[start], cells[end]) if start and end else names
            if all(places):
                yield Journey(text, passage, *places, *times)
        elif not (start or end) and len(stops) >= MIN_STOPS:
            for first, second in combinations(stops, 2):
                at, then = minutes_of(cells[first]), minutes_of(cells[second])
                if at is not None and then is not None and at != then:
                    way = (first, second, at, then) if at < then else (second, first, then, at)
                    yield Journey(text, passage, *way)


def _way_in(heading: str) -> tuple[str, str] | None:
    """The two places in a heading such as “Schedule for Ellery to Sennick”."""
    found = _WAY.search(heading)
    if found is None:
        return None
    start = _BEFORE_NAME.sub("", found["start"])
    return start, _AFTER_NAME.sub("", found["end"])
