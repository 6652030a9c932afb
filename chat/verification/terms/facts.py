"""Splits texts into tokens that can be compared: words, numbers, dates, negations.

There are word lists for English and German. Texts in other languages are compared by words, numbers and
capitalised names; in scripts without spaces, by pairs of characters.
"""

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import lru_cache

from chatsite.normal_form import normal_form
from chatsite.superscripts import without_note_marks

from . import lexicon
from .clock import clock_time
from .phrases import HALVES, PHRASE_WORDS, phrase
from .words import Kind, Token, number_value, stem

# Thai, Lao, Burmese and Khmer; kana and hangul; Chinese characters.
UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u31ff\u3400-\u9fff\uac00-\ud7af]")
# Digits in groups of three with ordinary spaces are one number only after a currency, or before one and after
# words and signs after which an amount is usual: “Room 12 300 euros” has two numbers.
_GROUPED = r"[1-9]\d{0,2}(?: \d{3}){1,4}(?:[.,]\d{1,2})?(?![ .,]?\d)"
_BEFORE_AMOUNTS = (
    "is", "are", "was", "were", "be", "of", "to", "at", "from", "for", "by", "a", "than", "over",
    "under", "about", "around", "nearly", "only", "least", "most", "exceed", "exceeds", "cost", "costs",
    "pay", "pays", "paid", "beträgt", "betragen", "betrug", "kostet", "kosten", "kostete", "zahlt",
    "zahlen", "von", "auf", "bis", "zu", "über", "unter", "um", "mit", "für", "als", "rund", "etwa",
    "circa", "nur", "mindestens", "höchstens", "maximal", "bei", "ab",
)  # fmt: skip
_BEFORE_AMOUNT = "|".join(
    (r"\A", r"(?<=[(*=])", "(?<=[:|=] )", *(rf"(?<=\b{word} )" for word in _BEFORE_AMOUNTS))
)
_CURRENCY = r"\s?(?:[€$£]|(?:EUR|CHF|USD|GBP|[Ee]uros?|dollars?|pounds?|francs?|Franken)\b)"
# “m” means million only beside a currency: “€14.2m”, “3.5M EUR”, but not “50m £5”.
_MILLIONS = (
    r"(?<![\w.,])(?:(?:(?<=[€$£])|(?<=[€$£]\s)|(?<=\b(?:EUR|USD|GBP|CHF)\s))\d{1,6}(?:[.,]\d{1,3})?[mM]\b"
    rf"|\d{{1,6}}(?:[.,]\d{{1,3}})?[mM](?={_CURRENCY}(?!\s?\d)))"
)
_TOKEN = re.compile(
    # Words that begin with a Latin letter: a special case of the last alternative, tried first because
    # most tokens are such words.
    r"(?P<plain>[A-Za-zÀ-ÖØ-öø-ÿ][^\W_\u3040-\u31ff\u3400-\u9fff]*(?:[-'’.@/&_][^\W_\u3040-\u31ff\u3400-\u9fff]+)*)"
    r"|(?P<option>(?<![\w.-])(?:--[A-Za-z][\w-]*|\.[A-Za-z]\w*))"
    rf"|(?P<millions>{_MILLIONS})"
    r"|(?P<iso>\b\d{4}-\d{2}-\d{2}\b)"
    r"|(?P<dotted>(?<![$€£])\b(?:0?[1-9]|[12]\d|3[01])\.(?:0?[1-9]|1[0-2])\.(?:\d{4}|\d{2})?(?!\d))"
    r"|(?P<time>\b\d{1,2}(?::\d{2}(?!\d)(?:[ \u00a0]?(?:[aApP]\.?[mM]\b\.?|Uhr\b))?"
    r"|(?:\.\d{2})?[ \u00a0]?(?:[aApP]\.?[mM]\b\.?|Uhr\b|[oO]['’]clock\b)))"
    rf"|(?P<number>(?<![\w.,])(?:(?<=\b(?:EUR|CHF|USD|GBP) ){_GROUPED}"
    rf"|(?=[1-9]\d{{0,2}} \d)(?:{_BEFORE_AMOUNT}){_GROUPED}(?={_CURRENCY})"
    r"|\d++(?:[.,'’\u00a0\u202f\u2009]\d++)*+))(?P<ordinal>st|nd|rd|th)?(?![^\W\d_\u3040-\ud7af])"
    r"|(?P<unspaced>[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u31ff\u3400-\u9fff\uac00-\ud7af]+)"
    r"|(?P<sign>[%‰€$£¥°])"
    r"|(?P<word>[^\W_\u3040-\u31ff\u3400-\u9fff]+(?:[-'’.@/&][^\W_\u3040-\u31ff\u3400-\u9fff]+)*)"
)


_MORE = dict.fromkeys(("more", "longer", "exceed", "exceeds", "exceeding", "mehr", "länger"), "most")
_MORE |= dict.fromkeys(("less", "fewer", "shorter", "weniger", "kürzer"), "least")
_CONDITION = re.compile(
    r"\b(?:if|when|where|once|until|unless|who|wenn|falls|sobald|bis)\b|[,;:]", re.IGNORECASE
)
_IF = re.compile(r"\b(?:if|when|where|wenn|falls|sofern|soweit)\b", re.IGNORECASE)
MAX_CONDITION = 80  # characters between “if” and a negation
BEYOND_VERBS = ("überschreiten", "überschritten", "übersteigen", "überstiegen")
_LATER = ("later", "earlier", "später", "früher")
_LETTERS = re.compile(r"[^\W\d_]+")
_TIMES = re.compile(r"(\d{1,6}(?:[.,]\d{1,3})?)(k|x|mio|mn|bn|mrd)")
_FACTORS = {"k": 1_000, "x": 1} | dict.fromkeys(("m", "mio", "mn"), 1_000_000)
_FACTORS |= dict.fromkeys(("bn", "mrd"), 1_000_000_000)
_JOINED = re.compile(r"(\d{1,9}(?:[.,]\d{1,3})?)([a-z]{1,3})")  # 2GB
_HALF_UNIT = re.compile(r"half-(hour|day|year)s?(?:ly)?|(hour|day|week|month|year)-long")
_MONTH_YEAR = re.compile(r"([a-zäöü]{3,9})-(\d{4})")
_FISCAL_YEAR = re.compile(r"fy-?(\d\d|\d{4})")
# Six or more words in capitals in a row, which are not names.
_CAPITALS = re.compile(r"\b[A-Z]++\b(?:[ \n]++[A-Z]++\b){5,}+")
_FRESH = re.compile(r"[.!?:>|•\n]")
_INSIDE = re.compile(r"\s?|\s(?:of|for|and|the|de|für|und)(?:\sthe)?\s", re.IGNORECASE)
_REFERENCE = re.compile(
    r"(?:§|\b(?:Abs\.|Absatz|Absatzes|Absätze|Absätzen|Satz|Sätze|Satzes|Nr\.|Nummer|Artikel|Art\.|Ziffer"
    r"|[Ss]ections?|[Pp]aragraphs?|[Cc]lauses?))\s{0,2}$"
)
MAX_REFERENCE = 14  # characters before a number that are searched for a word such as “section”
_LISTING = re.compile(r"\s?(?:[,–-]|bis|und|oder|to|and|or)\s?")  # text between the numbers of two sections
MAX_INITIALS = 5  # words of a name that may be abbreviated
MAX_KNOWN = 40  # letters of the longest words whose tokens are cached
_BREAK = re.compile(r"[,;:()–—]")
_CONJUNCTION = re.compile(r"\b(?:and|or|but|while|whereas|und|oder|aber|während|sondern)\b", re.IGNORECASE)
# “sechsmonatig”, “dreiwöchige”: a number with its unit.
_LASTING = re.compile(r"(\w{3,8}?)(tägig|wöchig|monatig|jährig|stündig|minütig)(?:e[mnrs]?)?")
_GERMAN_COMPOUND = re.compile(r"(ein|zwei|drei|vier|fünf|sechs|sieben|acht|neun)und(\w{4,8}zig|dreißig)")


def tokens(text: str, offset: int = 0) -> list[Token]:
    """The tokens of `text` in order, each number with its unit.

    `offset` is added to all positions.
    """
    text = _CAPITALS.sub(lambda match: match[0].lower(), without_note_marks(text))
    found = _with_bounds(_multiplied(list(_tokens(text)), text), text)
    end = found[0].start if found else 0
    for place, token in enumerate(found):
        kind, value, start, stop, unit, opens, whole = token
        if start - end > 1 and _BREAK.search(text, end, start):
            opens = True
        if kind is Kind.NUMBER:
            unit = unit or _unit(found, place, text, end)
        elif kind is Kind.NEGATION:
            before = text[max(0, start - MAX_CONDITION) : start]
            if _IF.search(before, max(before.rfind(mark) for mark in ",;.:") + 1):
                unit = "if"
        end = stop
        if offset or opens or unit:
            found[place] = Token(kind, value, start + offset, stop + offset, unit, opens, whole)
    return found


def _multiplied(found: list[Token], text: str) -> list[Token]:
    """Join numbers such as “two dozen” and “3 million” into one."""
    kept: list[Token] = []
    for token in found:
        before = kept[-1] if kept else None
        if (
            before
            and token.kind is before.kind is Kind.NUMBER
            and text[before.end : token.start] in (" ", "\u00a0", "\u202f")
            and text[token.start : token.end].casefold() in lexicon.MULTIPLIERS
        ):
            is_plain = before.value.replace(".", "", 1).isdigit()
            product = f"{float(before.value) * int(token.value):.0f}" if is_plain else ""
            if product.isdigit():
                kept[-1] = before._replace(value=product, end=token.end)
                continue
        kept.append(token)
    return kept


def _with_bounds(found: list[Token], text: str) -> list[Token]:
    """Adjust words that limit a number, such as “more”, where their context changes their meaning.

    In “nobody may take more than two weeks”, “more” becomes “most”, and the negation is removed. “No later”
    is “most” (see phrases.py), but in “no later than one hour before” it becomes “least”, because the text
    means at least an hour before.
    """
    if not any(token.kind in (Kind.POLAR, Kind.NEGATION) for token in found):
        return found
    taken: set[int] = set()  # positions of tokens that are removed
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
            and found[place + 1].whole in BEYOND_VERBS
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


def _unit(found: Sequence[Token], place: int, text: str, end: int) -> str:
    """The unit of a number: a sign or word next to it, or one word further, as in “five working days”.

    Numbers of sections have the unit “§”, those of dates “date”. `end` is the end of the previous token in
    `text`.
    """
    before = found[place - 1] if place else None
    start = found[place].start
    if _REFERENCE.search(text, max(0, start - MAX_REFERENCE), start):
        return "§"
    if before and before.unit == "§" and _LISTING.fullmatch(text, end, start):
        return "§"  # “§§ 23 bis 25”
    if _is_month(before) or (place + 1 < len(found) and _is_month(found[place + 1])):
        return "date"
    if before and before.kind is Kind.WORD and before.unit in ("€", "$", "£") and start - end <= 1:
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
    fresh = True  # whether a sentence begins here; its first word is capitalised even if it is no name
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
            verb = phrase(text, word, start, end) if begins_phrase else None
            if verb:
                yield verb
                end = verb.end
            else:
                for token_kind, value, first, last, unit, opens, whole in found:
                    yield Token(token_kind, value, start + first, start + last, unit, opens, whole)
        else:
            yield from _number(text, match)
        fresh = False


def _number(text: str, match: re.Match[str]) -> Iterator[Token]:
    """The tokens of a number, date, time, sign or option, or of a script without spaces."""
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
    elif kind == "millions":
        yield Token(Kind.NUMBER, _product(match[0][:-1], "m"), start, end)
    elif kind == "option":  # “--keep”, “.zip”
        yield Token(Kind.NAME, match[0].casefold(), start, end)
    elif kind == "time":
        yield clock_time(match[0], start, end)
    elif kind == "unspaced":
        run = match[0]
        for place in range(max(1, len(run) - 1)):
            yield Token(Kind.WORD, run[place : place + 2], start + place, min(end, start + place + 2))
    elif kind == "sign":
        yield Token(Kind.WORD, match[0], start, end, lexicon.UNITS.get(match[0], ""))


@lru_cache(50_000)
def _known(word: str, fresh: bool) -> tuple[bool, tuple[Token, ...]]:
    """Whether a phrase may begin with a word, and the tokens of the word by itself, from position 0."""
    return word.casefold() in PHRASE_WORDS or len(word) == 1, tuple(_word(word, fresh=fresh))


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
    elif folded in lexicon.POLES and word != "Rose":  # a name
        yield Token(Kind.POLAR, folded, start, end, whole=folded)
    elif folded in lexicon.UNITS and not (folded == "people" and capital and not fresh):  # the People Team
        unit = lexicon.UNITS[folded]
        yield Token(Kind.WORD, stem(folded if unit == "person" else unit), start, end, unit, whole=folded)
    elif (lasting := _LASTING.fullmatch(folded)) and lasting[1] in lexicon.ONES:
        unit = lexicon.UNITS[lasting[2]]
        yield Token(Kind.NUMBER, str(lexicon.ONES[lasting[1]]), start, end)
        yield Token(Kind.WORD, stem(unit), start, end, unit, whole=lasting[2])
    elif len(word) == 1 and capital and not fresh and word != "I":
        yield Token(Kind.NAME, f"letter {folded}", start, end)  # Class B
    elif "/" in word:
        begin = start
        for alternative in word.split("/"):  # TCP/UDP
            for token in _word(alternative, fresh=fresh) if alternative else ():
                yield token._replace(start=token.start + begin, end=token.end + begin)
            begin += len(alternative) + 1
    elif folded not in lexicon.STOP_WORDS or word in lexicon.ACRONYMS:
        yield from _content_word(word, folded, start, is_name=capital and not fresh)


def _content_word(word: str, folded: str, start: int, *, is_name: bool) -> Iterator[Token]:
    end = start + len(word)
    if half := _HALF_UNIT.fullmatch(folded):
        unit, count = HALVES[half[1]] if half[1] else (half[2], 1)
        yield Token(Kind.NUMBER, str(count), start, end, unit)
    elif year := _FISCAL_YEAR.fullmatch(folded):
        yield Token(Kind.NUMBER, year[1] if len(year[1]) == 4 else f"20{year[1]}", start, end)
    elif times := _TIMES.fullmatch(folded):
        yield Token(Kind.NUMBER, _product(times[1], times[2]), start, end)  # 100k, 10x, 2.5bn
    elif (joined := _JOINED.fullmatch(folded)) and joined[2] in lexicon.UNITS:
        yield Token(Kind.NUMBER, number_value(joined[1]), start, start + len(joined[1]))
        unit = lexicon.UNITS[joined[2]]
        yield Token(Kind.WORD, stem(unit), start + len(joined[1]), end, unit, whole=joined[2])
    elif (dated := _MONTH_YEAR.fullmatch(folded)) and dated[1] in lexicon.MONTHS:  # 10-Nov-2026
        yield Token(Kind.NAME, f"month{lexicon.MONTHS[dated[1]]}", start, start + len(dated[1]))
        yield Token(Kind.NUMBER, dated[2], end - len(dated[2]), end)
    elif "_" in word or any(character.isdigit() for character in word):
        yield Token(Kind.NAME, folded, start, end)
    elif len(word) > 1 and word.isupper():
        yield Token(Kind.NAME, folded.replace(".", ""), start, end)  # U.S. is US
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


def _product(number: str, factor: str) -> str:
    """The value of a number with an abbreviated factor: 2500000000 for “2.5” and “bn”."""
    product = Decimal(number_value(number)) * _FACTORS[factor]
    return number_value(f"{product.normalize():f}")


LISTED = frozenset(form for line in lexicon.SYNONYMS for form in line.split())
SYNONYMS: dict[str, list[str]] = {}
for _place, _line in enumerate(lexicon.SYNONYMS):
    for _form in dict.fromkeys(map(stem, _line.split())):
        SYNONYMS.setdefault(_form, []).append(f"synonyms {_place}")
# Words with opposites (POLES) are not stemmed.
REFUSALS = frozenset(map(stem, lexicon.REFUSALS)) | (lexicon.REFUSALS & lexicon.POLES.keys())


def _number_of(word: str) -> float | None:
    """The value of a number in words: seven, twenty-seven, siebenundzwanzig."""
    if word in lexicon.NUMBERS:
        return lexicon.NUMBERS[word]
    if word.endswith("einhalb") and (whole := word.removesuffix("einhalb")) in lexicon.ONES:
        return lexicon.ONES[whole] + 0.5
    tens, dash, ones = word.partition("-")
    if dash and tens in lexicon.TENS and ones in lexicon.ONES:
        return lexicon.TENS[tens] + lexicon.ONES[ones]
    match = _GERMAN_COMPOUND.fullmatch(word)
    if match and match[2] in lexicon.TENS:
        return lexicon.TENS[match[2]] + lexicon.ONES[match[1]]
    return None


def parts_of(found: Sequence[Token], text: str) -> list[list[Token]]:
    """The tokens, split into parts at commas and other punctuation, and at conjunctions."""
    parts: list[list[Token]] = [[]]
    end = found[0].start if found else 0
    for token in found:
        if token.start - end > 1 and (token.opens or _CONJUNCTION.search(text, end, token.start)):
            parts.append([])
        parts[-1].append(token)
        end = token.end
    return [part for part in parts if part]


def abbreviations(names: Sequence[Token], text: str) -> dict[str, frozenset[str]]:
    """The words of each multi-word name, by the initials of the name."""
    found: dict[str, frozenset[str]] = {}
    for place, token in enumerate(names):
        initials, parts, end = "", set(), token.start
        for other in names[place : place + MAX_INITIALS]:
            if not (other.kind is Kind.NAME and other.whole and _INSIDE.fullmatch(text, end, other.start)):
                break
            initials += other.whole[0]
            parts.add(other.value)
            end = other.end
            if len(initials) > 1:
                found[initials] = frozenset(parts)
    return found


def language_of(text: str) -> str:
    """“german” or “english”, whichever has more function words in the text; empty if equal."""
    found = _LETTERS.findall(text[:2_000].casefold())
    german, english = (sum(word in words for word in found) for words in (lexicon.GERMAN, lexicon.ENGLISH))
    return "german" if german > english else "english" if english > german else ""


def is_german(text: str) -> bool:
    """Whether the text is German, in which capitals do not indicate names, because all nouns have them."""
    return language_of(text) == "german"
