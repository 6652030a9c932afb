"""Tokens of words and numbers: their kinds, stems, normal forms, and durations."""

import re
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from . import lexicon

MAX_STEM = 7
MAX_STRONG = 6  # letters of the stem of a strong verb
_NUMBER_SEPARATOR = re.compile(r"['’ \u00a0\u202f\u2009]")
_VOWELS = re.compile("[aeiouäöüh]")
_DOUBLED = re.compile(r"(.)\1+")
# “aushändigen”, “auszuhändigen” and “ausgehändigt” are forms of one verb.
_INFIX = re.compile(
    r"(ab|an|auf|aus|bei|dar|durch|ein|fest|her|hin|mit|nach|statt|teil|um|vor|weg|weiter|zu|zurück|zusammen)"
    r"(?:zu|ge)(\w{4,})"
)


class Kind(Enum):
    """The kinds of tokens; stop words and punctuation are not tokens.

    POLAR is a word that has an opposite in `lexicon.POLES`.
    """

    WORD = "word"
    NUMBER = "number"
    NAME = "name"
    NEGATION = "negation"
    POLAR = "polar"


class Token(NamedTuple):
    """A word or number at start:end; `value` is its normal form.

    `unit` is the unit of a number, or the unit that a word such as “days” names; for a negation, “if” (in a
    condition), “without” or empty.
    """

    kind: Kind
    value: str
    start: int
    end: int
    unit: str = ""
    opens: bool = False  # whether a comma or another mark precedes it
    whole: str = ""  # the word in lower case, before stemming; of a number, only an article read as 1


# Units of time in seconds or months, so that two weeks equal 14 days.
MEASURES = {
    "second": ("second", 1.0),
    "minute": ("second", 60.0),
    "hour": ("second", 3_600.0),
    "day": ("second", 86_400.0),
    "week": ("second", 604_800.0),
    "month": ("month", 1.0),
    "year": ("month", 12.0),
}


def measure(number: Token) -> tuple[str, float] | None:
    """A duration in seconds or months; None for any other number."""
    if number.unit not in MEASURES or number.kind is not Kind.NUMBER:
        return None
    base, size = MEASURES[number.unit]
    try:
        return base, float(number.value) * size
    except ValueError:  # a time of day
        return None


@lru_cache(20_000)
def stem(word: str) -> str:
    """A rough stem for any language, good enough to recognise forms of the same word."""
    infix = _INFIX.fullmatch(word)
    if infix:
        word = infix[1] + infix[2]
    for ending in lexicon.ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    if word.endswith("t") and len(word) > 3:
        word = word[:-1]  # “connect” loses its last letter as an ending, so “connected” must lose it too
    return f"{word[:-1]}i" if word.endswith("y") and len(word) > 3 else word[:MAX_STEM]


def skeletons(word: str) -> list[str]:
    """Identifiers made of a word's consonants, which all forms of a strong verb share.

    In one of them, a prefix “ge” is removed. Long stems have none.
    """
    value = stem(word)
    found = []
    for form in (value, value.removeprefix("ge")):
        bare = _DOUBLED.sub(r"\1", _VOWELS.sub("", form))
        if len(bare) >= 3 and len(form) <= MAX_STRONG:
            found.append(f"skeleton {form[:1]}{bare}" if form[0] in "aeiouäöü" else f"skeleton {bare}")
    return found


def number_value(text: str) -> str:
    """The normalised spelling of a number: the same for 1,204 and 1.204, and for 2,5 and 2.50."""
    text = _NUMBER_SEPARATOR.sub("", text)
    marks = [mark for mark in text if mark in ".,"]
    if marks:
        decimal = marks[-1] if len(set(marks)) == 2 and marks.count(marks[-1]) == 1 else ""
        whole, mark, rest = text.rpartition(marks[-1])
        if not decimal and len(marks) == 1 and (len(rest) != 3 or whole in ("", "0")):
            decimal = mark
        if decimal:
            whole = whole.replace(".", "").replace(",", "")
            rest = rest.rstrip("0")
            return f"{whole.lstrip('0') or '0'}.{rest}" if rest else whole.lstrip("0") or "0"
        text = text.replace(".", "").replace(",", "")
    return text.lstrip("0") or "0"
