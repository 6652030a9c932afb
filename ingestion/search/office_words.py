"""Words of documents for the everyday words of a question: the list that ships (office_words.txt).

Who asks for “days off” means “annual leave”. The list has words of offices, in English and German; the words
of the house (ingestion.glossary) may have others in their place.
"""

import functools
from collections.abc import Mapping
from pathlib import Path

from .tokens import plain_words

LIST = Path(__file__).with_suffix(".txt")


@functools.cache
def shipped() -> Mapping[str, tuple[str, ...]]:
    """The words of documents by the everyday ones; an entry of several lines has the words of all."""
    known: dict[str, tuple[str, ...]] = {}
    for everyday, words in lines():
        for entry in everyday.split(","):
            key = plain_words(entry)
            known[key] = (*known.get(key, ()), *plain_words(words).split())
    return known


@functools.cache
def lines() -> tuple[tuple[str, str], ...]:
    """The list as it is written: everyday words with commas between them, and words of documents."""
    found = []
    for line in LIST.read_text(encoding="utf-8").splitlines():
        everyday, colon, words = line.partition(":")
        if colon and not line.startswith("#"):
            found.append((everyday.strip(), words.strip()))
    return tuple(found)
