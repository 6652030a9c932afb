"""Selects the table row with the least or greatest value: “Which vessel is the oldest?”

The question names the column next to the superlative (“the most cars”), or the superlative implies it: the
oldest vessel has the least year in a column *Built*.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from chat.verification.terms.words import MEASURES
from ingestion.search.rough_stems import held_stems, stems, weak_stems
from ingestion.search.translations import stems_of_question

MIN_ROWS = 2  # rows of a table

Rows = Mapping[str, Mapping[str, str]]  # the cells of each row, by the row's text
Amount = Callable[[str], tuple[float, str] | None]  # the number in a cell, and its unit

_YEAR = stems("built launched founded established year baujahr gebaut gegründet jahr")
_AGE = stems("age alter")
_LENGTH = stems("length duration länge dauer")
_SPEED = stems("speed geschwindigkeit")
_PRICE = stems("price fare cost fee rate charge preis kosten gebühr tarif")
_WEIGHT = stems("weight gewicht")
_ANY = frozenset[str]()  # any column that the question names: “the highest rate”

# For each superlative, the words that name its column, and whether it asks for the greatest value.
_MEANINGS: Sequence[tuple[str, Sequence[tuple[frozenset[str], bool]]]] = (
    ("oldest älteste", ((_YEAR, False), (_AGE, True))),
    ("newest youngest neueste neuste jüngste", ((_YEAR, True), (_AGE, False))),
    ("longest längste", ((_LENGTH, True),)),
    ("shortest kürzeste", ((_LENGTH, False),)),
    ("fastest schnellste", ((_SPEED, True),)),
    ("slowest langsamste", ((_SPEED, False),)),
    ("most-expensive dearest teuerste", ((_PRICE, True),)),
    ("least-expensive cheapest billigste günstigste", ((_PRICE, False),)),
    ("heaviest schwerste", ((_WEIGHT, True),)),
    ("lightest leichteste", ((_WEIGHT, False),)),
    ("most highest largest biggest greatest meisten höchste größte", ((_ANY, True),)),
    ("least fewest lowest smallest wenigsten niedrigste kleinste", ((_ANY, False),)),
)
_MEANING = {word: meanings for words, meanings in _MEANINGS for word in words.split()}
_WORD = re.compile(r"\w{1,60}")
_FOLLOWING = 2  # words after a superlative that may name its column: “the highest service speed”
# First words of questions that no row answers. A question that begins with a verb asks for yes or no.
_ASKS_ANOTHER = re.compile(
    r"\W*(?:and |but |und |aber )?(?:who\w{0,2}|why|where|how (?:do|does|can|should|must|to)"
    r"|can|may|must|should|do|does|did|is|are|will|wer|wen|wem|warum|wo|darf|kann|muss|soll|ist|sind)\b",
    re.IGNORECASE,
)
# Verbs between the thing and its value, as in “carries the most cars”.
_HAS = stems("carry carries hold holds fit fits offer offers carried trägt fasst hat haben")
# “The second oldest”, “the three oldest”, “one of the oldest” ask for other rows.
_NOT_FIRST = re.compile(
    r"\b(?:second|third|last|two|three|four|five|ten|one of|zweit\w{0,20}|dritt\w{0,20}|zwei|drei|vier|fünf"
    r"|zehn)\b|\d",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Column:
    rows: Rows  # rows of the table
    name: str
    has_most: bool
    superlative: str


def rows_with_extreme(
    question: str, tables: Rows, amount: Amount, other_words: Callable[[str], frozenset[str]]
) -> tuple[str, ...]:
    """The rows with the least or greatest value in the column that `question` names.

    Only rows that have all words of the question, except those that name columns and the superlative, are
    compared. Empty if there are no such rows, if no column or several columns fit, if `amount` finds no
    number in the column of one of these rows, or if their units cannot be compared. `other_words` returns
    the stems of the synonyms of a stem of the question.
    """
    if _ASKS_ANOTHER.match(question) or _NOT_FIRST.search(question):
        return ()
    asked = stems_of_question(question) - weak_stems() - _HAS
    columns = [
        column
        for rows in by_columns(tables)
        if len(rows) >= MIN_ROWS and _things(asked, rows, other_words)
        for column in _columns_of(question, rows)
    ]
    # Choose between “winter fare” and “summer fare” by the words of the question.
    most = max((len(asked & stems(each.name)) for each in columns), default=0)
    columns = [each for each in columns if len(asked & stems(each.name)) == most]
    if len(columns) != 1:
        return ()
    column = columns[0]
    known = _things(asked, column.rows, other_words).union(*map(stems, next(iter(column.rows.values()))))
    rest = asked - known - stems(column.superlative)
    amounts = {
        text: amount(cells[column.name])
        for text, cells in column.rows.items()
        if rest <= held_stems(" ".join(cells.values()))
    }
    values = _in_one_unit({text: each for text, each in amounts.items() if each is not None})
    if not values or len(values) < len(amounts):
        return ()
    best = (max if column.has_most else min)(values.values())
    return tuple(text for text, each in values.items() if each == best)


def _in_one_unit(amounts: Mapping[str, tuple[float, str]]) -> dict[str, float]:
    """The numbers in one unit: units of time are converted; empty if other units differ.

    A number without a unit, such as one of a column that names it, is in the unit of the others.
    """
    units = {unit for _, unit in amounts.values()}
    if len(units - {""}) < 2:
        return {text: number for text, (number, _) in amounts.items()}
    bases = {MEASURES[unit][0] if unit in MEASURES else unit for unit in units}
    if len(bases) > 1 or not units <= MEASURES.keys():
        return {}
    return {text: number * MEASURES[unit][1] for text, (number, unit) in amounts.items()}


def by_columns(tables: Rows) -> list[Rows]:
    """The rows, grouped into tables with the same columns."""
    parts: dict[tuple[str, ...], dict[str, Mapping[str, str]]] = {}
    for text, cells in tables.items():
        parts.setdefault(tuple(cells), {})[text] = cells
    return list(parts.values())


def _things(
    asked: Collection[str], rows: Rows, other_words: Callable[[str], frozenset[str]]
) -> frozenset[str]:
    """The words of the question that occur, or have synonyms, in the name of the first column.

    This name says what the rows are.
    """
    first = held_stems(next(iter(next(iter(rows.values())))))
    return frozenset(word for word in asked if word in first or not other_words(word).isdisjoint(first))


def _columns_of(question: str, rows: Rows) -> list[_Column]:
    names = {name: stems(name) for name in next(iter(rows.values()))}
    found: dict[str, _Column] = {}
    words = [word.lower() for word in _WORD.findall(question)]
    for place, word in enumerate(words):
        following = words[place + 1 : place + 1 + _FOLLOWING]
        key = f"{word}-expensive" if following[:1] == ["expensive"] else word
        meanings = _MEANING.get(key) or _MEANING.get(key.rstrip("nrsm"), ())  # German endings
        if words[max(0, place - 1) : place] == ["at"]:  # “at most”
            continue
        after = next((each for each in map(stems, following) if each), frozenset[str]())
        for own_words, has_most in meanings:
            for name, own in names.items():
                if (own_words or after) & own:
                    found.setdefault(name, _Column(rows, name, has_most, key.replace("-", " ")))
    return list(found.values())
