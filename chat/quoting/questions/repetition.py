"""Whether a question that is to be suggested was asked or suggested before, in other words or language."""

from collections.abc import Iterable
from functools import lru_cache

from ingestion.search.rough_stems import stem, stems
from ingestion.search.translations import is_german, question_in_english

from .question import Question, measures

SHARED = 2 / 3  # of the words that a suggestion names, in an earlier question: it asks nothing new
MIN_SHARED = 2  # words; one alone may be the subject of many questions
MAX_KEPT = 5_000  # questions
_KNOWING = frozenset(map(stem, ("know", "wissen")))  # of a suggestion that only has a heading


def repeats(question: str, earlier: Iterable[str]) -> bool:
    """Whether one of the earlier questions names what this one does, both in English or German."""
    return any(_names_as_much(question, other) for other in earlier)


def _names_as_much(question: str, other: str) -> bool:
    if question.casefold() == other.casefold():
        return True
    if is_german(question) != is_german(other):
        question, other = _in_english(question, other), _in_english(other, question)
    named, directions = _content(question)
    before, directions_before = _content(other)
    if directions and directions_before and directions != directions_before:
        return False  # the way back
    shared = len(named & before)
    return bool(named) and (named == before or (shared >= MIN_SHARED and shared >= SHARED * len(named)))


@lru_cache(MAX_KEPT)
def _content(question: str) -> tuple[frozenset[str], frozenset[tuple[bool, str]]]:
    """The stems of the things that it names, and its directions."""
    asked = Question(question)
    return asked.named - measures() - _KNOWING, asked.directions


@lru_cache(MAX_KEPT)
def _in_english(question: str, other: str) -> str:
    """A German question in the words of an English one; an English question as it is."""
    return (question_in_english(question, stems(other)) or question) if is_german(question) else question
