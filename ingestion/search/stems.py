"""Stems by Snowball in languages that PostgreSQL cannot stem, and in two more for look-ups.

In LANGUAGES, words of documents and questions are stemmed here; PostgreSQL uses the stems unchanged.
"""

import threading
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

import snowballstemmer

from ingestion.parsing.language import common_words

from .tokens import search_text

LANGUAGES = ("czech", "persian", "polish")

_one_at_a_time = threading.Lock()  # stemmers are not thread-safe


@lru_cache(maxsize=50_000)
def stem(word: str, language: str) -> str:
    """The stem of a word in lower case; empty for function words of the language."""
    if word in common_words(language):
        return ""
    if _is_number(word):
        return word
    with _one_at_a_time:
        return str(_stemmer(language).stemWord(word))


def _is_number(word: str) -> bool:
    """Whether the word is a number. No stemmer changes numbers, and most of them are not in the cache."""
    return word.isascii() and word.isdigit()


def german_stem(word: str) -> str:
    """The stem of a German word, for look-ups; PostgreSQL stems German texts by itself."""
    if _is_number(word):
        return word
    with _one_at_a_time:
        return str(_stemmer("german").stemWord(word))


def english_stem(word: str) -> str:
    """The stem of an English word, for look-ups; PostgreSQL stems English texts by itself."""
    with _one_at_a_time:
        return str(_stemmer("english").stemWord(word))


def indexed_text(text: str, language: str) -> str:
    """The words of a text that PostgreSQL indexes; for LANGUAGES, these are stems."""
    words = search_text(text)
    if language not in LANGUAGES:
        return words
    return " ".join(found for word in words.split() if (found := stem(word, language)))


def stems_by_language(words: Sequence[str]) -> dict[str, list[str]]:
    """The stems of these words and phrases, in the same order, by language of LANGUAGES."""

    def stemmed(word: str, language: str) -> str:
        if " " not in word:  # the usual case
            return stem(word, language)
        return " ".join(filter(None, (stem(part, language) for part in word.split())))

    return {language: [stemmed(word, language) for word in words] for language in LANGUAGES}


@cache
def _stemmer(language: str) -> Any:
    return snowballstemmer.stemmer(language)
