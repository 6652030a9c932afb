"""Approximate stems of words, to compare a question with a text."""

import re
from functools import cache, lru_cache

from .irregular import BASES
from .tokens import search_text

MAX_STEM = 6
LAST_LETTERS = 4  # the stem of a compound includes this many letters before its ending
MIN_COMPOUND = 10  # letters of a compound, without its ending
MAX_ENDINGS = 3
STOP_WORDS = frozenset(
    """
    a about am an and any are as at be been by can could did do does for from had has have he her his
    how i if in is it its me my of on or our shall she should so some that the their them there these
    they this to was we were what when where which who whom whose why will with would you your
    """.split()  # noqa: SIM905 (a list of words reads as one)
)
_WEAK_WORDS = """
    allowed answer apply asked back belong best called change come contain difference do find found get give
    given go good happen happens hold kept keep know made make mean means must need needed needs offer place
    placed possible put required say says stand store stored take taken tell thing things use used uses work
    works much many long often old far high large big early late soon spend
    lang lange oft hoch viel viele vielen vieler findet statt
    s t m ll ve re d don whats into than too now still then any anyone anybody someone somebody being
    """
_WORD = re.compile(r"\w+")
_CODE = re.compile(r"\w*\d\w{0,4}")  # TX5000A, but not 14tägigen
_PLURAL = re.compile(r"\ds\Z")
_ENDINGS = re.compile(
    r"(?<=\w{5})(?:(?:ung|heit|keit|schaft)(?:en)?|ations?|ements?|ments?|it(?:y|ies)|ness|an[ct]es?|ent|ences?|ate|able"
    r"|ible|ically|ical|al|ly|ive|ing|ed|isch|lich|ig|er|en|em|es|e|n|s)\Z"
)


def stems(text: str) -> frozenset[str]:
    """Approximate stems of the words of a text in any language, without STOP_WORDS."""
    words = (word for word in search_text(text, stored=False).split() if word not in STOP_WORDS)
    return frozenset(map(stem, words))


def held_stems(text: str) -> frozenset[str]:
    """Like `stems`, but also with the stems of the first parts of compounds."""
    words = (word for word in search_text(text, stored=False).split() if word not in STOP_WORDS)
    return frozenset(each for word in words for each in forms(word))


def matching_words(question: str, text: str) -> list[tuple[int, int]]:
    """Positions in `text` of the words of the question, in any form, as (start, end).

    Weak words (`weak_stems`) count only if the question has no others.
    """
    asked = stems(question)
    wanted = asked - weak_stems() or asked
    return [match.span() for match in _WORD.finditer(text) if held_stems(match[0]) & wanted]


@cache
def weak_stems() -> frozenset[str]:
    return stems(_WEAK_WORDS)


def stem(word: str) -> str:
    """An approximate stem, good enough to compare words.

    The stem of a long word, such as a German compound, includes the last letters before the ending, because
    many different compounds begin in the same way (Arbeitszeit, Arbeitsspeicher). A word with a digit
    near its end is a code, such as TX5000A, and is not shortened, except for the s of a plural.
    """
    if _CODE.fullmatch(word):
        return word.removesuffix("s") if _PLURAL.search(word) else word
    word = BASES.get(word, word)
    if len(word) >= MIN_COMPOUND and word.isalpha():
        root = word
        for _ in range(MAX_ENDINGS):
            if (found := _ENDINGS.search(root)) is None:
                break
            root = root[: found.start()]
        if len(root) >= MIN_COMPOUND:
            return f"{root[:MAX_STEM]}~{root[-LAST_LETTERS:]}"
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    for ending in ("ness", "ing", "ed", "ly", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    if len(word) > 3 and word.endswith("y"):
        word = f"{word[:-1]}i"  # such as salary and salaries
    return word[:MAX_STEM]


@lru_cache(maxsize=20_000)
def forms(word: str) -> tuple[str, ...]:
    """The stem of a word, and for a compound also the stem of its first part."""
    whole = stem(word)
    return (whole, whole.partition("~")[0]) if "~" in whole else (whole,)


def first_part(word: str) -> frozenset[str]:
    """The stem of a compound's first part, from the stem of the compound; empty for other stems."""
    first, tilde, _ = word.partition("~")
    return frozenset({first}) if tilde else frozenset()
