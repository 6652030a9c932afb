"""Phrases whose first word alone means something else, such as “half an hour”."""

import re
from itertools import islice

from . import lexicon
from .clock import CLOCK_WORDS, spoken_time
from .words import Kind, Token, stem

# “No more than three” means “at most three” and is not a negation.
_COMPARISON = re.compile(
    r"\s+(?:(?P<most>more|later|longer|higher|mehr|später|länger|höher)|(?:less|fewer|earlier|lower|weniger|früher))"
    r"\s+(?:than|als)\b",
    re.IGNORECASE,
)
_SOLID = re.compile(r"\w+")
MAX_PHRASE = 24  # characters that are examined after the first word of a phrase in `lexicon.PHRASES`
# “half an hour”, “a quarter of an hour”, “ein halbes Jahr”; “a fifth of the staff”.
_PART = re.compile(
    r"(?:(?:a\s{1,20}|one\s{1,20})?(?P<part>half|quarter)\s{1,20}(?:of\s{1,20})?an?\s{1,20}|halbe[ns]?\s{1,20})(?P<unit>hour|year|day|stunde|jahre?s?)\b"
    r"|an?\s{1,20}(?P<whole>hour|year|day)\s{1,20}and\s{1,20}a\s{1,20}half\b"
    r"|(?:a|one)\s{1,20}(?P<part_of>third|quarter|fifth|tenth)\s{1,20}of\b"
    r"|half\s{1,20}(?:of\s{1,20})?(?P<half>the|your|its|their|his|her|our)\b"
    r"|(?P<several>two|three|drei)\s{1,20}(?P<parts>thirds|quarters|fifths|viertel)\b"
    r"|eine?[ms]?\s{1,20}(?P<teil>drittel|viertel|fünftel|zehntel)\b",
    re.IGNORECASE,
)
# The unit in “within a week”, which means one week.
_SINGLE = re.compile(
    r"\s{1,20}(?:second|minute|hour|day|week|fortnight|month|year|sekunde|minute|stunde"
    r"|tage?s?|woche|monats?|jahre?s?)\b",
    re.IGNORECASE,
)
_ARTICLES = frozenset(("a", "an", "one", "ein", "eine", "einem", "einen", "einer", "eines"))
_FRACTION_WORDS = _ARTICLES | {
    "two",
    "three",
    "drei",
    "half",
    "quarter",
    "halbe",
    "halben",
    "halbes",
    "viertelstunde",
}
PHRASE_WORDS = (
    frozenset(lexicon.PHRASES)
    | lexicon.DENIALS
    | _FRACTION_WORDS
    | CLOCK_WORDS
    | {"es", "left", "leave", "leaves", "leaving", "rule", "rules", "ruled", "ruling"}
)
_OBJECTS = frozenset(("it", "them", "this", "that", "these", "those"))
_SHARE = re.compile(
    r"\s{1,20}(third|quarter|fifth|tenth)\s{1,20}(?:over|under|above|below|more|less|higher|lower|to|for)\b",
    re.IGNORECASE,
)
HALVES = {"hour": ("minute", 30), "year": ("month", 6), "day": ("hour", 12)}
_RANGE = re.compile(r"\s+(?:to|or|and)\s+(?:two|three|four|five|\d)", re.IGNORECASE)
_LEFT_OUT = re.compile(r"(?:left|leav(?:es?|ing)|rul(?:es?|ed|ing))\s+out\b", re.IGNORECASE)


def phrase(text: str, word: str, start: int, end: int) -> Token | None:
    """The token for a phrase that begins with this word; None if none does."""
    folded = word.casefold()
    if folded in CLOCK_WORDS and (time := spoken_time(text, folded, start)):
        return time
    if folded in lexicon.PHRASES and (verb := _verb(text, folded, start, end)):
        return verb
    if folded in _FRACTION_WORDS and (fraction := _fraction(text, folded, start, end)):
        return fraction
    if folded == "es" and text[end : end + 9].casefold() == " sei denn":
        return Token(Kind.NEGATION, "not", start, end + 9)
    compared = _COMPARISON.match(text, end) if folded in lexicon.DENIALS else None
    if compared:
        return Token(Kind.POLAR, "most" if compared["most"] else "least", start, end)
    if folded == "one" and (_RANGE.match(text, end) or _SINGLE.match(text, end)):
        return Token(Kind.NUMBER, "1", start, end)
    if _LEFT_OUT.match(text, start):
        return Token(Kind.POLAR, "excluded", start, end)
    if len(word) == 1 and word.isupper() and text[end : end + 1] in (",", ";"):
        return Token(Kind.NAME, f"letter {folded}", start, end)  # “C, fast craft”, “Grade: C; Steps: 5”
    return None


def _verb(text: str, first: str, start: int, end: int) -> Token | None:
    """The token for a phrase in `lexicon.PHRASES`: “cancel” for “call off”, “%” for “per cent”."""
    following = list(islice(_SOLID.finditer(text, end, end + MAX_PHRASE), 3))
    words = [match[0].casefold() for match in following]
    for rest, meaning in lexicon.PHRASES[first]:
        if len(words) > len(rest) and words[0] in _OBJECTS:
            del words[0], following[0]  # “pay it back”
        if tuple(words[: len(rest)]) == rest:
            stop = following[len(rest) - 1].end()
            if meaning in lexicon.NEGATIONS:
                return Token(Kind.NEGATION, "not", start, stop)
            if meaning in lexicon.POLES:
                return Token(Kind.POLAR, meaning, start, stop, whole=meaning)
            unit = lexicon.UNITS.get(meaning, "")
            return Token(Kind.WORD, stem(unit or meaning), start, stop, unit, whole=meaning)
    return None


def _fraction(text: str, folded: str, start: int, end: int) -> Token | None:
    """The number in “half an hour” (30 minutes), “a fifth of …” (20 %) or “within a week” (1)."""
    if folded == "viertelstunde":
        return Token(Kind.NUMBER, "15", start, end, "minute")
    part = _PART.match(text, start)
    if part is None and folded in ("a", "one") and (bare := _SHARE.match(text, end)):
        # “A fifth over the budget” is also a percentage, although “a fifth” has no “of”.
        return Token(Kind.NUMBER, str(lexicon.FRACTIONS[bare[1].casefold()]), start, bare.end(1), "%")
    if part and part["part_of"]:
        return Token(Kind.NUMBER, str(lexicon.FRACTIONS[part["part_of"].casefold()]), start, part.end(), "%")
    if part and part["half"]:
        return Token(Kind.NUMBER, "50", start, part.start("half"), "%")
    if part and part["several"]:
        share = lexicon.FRACTIONS[part["parts"].casefold().removesuffix("s")]
        number = (lexicon.ONES[part["several"].casefold()] * share * 100 + 50) // 100
        return Token(Kind.NUMBER, str(number), start, part.end(), "%")
    if part and part["teil"]:
        return Token(Kind.NUMBER, str(lexicon.FRACTIONS[part["teil"].casefold()]), start, part.end(), "%")
    if part and part["whole"]:
        unit, count = HALVES[part["whole"].casefold()]
        return Token(Kind.NUMBER, str(3 * count), start, part.end(), unit)
    if part:
        unit, count = HALVES[lexicon.UNITS[part["unit"].casefold()]]
        count //= 2 if (part["part"] or "").casefold() == "quarter" else 1
        return Token(Kind.NUMBER, str(count), start, part.end(), unit)
    before = text[max(0, start - 12) : start].casefold().split()
    if folded in _ARTICLES and before and before[-1] in lexicon.BEFORE_UNITS and _SINGLE.match(text, end):
        return Token(Kind.NUMBER, "1", start, end, whole=folded)
    return None
