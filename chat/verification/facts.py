"""What a sentence states that can be compared: words, numbers with their units, dates, names, negations.

English and German have lists of their own; other languages go by their words, numbers and capitals, scripts
that do not space words by pairs of characters.
"""

import re
from collections.abc import Iterator, Sequence
from enum import Enum
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from chatsite.normal_form import normal_form

from . import lexicon

MAX_STEM = 7
# Thai, Lao, Burmese and Khmer; kana and hangul; Chinese characters.
UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u31ff\u3400-\u9fff\uac00-\ud7af]")
_TOKEN = re.compile(
    # The last alternative, of words that begin with a letter of Europe: most tokens, so it is tried first.
    r"(?P<plain>[A-Za-zÀ-ÖØ-öø-ÿ][^\W_\u3040-\u31ff\u3400-\u9fff]*(?:[-'’.@/&][^\W_\u3040-\u31ff\u3400-\u9fff]+)*)"
    r"|(?P<iso>\b\d{4}-\d{2}-\d{2}\b)"
    r"|(?P<dotted>\b\d{1,2}\.\d{1,2}\.(?:\d{4}|\d{2})?(?!\d))"
    r"|(?P<time>\b\d{1,2}:\d{2}(?!\d))"
    r"|(?P<number>(?<![\w.,])\d++(?:[.,'’\u00a0\u202f]\d++)*+)(?P<ordinal>st|nd|rd|th)?(?![^\W\d_\u3040-\ud7af])"
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


class Token(NamedTuple):
    """One word or number at start:end; `value` is its normal form, `unit` what a number counts."""

    kind: Kind
    value: str
    start: int
    end: int
    unit: str = ""
    opens: bool = False  # whether a comma or another mark stands before it
    whole: str = ""  # a word in full, in lower case: `value` is its stem


# Units in a smaller one, so that two weeks are 14 days.
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
    """A time that passes, in seconds or months; None for another number."""
    if number.unit not in MEASURES or number.kind is not Kind.NUMBER:
        return None
    base, size = MEASURES[number.unit]
    try:
        return base, float(number.value) * size
    except ValueError:  # a time of day
        return None


# “no more than three” is “at most three”, and denies nothing.
_COMPARISON = re.compile(
    r"\s+(?:(?P<most>more|later|longer|higher|mehr|später|länger|höher)|(?:less|fewer|earlier|lower|weniger|früher))"
    r"\s+(?:than|als)\b",
    re.IGNORECASE,
)
_NUMBER_SEPARATOR = re.compile(r"['’\u00a0\u202f]")
_MORE = dict.fromkeys(("more", "longer", "exceed", "exceeds", "exceeding", "mehr", "länger"), "most")
_MORE |= dict.fromkeys(("less", "fewer", "shorter", "weniger", "kürzer"), "least")
_CONDITION = re.compile(
    r"\b(?:if|when|where|once|until|unless|who|wenn|falls|sobald|bis)\b|[,;:]", re.IGNORECASE
)
_IF = re.compile(r"\b(?:if|when|where|wenn|falls|sofern|soweit)\b", re.IGNORECASE)
MAX_CONDITION = 80  # characters between “if” and a negation
_BEYOND_VERBS = ("überschreiten", "überschritten", "übersteigen", "überstiegen")
_LATER = ("later", "earlier", "später", "früher")
_VOWELS = re.compile("[aeiouäöüh]")
_DOUBLED = re.compile(r"(.)\1+")
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
# “within a week”: one of a unit that is counted.
_SINGLE = re.compile(
    r"\s{1,20}(?:second|minute|hour|day|week|fortnight|month|year|sekunde|minute|stunde"
    r"|tage?s?|woche|monats?|jahre?s?)\b",
    re.IGNORECASE,
)
_LETTERS = re.compile(r"[^\W\d_]+")
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
_PHRASE_WORDS = (
    frozenset(lexicon.PHRASES)
    | lexicon.DENIALS
    | _FRACTION_WORDS
    | {"es", "left", "leave", "leaves", "leaving", "rule", "rules", "ruled", "ruling"}
)
_OBJECTS = frozenset(("it", "them", "this", "that", "these", "those"))
_THOUSANDS = re.compile(r"(\d{1,6})k")
_SHARE = re.compile(
    r"\s{1,20}(third|quarter|fifth|tenth)\s{1,20}(?:over|under|above|below|more|less|higher|lower|to|for)\b",
    re.IGNORECASE,
)
_HALF_UNIT = re.compile(r"half-(hour|day|year)s?(?:ly)?")
_FISCAL_YEAR = re.compile(r"fy-?(\d\d|\d{4})")
_HALVES = {"hour": ("minute", 30), "year": ("month", 6), "day": ("hour", 12)}
# A text in capitals, whose words are no names.
_CAPITALS = re.compile(r"\b[A-Z]++\b(?:[ \n]++[A-Z]++\b){5,}+")
_SOLID = re.compile(r"\w+")
MAX_PHRASE = 24  # characters that follow the first word of a verb of several words
MAX_STRONG = 6  # letters of the stem of a strong verb
_FRESH = re.compile(r"[.!?:>|•\n]")
MAX_KNOWN = 40  # letters of a word that is remembered
_BREAK = re.compile(r"[,;:()–—]")
_RANGE = re.compile(r"\s+(?:to|or|and)\s+(?:two|three|four|five|\d)", re.IGNORECASE)
_LEFT_OUT = re.compile(r"(?:left|leav(?:es?|ing)|rul(?:es?|ed|ing))\s+out\b", re.IGNORECASE)
# “aushändigen”, “auszuhändigen” and “ausgehändigt” are forms of one verb.
_INFIX = re.compile(
    r"(ab|an|auf|aus|bei|dar|durch|ein|fest|her|hin|mit|nach|statt|teil|um|vor|weg|weiter|zu|zurück|zusammen)"
    r"(?:zu|ge)(\w{4,})"
)
# “sechsmonatig”, “dreiwöchige”: a number with its unit.
_LASTING = re.compile(r"(\w{3,8}?)(tägig|wöchig|monatig|jährig|stündig|minütig)(?:e[mnrs]?)?")
_LASTING_UNITS = {
    "tägig": "tage",
    "wöchig": "wochen",
    "monatig": "monate",
    "jährig": "jahre",
    "stündig": "stunden",
    "minütig": "minuten",
}
_GERMAN_COMPOUND = re.compile(r"(ein|zwei|drei|vier|fünf|sechs|sieben|acht|neun)und(\w{4,8}zig|dreißig)")


@lru_cache(20_000)
def stem(word: str) -> str:
    """A rough stem for any language: enough to tell which words are forms of the same."""
    infix = _INFIX.fullmatch(word)
    if infix:
        word = infix[1] + infix[2]
    for ending in lexicon.ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    if word.endswith("t") and len(word) > 3:
        word = word[:-1]  # “connect” loses it as an ending, so “connected” does as well
    return f"{word[:-1]}i" if word.endswith("y") and len(word) > 3 else word[:MAX_STEM]


def skeletons(word: str) -> list[str]:
    """The consonants of a word, which strong verbs keep in all their forms: with and without “ge”."""
    value = stem(word)
    found = []
    for form in (value, value.removeprefix("ge")):
        bare = _DOUBLED.sub(r"\1", _VOWELS.sub("", form))
        if len(bare) >= 3 and len(form) <= MAX_STRONG:
            found.append(f"skeleton {form[:1]}{bare}" if form[0] in "aeiouäöü" else f"skeleton {bare}")
    return found


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


def tokens(text: str, offset: int = 0) -> list[Token]:
    """All that counts in `text`, in order; each number with its unit. Places are moved by `offset`."""
    text = _CAPITALS.sub(lambda match: match[0].lower(), text)
    found = _with_bounds(_multiplied(list(_tokens(text)), text), text)
    end = found[0].start if found else 0
    for place, token in enumerate(found):
        kind, value, start, stop, unit, opens, whole = token
        if start - end > 1 and _BREAK.search(text, end, start):
            opens = True
        if kind is Kind.NUMBER:
            unit = unit or _unit(found, place)
        elif kind is Kind.NEGATION:
            before = text[max(0, start - MAX_CONDITION) : start]
            if _IF.search(before, max(before.rfind(mark) for mark in ",;.:") + 1):
                unit = "if"
        end = stop
        if offset or opens or unit:
            found[place] = Token(kind, value, start + offset, stop + offset, unit, opens, whole)
    return found


def _multiplied(found: list[Token], text: str) -> list[Token]:
    """“Two dozen” and “3 million” as one number."""
    kept: list[Token] = []
    for token in found:
        before = kept[-1] if kept else None
        if (
            before
            and token.kind is before.kind is Kind.NUMBER
            and text[before.end : token.start] == " "
            and text[token.start : token.end].casefold() in lexicon.MULTIPLIERS
        ):
            product = f"{float(before.value) * int(token.value):g}" if before.value.isdigit() else ""
            if product.isdigit():
                kept[-1] = before._replace(value=product, end=token.end)
                continue
        kept.append(token)
    return kept


def _with_bounds(found: list[Token], text: str) -> list[Token]:
    """Bounds of numbers as they are meant.

    Of “nobody may take more than two weeks” the “more” is “most”: the negation denies nothing else. Of “no
    later than one hour before” the “most” is “least”: it is at least an hour before.
    """
    taken: set[int] = set()  # negations
    for place, token in enumerate(found):
        if token.kind is not Kind.POLAR or token.value not in _MORE:
            continue
        followed = any(each.kind is Kind.NUMBER for each in found[place + 1 : place + 3])
        before = [
            at
            for at in range(max(0, place - 4), place)
            if found[at].kind is Kind.NEGATION and at not in taken
        ]
        if followed and before and not _CONDITION.search(text, found[before[-1]].end, token.start):
            found[place] = token._replace(value=_MORE[token.value])
            taken.add(before[-1])
    for place, token in enumerate(found[:-1]):
        # “darf acht Stunden nicht überschreiten”
        if (
            token.kind is Kind.NEGATION
            and found[place + 1].whole in _BEYOND_VERBS
            and any(each.kind is Kind.NUMBER for each in found[max(0, place - 4) : place])
        ):
            found[place] = token._replace(kind=Kind.POLAR, value="höchstens")
            taken = (taken | {place + 1}) - {place}
    kept = [token for place, token in enumerate(found) if place not in taken]
    for place, token in enumerate(kept):
        if token.kind is not Kind.POLAR or token.value not in ("most", "least", "spätestens", "frühestens"):
            continue
        following = [each.value for each in kept[place + 1 : place + 5]]
        is_deadline = token.value.endswith("stens") or bool(following and following[0] in _LATER)
        if is_deadline and not {"before", "vor"}.isdisjoint(following):
            value = "least" if token.value in ("most", "spätestens") else "most"
            kept[place] = token._replace(value=value)
    return kept


def _unit(found: Sequence[Token], place: int) -> str:
    """The unit of a number: the sign or word next to it, or the next but one (“five working days”)."""
    before = found[place - 1] if place else None
    if _is_month(before) or (place + 1 < len(found) and _is_month(found[place + 1])):
        return "date"
    if before and before.kind is Kind.WORD and before.unit in ("€", "$", "£"):
        return before.unit
    for token in found[place + 1 : place + 3]:
        if token.kind is Kind.NUMBER:
            break
        if token.unit:
            return token.unit
    return ""


def _is_month(token: Token | None) -> bool:
    return token is not None and token.kind is Kind.NAME and token.value.startswith("month")


def _tokens(text: str) -> Iterator[Token]:
    fresh = True  # whether a sentence begins here: a capital says nothing there
    end = 0
    for match in _TOKEN.finditer(text):
        start = match.start()
        if start < end:
            continue  # part of a phrase
        if not fresh and text[end:start] != " ":
            fresh = bool(_FRESH.search(text, end, start))
        end = match.end()
        kind = match.lastgroup
        if kind in ("plain", "word"):
            word = match[0]
            known = _known if len(word) <= MAX_KNOWN else _known.__wrapped__
            begins_phrase, found = known(word, fresh)
            phrase = _phrase(text, word, start, end) if begins_phrase else None
            if phrase:
                yield phrase
                end = phrase.end
            else:
                for token_kind, value, first, last, unit, opens, whole in found:
                    yield Token(token_kind, value, start + first, start + last, unit, opens, whole)
        else:
            yield from _number(text, match)
        fresh = False


def _number(text: str, match: re.Match[str]) -> Iterator[Token]:
    """A number, a date, a time, a sign, or characters of a script without spaces."""
    kind, start, end = match.lastgroup, match.start(), match.end()
    if match["number"]:
        yield Token(Kind.NUMBER, number_value(match["number"]), start, match.end("number"))
        if text[end : end + 1] == "+":
            yield Token(Kind.POLAR, "more", end, end + 1)
    elif kind in ("iso", "dotted"):
        day, month, year = match[0].split("-")[::-1] if kind == "iso" else match[0].split(".")
        yield Token(Kind.NUMBER, str(int(day)), start, end, "date")
        yield Token(Kind.NAME, f"month{int(month)}", start, end)
        if year:
            yield Token(Kind.NUMBER, year if len(year) == 4 else f"20{year}", start, end)
    elif kind == "time":
        hours, minutes = match[0].split(":")
        yield Token(Kind.NUMBER, f"{int(hours)}:{minutes}", start, end, "time")
    elif kind == "unspaced":
        run = match[0]
        for place in range(max(1, len(run) - 1)):
            yield Token(Kind.WORD, run[place : place + 2], start + place, min(end, start + place + 2))
    elif kind == "sign":
        yield Token(Kind.WORD, match[0], start, end, lexicon.UNITS.get(match[0], ""))


@lru_cache(50_000)
def _known(word: str, fresh: bool) -> tuple[bool, tuple[Token, ...]]:
    """Whether a phrase may begin with a word, and what it is alone, at the place 0."""
    return word.casefold() in _PHRASE_WORDS or len(word) == 1, tuple(_word(word, fresh=fresh))


def _phrase(text: str, word: str, start: int, end: int) -> Token | None:
    """A word that means something else before certain others."""
    folded = word.casefold()
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
    """A verb of several words as the one that says the same: “call off” as “cancel”."""
    following = list(islice(_SOLID.finditer(text, end, end + MAX_PHRASE), 3))
    words = [match[0].casefold() for match in following]
    for rest, meaning in lexicon.PHRASES[first]:
        if len(words) > len(rest) and words[0] in _OBJECTS:
            del words[0], following[0]  # “pay it back”
        if tuple(words[: len(rest)]) == rest:
            return Token(Kind.WORD, stem(meaning), start, following[len(rest) - 1].end(), whole=meaning)
    return None


def _fraction(text: str, folded: str, start: int, end: int) -> Token | None:
    """Half an hour as 30 minutes, a fifth of something as 20 per cent, “within a week” as within one."""
    if folded == "viertelstunde":
        return Token(Kind.NUMBER, "15", start, end, "minute")
    part = _PART.match(text, start)
    if part is None and folded in ("a", "one") and (bare := _SHARE.match(text, end)):
        # “A fifth over the budget”: the share, without a noun that it would count.
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
        unit, count = _HALVES[part["whole"].casefold()]
        return Token(Kind.NUMBER, str(3 * count), start, part.end(), unit)
    if part:
        unit, count = _HALVES[lexicon.UNITS[part["unit"].casefold()]]
        count //= 2 if (part["part"] or "").casefold() == "quarter" else 1
        return Token(Kind.NUMBER, str(count), start, part.end(), unit)
    before = text[max(0, start - 12) : start].casefold().split()
    if folded in _ARTICLES and before and before[-1] in lexicon.BEFORE_UNITS and _SINGLE.match(text, end):
        return Token(Kind.NUMBER, "1", start, end, whole=folded)
    return None


def _word(word: str, *, fresh: bool) -> Iterator[Token]:
    start, end = 0, len(word)
    folded = normal_form("NFKC", word).casefold().replace("’", "'")
    folded = folded.removesuffix("'s").removesuffix("'")
    capital = word[0].isupper()
    if folded in lexicon.NEGATIONS or folded.endswith("n't"):
        yield Token(Kind.NEGATION, "not", start, end, "without" if folded in ("without", "ohne") else "")
    elif capital and folded in lexicon.MONTHS and not (fresh and folded in ("may", "mar", "sep", "dec")):
        yield Token(Kind.NAME, f"month{lexicon.MONTHS[folded]}", start, end)
    elif (number := _number_of(folded)) is not None:
        yield Token(Kind.NUMBER, str(number), start, end)
    elif folded in lexicon.POLES:
        yield Token(Kind.POLAR, folded, start, end, whole=folded)
    elif folded in lexicon.UNITS and not (folded == "people" and capital and not fresh):  # the People Team
        unit = lexicon.UNITS[folded]
        yield Token(Kind.WORD, stem(folded if unit == "person" else unit), start, end, unit, whole=folded)
    elif (lasting := _LASTING.fullmatch(folded)) and lasting[1] in lexicon.ONES:
        unit = _LASTING_UNITS[lasting[2]]
        yield Token(Kind.NUMBER, str(lexicon.ONES[lasting[1]]), start, end)
        yield Token(Kind.WORD, stem(lexicon.UNITS[unit]), start, end, lexicon.UNITS[unit], whole=unit)
    elif len(word) == 1 and capital and not fresh and word != "I":
        yield Token(Kind.NAME, f"letter {folded}", start, end)  # Class B
    elif folded not in lexicon.STOP_WORDS:
        yield from _content_word(word, folded, start, is_name=capital and not fresh)


def _content_word(word: str, folded: str, start: int, *, is_name: bool) -> Iterator[Token]:
    end = start + len(word)
    if half := _HALF_UNIT.fullmatch(folded):
        unit, count = _HALVES[half[1]]
        yield Token(Kind.NUMBER, str(count), start, end, unit)
    elif year := _FISCAL_YEAR.fullmatch(folded):
        yield Token(Kind.NUMBER, year[1] if len(year[1]) == 4 else f"20{year[1]}", start, end)
    elif thousands := _THOUSANDS.fullmatch(folded):
        yield Token(Kind.NUMBER, number_value(thousands[1] + "000"), start, end)  # 100k
    elif any(character.isdigit() for character in word) or (len(word) > 1 and word.isupper()):
        yield Token(Kind.NAME, folded, start, end)
    elif "-" in folded and not is_name:
        for part in folded.split("-"):
            if part in lexicon.ONES or part in lexicon.TENS:
                number = lexicon.TENS.get(part) or lexicon.ONES.get(part, 0)
                yield Token(Kind.NUMBER, str(number), start, end)  # a six-month trial
            elif len(part) > 1 and part not in lexicon.STOP_WORDS:
                unit = lexicon.UNITS.get(part, "")
                yield Token(Kind.WORD, stem(unit or part), start, end, unit, whole=part)
    elif len(folded) > 1:
        yield Token(Kind.NAME if is_name else Kind.WORD, stem(folded), start, end, whole=folded)


LISTED = frozenset(form for line in lexicon.SYNONYMS for form in line.split())
SYNONYMS: dict[str, list[str]] = {}
for _place, _line in enumerate(lexicon.SYNONYMS):
    for _form in dict.fromkeys(map(stem, _line.split())):
        SYNONYMS.setdefault(_form, []).append(f"synonyms {_place}")
# Poles are not stemmed.
REFUSALS = frozenset(map(stem, lexicon.REFUSALS)) | (lexicon.REFUSALS & lexicon.POLES.keys())


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


def language_of(text: str) -> str:
    """“german” or “english” by the function words; empty if neither has more."""
    found = _LETTERS.findall(text[:2_000].casefold())
    german, english = (sum(word in words for word in found) for words in (lexicon.GERMAN, lexicon.ENGLISH))
    return "german" if german > english else "english" if english > german else ""


def is_german(text: str) -> bool:
    """Whether capitals say nothing about names, because every noun has one."""
    return language_of(text) == "german"
