"""Words of documents for the everyday words of a question, by a list that ships (office_words.txt).

Who asks for “days off” means “annual leave”. The list has words of offices, in English and German; each word
found by it is searched for beside the question and counts less than the question's own.
"""

import functools
from pathlib import Path

from .tokens import plain_words

LIST = Path(__file__).with_suffix(".txt")
LONGEST = 4  # words of an entry
MAX_FOUND = 12  # words added to a question


def office_words(question: str) -> list[str]:
    """The words that documents may have in place of some of the question, without its own."""
    asked = plain_words(question).split()
    known = _list()
    found: dict[str, None] = {}
    start = 0
    while start < len(asked):
        for length in range(min(LONGEST, len(asked) - start), 0, -1):  # “day off” before “off”
            if words := known.get(" ".join(asked[start : start + length])):
                found |= dict.fromkeys(words)
                start += length - 1
                break
        start += 1
    return [word for word in found if word not in asked][:MAX_FOUND]


@functools.cache
def _list() -> dict[str, tuple[str, ...]]:
    """The words of documents by the everyday ones; an entry of several lines has the words of all."""
    known: dict[str, tuple[str, ...]] = {}
    for line in LIST.read_text(encoding="utf-8").splitlines():
        everyday, colon, words = line.partition(":")
        if not colon or line.startswith("#"):
            continue
        for entry in everyday.split(","):
            key = plain_words(entry)
            known[key] = (*known.get(key, ()), *plain_words(words).split())
    return known
