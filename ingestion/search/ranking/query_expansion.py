"""Substitutes for words of a question that no readable passage has.

“Payday” may be written “pay day” in a passage. A passage may have the parts of a compound instead of the
compound, or a word with the same prefix if stemming does not handle a form. Only a search, or its survey (see
plans.py), shows which words no passage has.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

from ingestion.search.tokens import abbreviations, has_unspaced_script, plain_words, search_text

PREFIX_SHARE = 0.6  # length of the prefix to search for, as a share of the word's length
MIN_PREFIX = 5  # characters of a prefix
MIN_PART = 3  # characters in each part of a word that is split
MAX_SPLIT_WORD = 9  # letters; the first part of a longer word has at least MIN_LONG_PART
MIN_LONG_PART = 4
MAX_WORD = 40  # characters; longer words are ignored
MAX_JOINED_WORDS = 32
MAX_EXPANDED = 8  # words of a question that get substitutes

# A substitute or added word counts less than a word of the question, both in the score and in
# `Candidate.coverage`.
EXPANSION_WEIGHT = 0.7
EVERYDAY_WEIGHT = 0.8  # total weight of all the words that documents use for an everyday word
SHORT_QUESTION = 6  # EVERYDAY_WEIGHT decreases in questions with more words: the other words say enough


def alternative_spellings(word: str) -> list[str]:
    """The alternative spellings of a word (from `plain_words`), each an operand of a tsquery."""
    if not word.isalpha() or has_unspaced_script(word) or len(word) > MAX_WORD:
        return []
    length = max(MIN_PREFIX, math.ceil(PREFIX_SHARE * len(word)))
    found = [f"'{word[:length]}':*"] if length < len(word) else []
    is_long = len(word) > MAX_SPLIT_WORD
    least = MIN_LONG_PART if is_long else MIN_PART
    parts = [(word[:cut], word[cut:]) for cut in range(least, len(word) - MIN_PART + 1)]
    if word[0] == "e" and len(word) > MIN_PART:
        parts.append(("e", word[1:]))  # “e-mail”
    if is_long:  # without a linking “s”: “Kündigungsfrist”, “Frist der Kündigung”
        parts += [(first[:-1], last) for first, last in parts if first[-1] == "s" and len(first) > least]
    return found + [f"('{first}' & '{last}')" for first, last in parts]


def any_of(phrases: Sequence[str]) -> str:
    """A tsquery for any of these phrases."""
    cut = (search_text(phrase, stored=False).split() for phrase in phrases)
    return " | ".join(" <-> ".join(f"'{word}'" for word in words) for words in cut if words)


def joined_words(query: str, known: Sequence[str]) -> list[str]:
    """Pairs of adjacent words as one word, and abbreviations without dots, except those in `known`."""
    words = plain_words(query).split()
    pairs = [
        first + second
        for first, second in pairwise(words)
        if min(len(first), len(second)) >= MIN_PART and (first + second).isalpha()
    ]
    found = dict.fromkeys([*abbreviations(query), *pairs])
    fit = [pair for pair in found if len(pair) <= MAX_WORD and not has_unspaced_script(pair)]
    return [pair for pair in fit if pair not in known][:MAX_JOINED_WORDS]
