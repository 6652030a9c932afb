"""Other spellings and forms of the words of a question, which documents may use instead.

“Lock out” is also written “lockout”, and “e-mail” “email”. In German, a verb with a separable prefix has
several stems: “melde … ab”, “abmelden”, “abgemeldet”, “abzumelden” and “Abmeldung”.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from .irregular import BASES
from .tokens import plain_words
from .translations import language_of

MAX_WORDS = 64  # words of a question that are checked
MAX_VARIED = 16  # words and phrases of a question that get variants

_PARTICLES = frozenset({"in", "out", "on", "off", "up", "down", "over", "back", "away"})
_BETWEEN = frozenset({"me", "myself", "us", "you", "yourself", "it", "them", "him", "her", "my", "the", "a"})
_NOT_JOINED = frozenset(
    {"am", "are", "be", "been", "can", "do", "does", "get", "got", "has", "have", "is", "was"}
)
_HYPHENATED = re.compile(r"\b([^\W\d_]{1,20})-([^\W\d_]{1,20})\b")
_VERB_ENDING = re.compile(r"(?<=\w{3})(?:ed|ing|s)\Z")
_DOUBLED = re.compile(r"([bdgmnprt])\1\Z")

_PREFIXES = (
    *("ab", "an", "auf", "aus", "bei", "ein", "fest", "frei", "her", "hin", "krank", "los", "mit", "nach"),
    *("teil", "um", "vor", "weg", "weiter", "zu", "zurück", "zusammen"),
)
_PREFIX = rf"({'|'.join(sorted(_PREFIXES, key=len, reverse=True))})"
_PARTICIPLE = re.compile(rf"{_PREFIX}ge(\w{{2,20}}?)(e?t|en)(?:e[nmrs]?)?\Z")
_WITH_ZU = re.compile(rf"{_PREFIX}zu(\w{{2,20}}?)e?n\Z")
_INFINITIVE = re.compile(rf"{_PREFIX}(\w{{3,20}}?)(?:en|ung|ungen)\Z")
_FINITE = re.compile(r"(\w{3,20}?)(?:e|st|t|en)\Z")
_ASKING = frozenset(
    {"wie", "wann", "wo", "wohin", "warum", "wieso", "weshalb", "was", "wer", "wen", "wem", "bis", "ab"}
)


def variants_of(question: str) -> Mapping[str, Sequence[str]]:
    """Other spellings and forms, each a single word, by the word or phrase of the question."""
    return _variants(question)


@lru_cache(maxsize=200)  # a search and its answer need the same variants
def _variants(question: str) -> Mapping[str, Sequence[str]]:
    found: dict[str, list[str]] = {}
    words = plain_words(question).split()[:MAX_WORDS]
    of_language = _german(words) if language_of(question) == "german" else _english(words)
    for phrase, variant in (*_joined(question), *of_language):
        if variant not in words and variant not in found.get(phrase, ()) and len(found) < MAX_VARIED:
            found.setdefault(phrase, []).append(variant)
    return found


def _joined(question: str) -> Iterator[tuple[str, str]]:
    """Words with a hyphen, written as one word."""
    for first, second in _HYPHENATED.findall(question):
        yield plain_words(f"{first} {second}"), plain_words(first + second)


def _english(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Verbs with their particles as one word: “lockout”, also for “locked me out”."""
    for place, word in enumerate(words):
        if word not in _PARTICLES or not place:
            continue
        at = place - 1
        while at and words[at] in _BETWEEN:
            at -= 1
        verb = words[at]
        if len(verb) > 2 and verb.isalpha() and verb not in _NOT_JOINED:
            base = BASES.get(verb) or _DOUBLED.sub(r"\1", _VERB_ENDING.sub("", verb))
            yield f"{verb} {word}", base + word


def _german(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Other forms of verbs with a separable prefix, also for nouns derived from such verbs."""
    for word in words:
        bases = list(_infinitives(word))
        for base in bases:
            yield word, base
        if not bases and (found := _INFINITIVE.match(word)):
            prefix, root = found.groups()
            yield word, f"{prefix}ge{root}{'et' if root.endswith(('d', 't')) else 't'}"
            yield word, f"{prefix}zu{root}en"
    # “Wie melde ich mich ab?”
    if len(words) > 2 and words[-1] in _PREFIXES:
        verb = next((word for word in words if word not in _ASKING), "")
        if found := _FINITE.match(verb):
            base = BASES.get(verb, f"{found[1]}en")
            yield f"{verb} {words[-1]}", f"{words[-1]}{base}"
            yield f"{verb} {words[-1]}", f"{words[-1]}zu{base}"


def _infinitives(word: str) -> Iterator[str]:
    if found := _PARTICIPLE.match(word):
        prefix, root, ending = found.groups()
        yield prefix + BASES.get(f"ge{root}{ending}", f"{root}en")
    elif found := _WITH_ZU.match(word):
        prefix, root = found.groups()
        yield f"{prefix}{root}en"
