"""Times of day in table cells and in questions: “after 6 pm” or “vormittags”."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

NOON, EVENING, DAY = 12 * 60, 18 * 60, 24 * 60  # minutes since midnight
AROUND = 60  # minutes before and after a time that still count as “around” it
_HOURS: Mapping[str, int] = {
    **{
        word: hour
        for words in (
            "one two three four five six seven eight nine ten eleven twelve",
            "eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
        )
        for hour, word in enumerate(words.split(), 1)
    },
    **dict.fromkeys(("noon", "midday", "mittag", "mittags"), 12),
    **dict.fromkeys(("midnight", "mitternacht"), 24),
}
_CELL = re.compile(r"([01]?\d|2[0-4])[:.h]([0-5]\d)(?::\d{2})?(?: ?([ap])\.?m\.?)?(?: Uhr)?", re.IGNORECASE)
_FULL_HOUR = re.compile(r"(\d{1,2})(?: ?([ap])\.?m\.?| Uhr)", re.IGNORECASE)
_TIME = (
    r"(?:(?P<hour{n}>\d{{1,2}})(?:[:.h](?P<minute{n}>\d{{2}}))?|(?P<word{n}>" + "|".join(_HOURS) + r"))"
    r"(?!\w)(?! ?%)(?: ?(?P<half{n}>[ap])\.?m\b\.?| ?(?P<clock{n}>uhr|h)\b| o['’]clock)?"
)
_BETWEEN = re.compile(
    rf"\b(?:between|from|zwischen|von) {_TIME.format(n=1)}"
    rf"(?: and | to | und | bis | ?[–-] ?){_TIME.format(n=2)}",
    re.IGNORECASE,
)
_RELATIONS = (
    ("after", r"after|later than|no earlier than|since|from|nach|ab|frühestens|später als"),
    ("by", r"by|until|till|no later than|bis|spätestens(?: um)?|bis spätestens"),
    ("before", r"before|earlier than|vor|früher als"),
    ("around", r"around|about|towards|gegen|ungefähr um|etwa um|circa|ca\."),
    ("at", r"at|um"),
)
_CONDITION = re.compile(
    rf"\b(?:{'|'.join(f'(?P<{name}>{words})' for name, words in _RELATIONS)}) (?:um |about )?"
    rf"{_TIME.format(n=1)}",
    re.IGNORECASE,
)
_MORNING = re.compile(
    r"\b(?:in the |this )?mornings?\b|\b(?:am )?(?:vormittags?|morgens)\b|\b(?:am|jeden) morgen\b",
    re.IGNORECASE,
)
_AFTERNOON = re.compile(r"\b(?:in the |this )?afternoons?\b|\b(?:am )?nachmittags?\b", re.IGNORECASE)
_LATER = re.compile(r"\b(?:in the |this )?evenings?\b|\b(?:am )?abends?\b", re.IGNORECASE)
_PARTS = ((_MORNING, 0, NOON), (_AFTERNOON, NOON, EVENING), (_LATER, EVENING, DAY))


@dataclass(frozen=True, slots=True)
class AskedTimes:
    """The times of day that a question asks for, and the rest of the question.

    `spans` are in minutes since midnight, including both ends. “Between 4 and 6” has two spans, in the
    morning and in the afternoon; a question without a time has none.
    """

    spans: Sequence[tuple[int, int]]
    rest: str


def minutes_of(cell: str) -> int | None:
    """The minutes since midnight if the cell only has a time: “18:35”, “6 pm”."""
    cell = cell.strip()
    if match := _CELL.fullmatch(cell):
        return _minutes(match[1], match[2], match[3])
    match = _FULL_HOUR.fullmatch(cell)
    return _minutes(match[1], "0", match[2]) if match else None


def asked_times(question: str) -> AskedTimes:
    """The times of day in a question: a part of the day, or times with a word such as “after”."""
    first, last, rest = 0, DAY, question
    for pattern, begin, end in _PARTS:
        if pattern.search(rest):
            first, last = begin, end - 1
            rest = pattern.sub(" ", rest)
            break
    if match := _BETWEEN.search(rest):
        is_clear = bool(match["clock1"] or match["clock2"])
        ends = _readings(match, 2, first, match["half2"], is_clear=is_clear)
        # In “between 4 and 6 pm”, the first time is the latest possible one before the second time.
        is_clear |= bool(match["half1"])
        begins = _readings(match, 1, first, match["half1"], is_clear=is_clear)
        spans = [
            (max(early, default=begins[0]), end) for end in ends if (early := [b for b in begins if b < end])
        ]
        return AskedTimes(spans or [(begins[0], ends[-1])], _BETWEEN.sub(" ", rest))
    if match := _CONDITION.search(rest):
        relation = next(name for name, _ in _RELATIONS if match[name])
        found = _readings(match, 1, first, match["half1"], is_clear=bool(match["clock1"]))
        spans = [_span(relation, at, first, last) for at in found]
        return AskedTimes(spans, _CONDITION.sub(" ", rest))
    return AskedTimes([(first, last)] if (first, last) != (0, DAY) else [], rest)


def _span(relation: str, at: int, first: int, last: int) -> tuple[int, int]:
    if relation == "after":
        return at, last
    if relation in ("before", "by"):
        return first, at - (relation == "before")
    span = AROUND if relation == "around" else 0
    return at - span, at + span


def _readings(
    match: re.Match[str], number: int, least: int, half: str | None, *, is_clear: bool
) -> list[int]:
    """The possible minutes of a time; “six” may be in the morning or in the evening."""
    hour, minute = match[f"hour{number}"], match[f"minute{number}"]
    at = _minutes(hour or str(_HOURS[match[f"word{number}"].lower()]), minute or "0", half)
    if half or at >= NOON:
        return [at]
    if least >= NOON:  # “after three in the afternoon”
        return [at + NOON]
    return [at] if is_clear or minute else [at, at + NOON]


def _minutes(hour: str, minute: str, half: str | None) -> int:
    hours = int(hour) % 12 + 12 * (half.lower() == "p") if half else int(hour)
    return hours * 60 + int(minute)
