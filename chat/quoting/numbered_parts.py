"""Sections that are the numbered parts of one thing: “Goal one: …”, “Goal two: …”.

A question about the whole (“What are the goals?”) is answered with all parts in their order.
"""

import re
from collections.abc import Sequence

from ingestion.search.rough_stems import stems

from .sentence_features import Quotable

_NUMBERS = (
    ("one", "first", "eins"),
    ("two", "second", "zwei"),
    ("three", "third", "drei"),
    ("four", "fourth", "vier"),
    ("five", "fifth", "fünf"),
    ("six", "sixth", "sechs"),
    ("seven", "seventh", "sieben"),
    ("eight", "eighth", "acht"),
    ("nine", "ninth", "neun"),
    ("ten", "tenth", "zehn"),
)
_VALUES = {word: value for value, words in enumerate(_NUMBERS, 1) for word in words}
_PART = re.compile(
    rf"\s*(?:(?P<kind>[^\W\d_]{{2,30}}) (?P<number>\d{{1,2}}|{'|'.join(_VALUES)})"
    rf"|(?P<ordinal>{'|'.join(_VALUES)}) (?P<after>[^\W\d_]{{2,30}}))\b",
    re.IGNORECASE,
)
_ASKS_FOR_ALL = re.compile(
    r"\b(?:what|which|welche?s?|was) (?:are|were|sind|waren)\b"
    r"|\A\s*(?:please )?(?:list|name|nenne\w?|liste)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]+")


def asks_for_all(question: str) -> bool:
    """Whether the question may ask for all parts of a thing."""
    return bool(_ASKS_FOR_ALL.search(question))


def numbered_parts(
    question: str, passages: Sequence[Quotable], documents: Sequence[str], start: int
) -> dict[int, int]:
    """{index of a passage: part number} for the parts asked for, ordered by number.

    Empty unless the question may ask for all parts, the passage at index `start` is a numbered part, the
    question has the plural of its name (“goals”), and the passages have at least two parts of its document.
    `documents` has the document of each passage.
    """
    if not asks_for_all(question):
        return {}
    outer, kind, _ = _part(passages[start].heading)
    if not kind or kind in {word.lower() for word in _WORD.findall(question)}:
        return {}
    if not stems(kind) or not stems(kind) <= stems(question):
        return {}
    numbers: dict[int, int] = {}
    for place, passage in enumerate(passages):
        around, name, number = _part(passage.heading)
        if documents[place] == documents[start] and (around, name) == (outer, kind):
            numbers[place] = number
    ordered = dict(sorted(numbers.items(), key=lambda each: each[1]))
    return ordered if len(set(ordered.values())) > 1 else {}


def _part(heading: str) -> tuple[str, str, int]:
    """The outer headings, and the name and number of the part in the innermost heading."""
    outer, _, inner = heading.rpartition("›")
    found = _PART.match(inner)
    if found is None:
        return outer, "", 0
    number = (found["number"] or found["ordinal"]).lower()
    return outer, (found["kind"] or found["after"]).lower(), _VALUES.get(number) or int(number)
