"""Finds rows of timetables that a question asks for, such as the last boat."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from chat.sources import SourceView
from ingestion.search.rough_stems import held_stems

from .asked_journeys import AskedJourney
from .timetables import Journey, journeys_in


@dataclass(frozen=True, slots=True)
class FoundJourneys:
    """The rows that a question asks for, ordered by time within each table.

    `is_met` says that the direction was clear and the rows meet all recognised conditions; otherwise they may
    be only the closest rows. `is_clear` says that, in addition, the question has no date (`is_dated`).
    `wrong_way` has rows that only go the other way: to the place of departure, or from the destination.
    """

    rows: tuple[str, ...] = ()
    is_met: bool = False
    is_clear: bool = False
    wrong_way: frozenset[str] = frozenset()


def find_journeys(question: str, earlier: str, passages: Sequence[SourceView]) -> FoundJourneys:
    """The journeys that `question` asks for; no rows if it asks for something else.

    The question may continue the `earlier` one.
    """
    journeys = journeys_in(passages)
    places = frozenset(place for each in journeys for place in (each.start, each.end))
    asked = AskedJourney(question, places, AskedJourney(earlier, places) if earlier else None)
    if not asked.named:
        return FoundJourneys()
    right = [each for each in journeys if _goes(each, asked)]
    wrong_way = {each.row for each in journeys if _goes_back(each, asked)} - {each.row for each in right}
    rows, is_met = _chosen(right, asked) if asked.asks_rows else ([], False)
    return FoundJourneys(
        tuple(dict.fromkeys(each.row for each in rows)),
        is_met,
        is_met and not asked.is_dated,
        frozenset(wrong_way),
    )


def _goes(journey: Journey, asked: AskedJourney) -> bool:
    """Whether a journey has the direction asked for.

    If the direction is unclear, whether it connects two of the places that the question names.
    """
    if asked.direction is None:
        return {journey.start, journey.end} <= set(asked.named)
    start, end = asked.direction
    return (not start or start == journey.start) and (not end or end == journey.end)


def _goes_back(journey: Journey, asked: AskedJourney) -> bool:
    if asked.direction is None:
        return False
    start, end = asked.direction
    return (bool(start) and start == journey.end) or (bool(end) and end == journey.start)


def _chosen(journeys: list[Journey], asked: AskedJourney) -> tuple[list[Journey], bool]:
    """The journeys that meet the conditions, and True; or the closest ones, and False.

    The flag is also False if the direction is unclear.
    """
    is_clear = asked.direction is not None
    if asked.other_words:
        journeys = [each for each in journeys if asked.other_words <= held_stems(each.row)]
    if asked.seasons:
        of_season = [each for each in journeys if asked.seasons <= each.seasons]
        is_clear &= bool(of_season)
        journeys = of_season or journeys
    if asked.days:
        of_days = [each for each in journeys if each.days and not asked.days.isdisjoint(each.days)]
        is_clear &= bool(of_days)
        journeys = of_days or journeys
    timed = [each for each in journeys if each.time(of_arrival=asked.is_about_arrival) is not None]
    if asked.wants_last is None and not asked.times.spans:
        return _in_order(timed, asked) or journeys, is_clear
    at_time, is_met = _at_time(timed, asked)
    if is_met and asked.wants_last is not None:
        at_time = _outermost(at_time, asked, wants_last=asked.wants_last)
    return _in_order(at_time, asked), is_clear and is_met and len(timed) == len(journeys)


def _in_order(journeys: Iterable[Journey], asked: AskedJourney) -> list[Journey]:
    """The journeys, ordered by table and then by time."""
    tables = list(dict.fromkeys(each.said for each in journeys))
    return sorted(journeys, key=lambda each: (tables.index(each.said), _time(each, asked)))


def _time(journey: Journey, asked: AskedJourney) -> int:
    return journey.time(of_arrival=asked.is_about_arrival) or 0


def _at_time(journeys: list[Journey], asked: AskedJourney) -> tuple[list[Journey], bool]:
    """The journeys at the time asked for, or the nearest ones, and whether the time is met.

    It is not met if different interpretations of the time (“at six”) lead to different journeys.
    """
    spans = asked.times.spans
    if not spans:
        return journeys, bool(journeys)
    found = [[each for each in journeys if first <= _time(each, asked) <= last] for first, last in spans]
    kept = [each for each in journeys if any(each in of_span for of_span in found)]
    if kept:
        readings = {tuple(of_span) for of_span in found if of_span}
        return kept, len(readings) == 1
    first, last = spans[0]
    earlier = [each for each in journeys if _time(each, asked) < first]
    later = [each for each in journeys if _time(each, asked) > last]
    return [
        *_outermost(earlier, asked, wants_last=True),
        *_outermost(later, asked, wants_last=False),
    ], False


def _outermost(journeys: list[Journey], asked: AskedJourney, *, wants_last: bool) -> list[Journey]:
    """The last or first journeys of each table and day.

    Days are treated separately, because a journey that only runs on Fridays is not the last one on Mondays.
    If the direction is unclear, directions are treated separately, too.
    """
    best = []
    ways = [(each.said, "" if asked.direction else each.start) for each in journeys]
    for way in dict.fromkeys(ways):
        of_way = [each for each, own in zip(journeys, ways, strict=True) if own == way]
        for day in sorted(asked.days) or range(7):
            of_day = [each for each in of_way if each.days is None or day in each.days]
            times = [_time(each, asked) for each in of_day]
            best += [each for each in of_day if _time(each, asked) == (max if wants_last else min)(times)]
    return list(dict.fromkeys(best))
