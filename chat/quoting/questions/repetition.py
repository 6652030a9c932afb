"""Recognises suggestions that repeat an earlier question in other words or another language."""

from collections.abc import Iterable
from functools import lru_cache

from ingestion.search.rough_stems import stem, stems
from ingestion.search.translations import is_german, question_in_english

from .question import Question, measures

SHARED = 2 / 3  # a suggestion is a repetition if an earlier question has this share of its named words
MIN_SHARED = 2  # named words (`Question.named`) in common; a single one may be the subject of many questions
MAX_KEPT = 5_000  # cached questions
# Ignored, because the site makes questions such as “What should I know about …?” from any heading.
_KNOWING = frozenset(map(stem, ("know", "wissen")))


def repeats(question: str, earlier: Iterable[str]) -> bool:
    """Whether one of the earlier questions names the same things.

    Each question may be in English or German.
    """
    return any(_names_as_much(question, other) for other in earlier)


def _names_as_much(question: str, other: str) -> bool:
    if question.casefold() == other.casefold():
        return True
    if is_german(question) != is_german(other):
        question, other = _in_english(question, other), _in_english(other, question)
    named, directions = _content(question)
    before, directions_before = _content(other)
    if directions and directions_before and directions != directions_before:
        return False  # one of them is about another direction, such as the way back
    shared = len(named & before)
    return bool(named) and (named == before or (shared >= MIN_SHARED and shared >= SHARED * len(named)))


@lru_cache(MAX_KEPT)
def _content(question: str) -> tuple[frozenset[str], frozenset[tuple[bool, str]]]:
    """The stems of the named words of a question, and its directions."""
    asked = Question(question)
    return asked.named - measures() - _KNOWING, asked.directions


@lru_cache(MAX_KEPT)
def _in_english(question: str, other: str) -> str:
    """A German question, translated preferably into words of `other`; English is unchanged."""
    return (question_in_english(question, stems(other)) or question) if is_german(question) else question
