"""The words that documents use for everyday words in questions, from office_words.txt.

For instance, documents say “annual leave” for “days off”. The list has English and German office vocabulary;
a site's glossary (ingestion.glossary) can replace its entries.
"""

import functools
from collections.abc import Mapping
from pathlib import Path

from .rough_stems import stem
from .tokens import plain_words

LIST = Path(__file__).with_suffix(".txt")


@functools.cache
def built_in() -> Mapping[str, tuple[str, ...]]:
    """The words that documents use, by everyday word or phrase, merged from all lines that contain it."""
    known: dict[str, tuple[str, ...]] = {}
    for everyday, words in lines():
        found = [plain_words(each) for each in words.split(",")]
        for entry in everyday.split(","):
            key = plain_words(entry)
            known[key] = tuple(dict.fromkeys((*known.get(key, ()), *found)))
    return known


def documents_words(phrase: str) -> tuple[str, ...]:
    """The words and phrases that documents use for an everyday word or phrase.

    `phrase` may be inflected (“picked on”, “picking on”).
    """
    return built_in().get(phrase) or _by_stems().get(_stemmed(phrase), ())


def may_begin(word: str) -> bool:
    """Whether an everyday word or phrase may begin with `word`: a fast test that excludes most words."""
    return word in _beginnings() or _stem(word) in _beginnings()


@functools.cache
def _beginnings() -> frozenset[str]:
    """The first word of each everyday phrase, and its stem."""
    return frozenset(phrase.partition(" ")[0] for phrase in (*built_in(), *_by_stems()))


@functools.cache
def _by_stems() -> Mapping[str, tuple[str, ...]]:
    known: dict[str, tuple[str, ...]] = {}
    for phrase, words in built_in().items():
        known.setdefault(_stemmed(phrase), words)
    return known


def _stemmed(phrase: str) -> str:
    return " ".join(map(_stem, phrase.split()))


# Cached, because a word of a question is part of several phrases.
_stem = functools.lru_cache(maxsize=20_000)(stem)


@functools.cache
def lines() -> tuple[tuple[str, str], ...]:
    """The lines of the list as pairs: everyday words, and the words that documents use.

    Within each text of a pair, words are separated by commas.
    """
    found = []
    for line in LIST.read_text(encoding="utf-8").splitlines():
        everyday, colon, words = line.partition(":")
        if colon and not line.startswith("#"):
            found.append((everyday.strip(), words.strip()))
    return tuple(found)
