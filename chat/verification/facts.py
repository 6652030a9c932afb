"""What a sentence states that can be compared: words, numbers with their units, dates, names, negations.

English and German have lists of their own; other languages go by their words, numbers and capitals, scripts
that do not space words by pairs of characters.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache

from . import lexicon

MAX_STEM = 7
# Thai, Lao, Burmese and Khmer; kana and hangul; Chinese characters.
UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u31ff\u3400-\u9fff\uac00-\ud7af]")
_TOKEN = re.compile(
    r"(?P<iso>\b\d{4}-\d{2}-\d{2}\b)"
    r"|(?P<dotted>\b\d{1,2}\.\d{1,2}\.(?:\d{4}|\d{2})?(?!\d))"
    r"|(?P<time>\b\d{1,2}:\d{2}(?!\d))"
    r"|(?P<number>(?<![\w.,])\d+(?:[.,'’\u00a0\u202f]\d+)*)(?P<ordinal>st|nd|rd|th)?(?![^\W\d_\u3040-\ud7af])"
    r"|(?P<unspaced>[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u31ff\u3400-\u9fff\uac00-\ud7af]+)"
    r"|(?P<sign>[%‰€$£¥°])"
    r"|(?P<word>[^\W_\u3040-\u31ff\u3400-\u9fff]+(?:[-'’.@/&][^\W_\u3040-\u31ff\u3400-\u9fff]+)*)"
)


class Kind(Enum):
    """What a token counts as; stop words and punctuation are no tokens."""

    WORD = "word"
    NUMBER = "number"
    NAME = "name"
    NEGATION = "negation"
    POLAR = "polar"


@dataclass(frozen=True, slots=True)
class Token:
    """One word or number at start:end; `value` is its normal form, `unit` what a number counts."""

    kind: Kind
    value: str
    start: int
    end: int
    unit: str = ""
    opens: bool = False  # whether a comma or another mark stands before it


# “no more than three” is “at most three”, and denies nothing.
_COMPARISON = re.compile(
    r"\s+(?:(?P<most>more|later|longer|higher|mehr|später|länger|höher)|(?:less|fewer|earlier|lower|weniger|früher))"
    r"\s+(?:than|als)\b",
    re.IGNORECASE,
)
_NUMBER_SEPARATOR = re.compile(r"['’\u00a0\u202f]")
_MORE = dict.fromkeys(("more", "longer", "exceed", "exceeds", "exceeding", "mehr", "länger"), "most")
_MORE |= dict.fromkeys(("less", "fewer", "shorter", "weniger", "kürzer"), "least")
_BREAK = re.compile(r"[,;:()–—]")
_GERMAN_COMPOUND = re.compile(r"(ein|zwei|drei|vier|fünf|sechs|sieben|acht|neun)und(\w{4,8}zig|dreißig)")


@lru_cache(20_000)
def stem(word: str) -> str:
    """A rough stem for any language: enough to tell which words are forms of the same."""
    for ending in lexicon.ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    return f"{word[:-1]}i" if word.endswith("y") and len(word) > 3 else word[:MAX_STEM]


def number_value(text: str) -> str:
    """A number in one spelling: 1,204 and 1.204 are the same, so are 2,5 and 2.50."""
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


def tokens(text: str) -> list[Token]:
    """All that counts in `text`, in order; each number with its unit."""
    found = _without_comparisons(list(_tokens(text)))
    for place, token in enumerate(found):
        opens = place > 0 and bool(_BREAK.search(text, found[place - 1].end, token.start))
        unit = token.unit or (_unit(found, place) if token.kind is Kind.NUMBER else "")
        if opens or unit:
            found[place] = replace(token, unit=unit, opens=opens)
    return found


def _without_comparisons(found: list[Token]) -> list[Token]:
    """Of “nobody may take more than two weeks” the “more” as “most”: the negation denies nothing else."""
    for place, token in enumerate(found):
        if token.kind is not Kind.POLAR or token.value not in _MORE:
            continue
        followed = any(each.kind is Kind.NUMBER for each in found[place + 1 : place + 3])
        before = [at for at in range(max(0, place - 4), place) if found[at].kind is Kind.NEGATION]
        if followed and before:
            found[place] = replace(token, value=_MORE[token.value])
            return _without_comparisons([*found[: before[-1]], *found[before[-1] + 1 :]])
    return found


def _unit(found: Sequence[Token], place: int) -> str:
    """The unit of a number: the sign or word next to it, or the next but one (“five working days”)."""
    before = found[place - 1] if place else None
    if before and before.kind is Kind.WORD and before.unit in ("€", "$", "£"):
        return before.unit
    for token in found[place + 1 : place + 3]:
        if token.kind is Kind.NUMBER:
            break
        if token.unit:
            return token.unit
    return ""


def _tokens(text: str) -> Iterator[Token]:
    fresh = True  # whether a sentence begins here: a capital says nothing there
    end = 0
    for match in _TOKEN.finditer(text):
        gap = text[end : match.start()]
        fresh = fresh or (any(mark in gap for mark in ".!?:>|•\n") and end > 0)
        end = match.end()
        kind, start = match.lastgroup, match.start()
        if match["number"]:
            yield Token(Kind.NUMBER, number_value(match["number"]), start, match.end("number"))
        elif kind == "iso":
            year, month, day = match[0].split("-")
            yield from _date(day, month, year, start, end)
        elif kind == "dotted":
            day, month, year = match[0].split(".")
            yield from _date(day, month, year, start, end)
        elif kind == "time":
            hours, minutes = match[0].split(":")
            yield Token(Kind.NUMBER, f"{int(hours)}:{minutes}", start, end, "time")
        elif kind == "unspaced":
            run = match[0]
            for place in range(max(1, len(run) - 1)):
                yield Token(Kind.WORD, run[place : place + 2], start + place, min(end, start + place + 2))
        elif kind == "sign":
            yield Token(Kind.WORD, match[0], start, end, lexicon.UNITS.get(match[0], ""))
        else:
            compared = _COMPARISON.match(text, end) if match[0].casefold() in lexicon.DENIALS else None
            if compared:
                yield Token(Kind.POLAR, "most" if compared["most"] else "least", start, end)
            else:
                yield from _word(match[0], start, fresh=fresh)
        fresh = False


def _date(day: str, month: str, year: str, start: int, end: int) -> Iterator[Token]:
    yield Token(Kind.NUMBER, str(int(day)), start, end, "date")
    yield Token(Kind.NAME, f"month{int(month)}", start, end)
    if year:
        yield Token(Kind.NUMBER, year if len(year) == 4 else f"20{year}", start, end)


def _word(word: str, start: int, *, fresh: bool) -> Iterator[Token]:
    end = start + len(word)
    folded = unicodedata.normalize("NFKC", word).casefold().replace("’", "'")
    folded = folded.removesuffix("'s").removesuffix("'")
    capital = word[0].isupper()
    if folded in lexicon.NEGATIONS or folded.endswith("n't"):
        yield Token(Kind.NEGATION, "not", start, end)
    elif capital and folded in lexicon.MONTHS and not (fresh and folded in ("may", "mar", "sep", "dec")):
        yield Token(Kind.NAME, f"month{lexicon.MONTHS[folded]}", start, end)
    elif (number := _number_of(folded)) is not None:
        yield Token(Kind.NUMBER, str(number), start, end)
    elif folded in lexicon.POLES:
        yield Token(Kind.POLAR, folded, start, end)
    elif folded in lexicon.UNITS:
        yield Token(Kind.WORD, stem(folded), start, end, lexicon.UNITS[folded])
    elif len(word) == 1 and capital and not fresh and word != "I":
        yield Token(Kind.NAME, f"letter {folded}", start, end)  # Class B
    elif folded not in lexicon.STOP_WORDS:
        is_code = any(character.isdigit() for character in word) or (len(word) > 1 and word.isupper())
        if is_code:
            yield Token(Kind.NAME, folded, start, end)
        elif "-" in folded and not (capital and not fresh):
            for part in folded.split("-"):
                if len(part) > 1 and part not in lexicon.STOP_WORDS:
                    yield Token(Kind.WORD, stem(part), start, end, lexicon.UNITS.get(part, ""))
        elif len(folded) > 1:
            yield Token(Kind.NAME if capital and not fresh else Kind.WORD, stem(folded), start, end)


REFUSALS = frozenset(map(stem, lexicon.REFUSALS))


def _number_of(word: str) -> int | None:
    """Seven, twenty-seven, siebenundzwanzig."""
    if word in lexicon.NUMBERS:
        return lexicon.NUMBERS[word]
    tens, dash, ones = word.partition("-")
    if dash and tens in lexicon.TENS and ones in lexicon.ONES:
        return lexicon.TENS[tens] + lexicon.ONES[ones]
    match = _GERMAN_COMPOUND.fullmatch(word)
    if match and match[2] in lexicon.TENS:
        return lexicon.TENS[match[2]] + lexicon.ONES[match[1]]
    return None


def is_german(text: str) -> bool:
    """Whether capitals say nothing about names, because every noun has one."""
    found = re.findall(r"[^\W\d_]+", text[:2_000].casefold())
    german = sum(word in lexicon.GERMAN for word in found)
    return german > sum(word in lexicon.ENGLISH for word in found)
