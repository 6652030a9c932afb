"""What a question says about a journey: places, direction, first or last, times and days.

The original question (English or German) is analysed, because a translation omits function words.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from django.utils.functional import cached_property

from ingestion.search.rough_stems import stems, weak_stems
from ingestion.search.translations import without_grammar

from .clock_times import AskedTimes, asked_times
from .timetables import SEASONS, seasons_named
from .weekdays import days_named

MIN_ALIAS = 4  # letters of a word that stands for the name of a place: “Sennick” for “Sennick Harbour”

_WORD = re.compile(r"\w+")
_GENERIC = stems(
    "port harbour harbor quay pier bay station terminal central centre center town city island north south"
    " east west hafen bahnhof insel airport flughafen markt stadt nord süd ost"
)
_ARTICLE = r"(?:the |dem |der |den |das )?"
_FROM = re.compile(
    rf"\b(?:from|out of|leav(?:es?|ing)|depart(?:s|ing)?|von|ab|aus) {_ARTICLE}\Z", re.IGNORECASE
)
_TO = re.compile(
    r"\b(?:to|towards?|into|for|reach(?:es)?|arriv(?:es?|ing) (?:in|at)|nach|bis|zum?|zur|richtung)"
    rf" {_ARTICLE}\Z",
    re.IGNORECASE,
)
_TO_IN_A_PAIR = re.compile(r"(?:->?|→|–|—|>|\bnach|\bto)\s*\Z", re.IGNORECASE)
_IN = re.compile(r"\b(?:in|at)\s\Z", re.IGNORECASE)
_ARRIVES = re.compile(
    r"\barriv|\breach|\bbe (?:in|at)\b|\bget (?:in|to [^?]{1,40} by)\b|\bankomm|\bankunft"
    r"|\bkomm\w{0,2} [^?]{0,100} an\b|\bsein\b|\blegt? [^?]{0,100} an\b",
    re.IGNORECASE,
)
_DEPARTS = re.compile(
    r"\bleav|\bdepart|\babfahr|\babfähr|\bableg|\babgeh|\bstart"
    r"|\b(?:legt|legen|fährt|fahren|geht|gehen) [^?]{0,100} ab\b",
    re.IGNORECASE,
)
_LAST = re.compile(r"\b(?:last|latest|letzte\w?|späteste\w?)\b", re.IGNORECASE)
_FIRST = re.compile(r"\b(?:first|earliest|erste\w?|früheste\w?)\b", re.IGNORECASE)
_NEXT = re.compile(r"\b(?:next|nächste\w?)\b", re.IGNORECASE)
_BACK = re.compile(
    r"\b(?:back|return(?:ing)?|(?:the )?other way(?: round)?|zurück|rück\w*|umgekehrt)\b", re.IGNORECASE
)
_WEEKEND = re.compile(r"\b(?:at the |on the |am )?(?:weekends?|wochenenden?)\b", re.IGNORECASE)
_WEEKDAYS = re.compile(
    r"\b(?:on )?(?:weekdays?|working days?|werktags?|werktagen?|wochentags?|unter der woche)\b", re.IGNORECASE
)
# Words for dates. A weekly timetable cannot answer a question with one of these: it does not say which dates
# are in its season, or what day it is.
_DATE = re.compile(
    r"\b(?:january|february|march|april|(?-i:May)(?! (?:I|we|you|one)\b)|(?<=in )may|june|july|august"
    r"|september|october|november|december|januar|februar|märz|mai|juni|juli|oktober|dezember|today|tomorrow|tonight|now"
    r"|heute|morgen|jetzt|christmas|easter|weihnachten|ostern)\b",
    re.IGNORECASE,
)
_ASKS_ANOTHER = re.compile(
    r"\b(?:how (?:long|far|much|many|often|old|late)|who|whom|why|costs?|price|fares?|kostet|kosten|wer|warum"
    r"|wieso|weshalb|wie (?:lange|weit|oft|viele|teuer))\b",
    re.IGNORECASE,
)
# Words about journeys that do not restrict which journeys are meant.
_TRAVEL = stems(
    "time boat ferry ship sailing sail crossing departure arrival arrive depart leave connection"
    " timetable schedule travel journey trip run go goes may get reach catch service line want list show tell"
    " please bus train tram flight day one way uhr wann fähre fähren schiff schiffe boot boote"
    " überfahrt verbindung verbindungen abfahrt abfahrten ankunft busse zug züge bahn fährt fahren"
    " fahre abfährt abfahren legt legen ablegt geht gehen gibt komme kommt kommen ankommt ankommen muss"
    " möchte will kann noch bitte hin home heim hause richtung fahrplan fahrt sein wie viel wieviel"
)


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


@dataclass(frozen=True)
class AskedJourney:
    """What a question says about a journey between some of `places`.

    Missing information (“and in summer?”) is taken from the `earlier` question.
    """

    question: str
    places: frozenset[str]
    earlier: "AskedJourney | None" = None

    @cached_property
    def _found(self) -> list[tuple[int, int, str]]:
        """For each place in the question: where it begins and ends, and its name in the timetable."""
        names = [(_words(name), place) for place in self.places for name in (place, *self._aliases(place))]
        names.sort(key=lambda each: -len(each[0]))
        words = _words(self.question)
        spans = [match.span() for match in _WORD.finditer(self.question)]
        found: list[tuple[int, int, str]] = []
        at = 0
        while at < len(words):
            here = ((len(name), place) for name, place in names if name == words[at : at + len(name)])
            length, place = next(here, (0, ""))
            if length:
                found.append((spans[at][0], spans[at + length - 1][1], place))
            at += length or 1
        return found

    def _aliases(self, place: str) -> Iterable[str]:
        """The words of a place that can be used for its name, because no other place has them."""
        others = {word for other in self.places - {place} for word in _words(other)}
        for word in _words(place):
            if len(word) >= MIN_ALIAS and word not in others and not stems(word) & _GENERIC:
                yield word

    @cached_property
    def named(self) -> Sequence[str]:
        """The places that the question names, in order."""
        own = tuple(dict.fromkeys(place for _, _, place in self._found))
        return own if own or not self.earlier else self.earlier.named

    @cached_property
    def direction(self) -> tuple[str, str] | None:
        """The place of departure and the destination; None if the direction is unclear.

        One of the two may be empty.
        """
        before = self.earlier.direction if self.earlier else None
        if not self._found:
            return before[::-1] if before and _BACK.search(self.question) else before
        if before and (own := self._own_direction):  # “and from Ellery?”
            return own[0] or before[0] * (before[0] != own[1]), own[1] or before[1] * (before[1] != own[0])
        return self._own_direction

    @cached_property
    def _own_direction(self) -> tuple[str, str] | None:
        start: set[str] = set()
        end: set[str] = set()
        is_arrival, is_departure = bool(_ARRIVES.search(self.question)), bool(_DEPARTS.search(self.question))
        for number, (at, until, place) in enumerate(self._found):
            before = self.question[self._found[number - 1][1] if number else 0 : at]
            following = self._found[number + 1 : number + 2]
            after = self.question[until : following[0][0]] if following else ""
            if _FROM.search(before):
                start.add(place)
            elif _TO.search(before) or (number and start and _TO_IN_A_PAIR.search(before)):
                end.add(place)
            elif _TO_IN_A_PAIR.fullmatch(after.strip()):
                start.add(place)
            elif _IN.search(before) and is_arrival != is_departure:
                (end if is_arrival else start).add(place)
        if len(self.named) == 2 and len(start | end) == 1:
            (start if end else end).update(set(self.named) - start - end)
        is_clear = len(start) <= 1 and len(end) <= 1 and not start & end
        if not is_clear or start | end != set(self.named):
            return None
        return next(iter(start), ""), next(iter(end), "")

    @cached_property
    def times(self) -> AskedTimes:
        own = asked_times(self._without_places)
        if own.spans or not self.earlier:
            return own
        return AskedTimes(self.earlier.times.spans, own.rest)

    @cached_property
    def _without_places(self) -> str:
        text = self.question
        for start, end, _ in reversed(self._found):
            text = f"{text[:start]}·{text[end:]}"
        return text

    @cached_property
    def is_about_arrival(self) -> bool:
        is_own = bool(_ARRIVES.search(self._without_places))
        return is_own or (self.earlier is not None and self.earlier.is_about_arrival)

    @cached_property
    def wants_last(self) -> bool | None:
        """True if it asks for the last journey, False if for the first; otherwise None."""
        is_last = bool(_LAST.search(self.question))
        is_first = bool(_FIRST.search(self.question)) or (
            bool(self.times.spans) and bool(_NEXT.search(self.question))
        )
        if not is_last and not is_first and self.earlier:
            return self.earlier.wants_last
        return is_last if is_last != is_first else None

    @cached_property
    def seasons(self) -> frozenset[str]:
        own = seasons_named(self._without_places)
        return own if own or not self.earlier else self.earlier.seasons

    @cached_property
    def days(self) -> frozenset[int]:
        days = days_named(self.question)
        if _WEEKEND.search(self.question):
            days |= {5, 6}
        if _WEEKDAYS.search(self.question):
            days |= frozenset(range(5))
        return days if days or not self.earlier else self.earlier.days

    @property
    def asks_rows(self) -> bool:
        """Whether it asks for journeys between two places, or for certain ones from or to one place.

        In the second case, it must name a time or a day, or ask for the first or last journey.
        """
        if _ASKS_ANOTHER.search(self._without_places) or (self.earlier and not self._goes_on):
            return False
        is_narrowed = self.wants_last is not None or bool(self.times.spans or self.days)
        return len(self.named) == 2 or (self.direction is not None and is_narrowed)

    @property
    def _goes_on(self) -> bool:
        """Whether it is a follow-up question about the journey of the earlier question."""
        alone = replace(self, earlier=None)
        says = alone.named or alone.times.spans or alone.days or alone.seasons or alone.is_about_arrival
        is_other = bool(says) or alone.wants_last is not None or bool(_BACK.search(self.question))
        return is_other and self.earlier is not None and self.earlier.asks_rows

    @property
    def is_dated(self) -> bool:
        """Whether a weekly timetable cannot answer: the question has a date, or “next” without a time."""
        rest = self.times.rest
        return bool(_DATE.search(rest)) or (bool(_NEXT.search(rest)) and not self.times.spans)

    @cached_property
    def other_words(self) -> frozenset[str]:
        """The stems of the remaining words, which a row must have: “with a motorhome”."""
        text = self.times.rest
        for pattern in (
            _BACK,
            _LAST,
            _FIRST,
            _NEXT,
            _WEEKEND,
            _WEEKDAYS,
            _DATE,
            *(each for _, each in SEASONS),
        ):
            text = pattern.sub(" ", text)
        # German function words are always removed, because the language of a short question may be unclear.
        words = without_grammar([word for word in _words(text) if not days_named(word)], "german")
        own = stems(" ".join(words)) - weak_stems() - _TRAVEL - stems("und aber oder")
        return own | self.earlier.other_words if self.earlier else own
