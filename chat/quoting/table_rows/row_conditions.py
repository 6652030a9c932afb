"""Selects rows of tables by numbers: “rooms on floor 2 with more than 15 seats”.

A number belongs to the column whose name is next to it. Among questions about all rows, only those that ask
for the least or greatest value are answered (`row_extremes`). Counts (“how many rooms are there”) and
conditions without a column are only recognised, so that a part of the table is not presented as the answer.
"""

import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from chat.verification.terms.lexicon import UNITS
from chat.verification.terms.words import number_value
from ingestion.search.rough_stems import held_stems, stem, stems, weak_stems
from ingestion.search.table_rows import rows_of
from ingestion.search.translations import stems_of_question

from .row_extremes import rows_with_extreme
from .row_properties import asks_rows_with_property, rows_with_property

SUPERLATIVE = re.compile(
    r"(?<!\bat )\b(?:most|least|fewest|best|worst|highest|lowest|largest|biggest|smallest|longest|shortest"
    r"|fastest|slowest|oldest|newest|youngest|cheapest|dearest|heaviest|lightest|greatest|meisten|wenigsten|höchste\w?"
    r"|niedrigste\w?|größte\w?|kleinste\w?|längste\w?|kürzeste\w?|schnellste\w?|langsamste\w?|älteste\w?"
    r"|jüngste\w?|neue?ste\w?|teuerste\w?|billigste\w?|günstigste\w?|schwerste\w?|leichteste\w?)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w{1,60}(?:[.,]\d{1,6}){0,4}")
_NUMBER = re.compile(r"(\d{1,12}(?:[.,]\d{1,6}){0,4})(?:st|nd|rd|th)?\Z")
_CELL = re.compile(
    r"(?P<before>[A-Z]{1,3}|[£$€])? ?(?P<number>\d{1,12}(?:[.,]\d{1,6}){0,4})(?:st|nd|rd|th|\.)?"
    r"(?: ?(?P<after>[^\d\s+<>–-]{1,20}))?\Z"
)
_MULTIPLIERS = dict.fromkeys(("k", "tsd", "thousand", "tausend"), 1_000)
_MULTIPLIERS |= dict.fromkeys(("mio", "mn", "million", "millionen"), 1_000_000)
_MULTIPLIERS |= dict.fromkeys(("bn", "mrd", "billion", "milliarde", "milliarden"), 1_000_000_000)
_SHORT_UNITS = {"h": "hour", "t": "tonne", "m": "metre", "l": "litre"}
_PER = re.compile(r"\b(?:per|pro|je|in)\b|[(/]")
_COMPARISON = re.compile(
    r"\b(?:more|less|fewer) than\b|\w{3,20}er than\b|\bbetween\b"
    r"|\b(?:mehr|weniger|\w{3,20}er) als\b|\bzwischen\b"
    r"|\b(?:at least|at most|up to|over|above|under|below|mindestens|höchstens|maximal|bis zu|über|unter)"
    r" (?:[a-zäöü]{1,20} )?[£$€]?\d"
    r"|\d (?:or|and|oder|und) (?:more|less|fewer|over|mehr|weniger)\b",
    re.IGNORECASE,
)
_NOT = re.compile(
    r"\b(?:not?|except|without|outside|other than|nicht|keine?[mnrs]?|außer|außerhalb|ohne)\b|n['’]t\b",
    re.IGNORECASE,
)
_EXCEPT = re.compile(
    r"\b(?:outside|except|other than|not (?:in|at|on|for|to|from)"
    r"|außer|außerhalb|nicht (?:in|im|am|an|auf|nach|für))\b",
    re.IGNORECASE,
)
_WHICH = re.compile(r"\b(?:which|what|welche[nrsm]?|list|show(?: me)?|all|alle) (\w{1,60})", re.IGNORECASE)
_THERE = re.compile(r"\b(?:is|are) there\b|\bgibt es\b", re.IGNORECASE)
_HOW_MANY = re.compile(r"\b(?:how many|wie ?viele) (\w{1,60})", re.IGNORECASE)

_OF_ROWS = re.compile(f"{SUPERLATIVE.pattern}|{_COMPARISON.pattern}|{_HOW_MANY.pattern}", re.IGNORECASE)

_BEFORE: Mapping[tuple[str, ...], Callable[[float, float], bool]] = {
    ("more", "than"): operator.gt,
    ("mehr", "als"): operator.gt,
    ("less", "than"): operator.lt,
    ("fewer", "than"): operator.lt,
    ("weniger", "als"): operator.lt,
    ("at", "least"): operator.ge,
    ("at", "most"): operator.le,
    ("up", "to"): operator.le,
    ("bis", "zu"): operator.le,
    ("over",): operator.gt,
    ("above",): operator.gt,
    ("über",): operator.gt,
    ("under",): operator.lt,
    ("below",): operator.lt,
    ("after",): operator.gt,
    ("before",): operator.lt,
    ("unter",): operator.lt,
    ("nach",): operator.gt,
    ("vor",): operator.lt,
    ("mindestens",): operator.ge,
    ("höchstens",): operator.le,
    ("maximal",): operator.le,
}
_AFTER: Mapping[tuple[str, ...], Callable[[float, float], bool]] = {
    ("or", "more"): operator.ge,
    ("oder", "mehr"): operator.ge,
    ("or", "less"): operator.le,
    ("or", "fewer"): operator.le,
    ("oder", "weniger"): operator.le,
}
_RELATIONS = stems(" ".join(" ".join(phrase) for phrase in (*_BEFORE, *_AFTER)))


@dataclass(frozen=True, slots=True)
class RowSelection:
    """The texts of the rows that meet all conditions of the question, in order.

    `needs_all` says that a part of the table cannot answer the question, because the question is about all
    rows, no row meets its conditions or has its other words, or a condition cannot be evaluated.
    `compares_all` says that `rows` have the least or greatest value of all rows, which is only certain with
    the whole table.
    """

    rows: tuple[str, ...] = ()
    needs_all: bool = False
    compares_all: bool = False


@dataclass(frozen=True, slots=True)
class _Condition:
    columns: frozenset[str]
    relation: Callable[[float, float], bool]
    number: float

    def meets(self, cells: Mapping[str, str]) -> bool:
        values = (_value(cells[name]) for name in self.columns if name in cells)
        return any(value is not None and self.relation(value, self.number) for value in values)


def selects_rows(question: str) -> bool:
    """Whether the question may have a condition for rows, or ask about all rows."""
    return (
        any(map(str.isdigit, question))
        or bool(_OF_ROWS.search(question))
        or asks_rows_with_property(question)
    )


def excludes(text: str) -> bool:
    """Whether a question or row excludes something: “outside Paris”, “except in Italy”, “not on Sundays”."""
    return bool(_EXCEPT.search(text))


def _no_words(word: str) -> frozenset[str]:
    return frozenset()


def select_rows(
    question: str,
    contents: Iterable[str],
    subject: str = "",
    other_words: Callable[[str], frozenset[str]] = _no_words,
) -> RowSelection:
    """The rows in `contents` that `question` selects; `subject` has the titles and headings above them.

    `other_words` returns the stems of the synonyms of a stem of the question.
    """
    if not selects_rows(question):
        return RowSelection()
    tables = {text: cells for content in contents for text, cells in rows_of(content).items()}
    if not (any(map(str.isdigit, question)) or _OF_ROWS.search(question) or _NOT.search(question)):
        return RowSelection(rows_with_property(question, tables, subject))
    if SUPERLATIVE.search(question) and not _NOT.search(question) and not _COMPARISON.search(question):
        extreme = rows_with_extreme(question, tables, _amount, other_words)
        if extreme:
            return RowSelection(extreme, compares_all=True)
    names = dict.fromkeys(name for row in tables.values() for name in row)
    columns = {name: held_stems(_PER.split(name)[0]) - weak_stems() for name in names}
    if not columns:
        return RowSelection()
    conditions, is_clear = _conditions(question, columns)
    taken = frozenset[str]().union(*(each.columns for each in conditions))
    things = held_stems(subject).union(*(found for name, found in columns.items() if name not in taken))
    if not stems(question) & (things - weak_stems()):
        return RowSelection()
    asks_rows = bool(_THERE.search(question)) or any(
        stems(match[1]) & things for match in _WHICH.finditer(question)
    )
    compared = sum(each.relation is not operator.eq for each in conditions)
    is_clear &= len(_COMPARISON.findall(question)) <= compared and not _NOT.search(question)
    if compared and not asks_rows and not _HOW_MANY.search(question):
        return RowSelection()
    of_all = bool(SUPERLATIVE.search(question)) or _counts_rows(question, columns, tables.values())
    rows = tuple(
        text
        for text, cells in tables.items()
        if conditions and is_clear and all(each.meets(cells) for each in conditions)
    )
    rows, has_others = _with_words(_other_words(question, things.union(*columns.values())), rows)
    is_unmet = asks_rows and not rows and (bool(conditions) or bool(_COMPARISON.search(question)))
    return RowSelection(rows, of_all or is_unmet or not has_others)


def _conditions(question: str, columns: Mapping[str, Collection[str]]) -> tuple[list[_Condition], bool]:
    """The conditions, and whether every number of the question belongs to one of them."""
    words = _WORD.findall(question)
    lowered = [word.lower() for word in words]
    conditions, is_clear = [], True
    for place, word in enumerate(words):
        number = _NUMBER.match(word)
        if number is None:
            continue
        after, before = place + 1, place
        relation, length = _relation(_AFTER, lowered[after : after + 2])
        after += length
        if not length:
            relation, length = _relation(_BEFORE, lowered[max(0, before - 2) : before], at_end=True)
            before -= length
        named = _named(words[after : after + 1], columns)
        if not named:
            named = _named(words[max(0, before - 1) : before], columns)
            if named and not length:  # “above floor 2”
                relation, _ = _relation(_BEFORE, lowered[max(0, before - 3) : before - 1], at_end=True)
        if named:
            conditions.append(_Condition(named, relation, float(number_value(number[1]))))
        else:
            is_clear = False
    return conditions, is_clear


def _other_words(question: str, known: Collection[str]) -> frozenset[str]:
    """The stems of the question's words that are not `known`: “… in Carrow Quay”."""
    text = SUPERLATIVE.sub(" ", _HOW_MANY.sub(r" \1 ", question))
    words = stems_of_question(text) - weak_stems() - frozenset(known) - _RELATIONS
    return frozenset(word for word in words if not word[:1].isdigit())


def _with_words(words: frozenset[str], rows: tuple[str, ...]) -> tuple[tuple[str, ...], bool]:
    """The rows with all of the words, and True.

    If there are rows but none has them, all rows, and False.
    """
    kept = tuple(row for row in rows if words <= held_stems(row))
    return kept or rows, bool(kept or not rows)


def _relation(
    known: Mapping[tuple[str, ...], Callable[[float, float], bool]],
    words: Sequence[str],
    *,
    at_end: bool = False,
) -> tuple[Callable[[float, float], bool], int]:
    """The comparison that words express, and the number of these words.

    Looks only at the beginning of `words` or, with `at_end`, at their end. Equality and 0 if there is none.
    """
    for length in (2, 1):
        part = tuple(words[-length:] if at_end else words[:length])
        if part in known:
            return known[part], length
    return operator.eq, 0


def _named(words: Sequence[str], columns: Mapping[str, Collection[str]]) -> frozenset[str]:
    """The columns whose names contain the word; if it is the whole name of some, only these."""
    word = stems(" ".join(words))
    named = frozenset(name for name, found in columns.items() if word and word <= frozenset(found))
    return frozenset(name for name in named if frozenset(columns[name]) == word) or named


def _counts_rows(
    question: str, columns: Mapping[str, Collection[str]], rows: Collection[Mapping[str, str]]
) -> bool:
    """Whether the question counts things (“how many rooms”) that a column lists by name, not by number."""
    match = _HOW_MANY.search(question)
    named = _named([match[1]], columns) if match else frozenset()
    cells = [row[name] for name in named for row in rows if name in row]
    return bool(cells) and not any(cell[:1].isdigit() for cell in cells)


def _value(cell: str) -> float | None:
    """The number in a cell, without its unit; see `_amount`."""
    amount = _amount(cell)
    return amount[0] if amount else None


def _amount(cell: str) -> tuple[float, str] | None:
    """The number in a cell that contains nothing else except a currency, leading letters or a unit.

    The second value is the unit, as in `UNITS`, or its stem if it is unknown; empty if there is none. Words
    and abbreviations for thousands and millions are multiplied: “€1.2m”.
    """
    match = _CELL.match(cell.strip())
    if match is None:
        return None
    before = UNITS.get((match["before"] or "").casefold(), "")
    after = (match["after"] or "").casefold().rstrip(".")
    factor = 1_000_000 if after == "m" and before else _MULTIPLIERS.get(after, 0)
    own = stem(after) if any(map(str.isalpha, after)) else ""  # “seats”, but not “*”
    unit = "" if factor else UNITS.get(after) or _SHORT_UNITS.get(after, own)
    return float(number_value(match["number"])) * (factor or 1), before or unit
