"""Questions for a telephone number, a form, a place or a person, and sentences about a case that a question
does not mention."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from .rough_stems import stems, weak_stems


@dataclass(frozen=True, slots=True)
class ExactKind:
    """A kind of thing: questions for it, texts that may have it, and the words that only ask for it.

    Texts with something `rare` have hardly anything else: those are preferred.
    """

    asks: re.Pattern[str]
    has: re.Pattern[str]
    asking: frozenset[str]
    rare: re.Pattern[str]


_PHONE = re.compile(
    r"\b(?:extension|ext|dial|call|ring|(?:tele)?phone|tel|number|on|durchwahl|telefon|nummer)\b"
    r"[^\d;]{0,30}\d{3}|\+\d{2}|\b0\d{2,5}[ /-]\d{3}",
    re.IGNORECASE,
)
_FORM = re.compile(r"\b(?:form|formular):? [A-Z\d]", re.IGNORECASE)
_ADDRESS = (
    r"\b[A-Z]{1,2}\d{1,2}[A-Z]? \d[A-Z]{2}\b|\b\d{5} [A-ZÄÖÜ][a-zäöüß]+"
    r"|\b\d{1,5}[a-z]? (?:The )?[A-Z]\w{1,30} (?:Street|Road|Lane|Avenue|Square|Way)\b"
    r"|\b(?:first|second|third|fourth|ground|top|\d{1,2}\w\w) floor\b|\b[Rr]oom \d|\b(?:location|address): "
)
_PLACE = (
    r"|\b(?:[Aa]t|[Ii]n|[Oo]n|[Nn]ear|[Oo]pposite|[Bb]ehind|[Nn]ext to|bei|im|am|neben)\b (?:the )?[A-ZÄÖÜ\d]"
    r"|\b(?:website|intranet|portal|app|folder|directory|drive|page)\b|(?<!\w)/\w"
)
_HAS_ADDRESS = re.compile(_ADDRESS)
_HAS_PLACE = re.compile(f"{_ADDRESS}{_PLACE}")
_FREE = (
    r"\b(?:free|(?:at no|without) (?:cost|charge)|no charge|own expense"
    r"|kostenlos|kostenfrei|gratis|unentgeltlich)\b"
)
_IS_FREE = re.compile(_FREE, re.IGNORECASE)
_HAS_PRICE = re.compile(
    rf"{_FREE}|\b(?:you|employees?|staff|passengers?|company) (?:must |have to |has to )?pays?\b"
    r"|\b(?:costs?|fees?|deducted|kostet|zahlen|zahlt)\b",
    re.IGNORECASE,
)

_EXACT_KINDS = (
    ExactKind(  # not what others pay: “An allowance of £8 is paid …”
        re.compile(
            r"\b(?:have to|must i|need to) pay for\b|\bmuss ich\b[^.?!]{0,80}\b(?:be)?zahlen\b",
            re.IGNORECASE,
        ),
        _HAS_PRICE,
        stems("pay bezahlen zahlen"),
        _IS_FREE,
    ),
    ExactKind(
        re.compile(
            r"\b(?:(?:tele)?phone number|extension|telefonnummer|rufnummer|durchwahl)\b"
            r"|\b(?:what|which)(?:'s| is)?(?: the)? (?:tele)?phone\b"
            r"|\b(?:what|which|welche[rn]?) num(?:ber|mer)\b[^.?!]{0,80}"
            r"\b(?:call|ring|dial|phone|reach|helps?|anrufen|erreiche)\b"
            r"|\b(?:call|ring|dial|phone|reach|helps?|anrufen|erreiche)\b[^.?!]{0,80}"
            r"\b(?:what|which|welche[rn]?) num(?:ber|mer)\b",
            re.IGNORECASE,
        ),
        _PHONE,
        stems(
            "telephone phone number extension call ring dial reach telefonnummer rufnummer durchwahl nummer"
        ),
        _PHONE,
    ),
    ExactKind(
        re.compile(r"\b(?:what|which) form\b(?! of\b)|\bwelche[ns]? formular\b", re.IGNORECASE),
        _FORM,
        stems("form formular"),
        _FORM,
    ),
    ExactKind(
        re.compile(r"\bwhere(?: is| are|'s|s)\b|\bwo (?:ist|sind|liegt|befindet)\b", re.IGNORECASE),
        _HAS_PLACE,
        frozenset(),
        _HAS_ADDRESS,
    ),
    ExactKind(
        re.compile(r"\bwho(?: is|'s|s) (?:the|our|my)\b|\bwer ist\b", re.IGNORECASE),
        re.compile(r"\b(?:is|are|was|ist|sind)\b|, (?:our|the|unser\w?|der|die) |[:;(]", re.IGNORECASE),
        frozenset(),
        re.compile(r"(?!)"),
    ),
)
_CONDITION = re.compile(
    r"(?:if|when|where|unless|after|before|from|in case|wenn|falls|sofern|nach|bei|ab)\b([^,;:]{3,120}),",
    re.IGNORECASE,
)
# The same without a comma: “After a stillbirth the full leave applies.”
_AFTER = re.compile(
    r"(?:after|before|in case of|following) an? ([^,;:]{3,80}?) (?:the|you|we)\b", re.IGNORECASE
)
_IN_MONTH = re.compile(
    r"(?:in|during|im) (january|february|march|april|may|june|july|august|september|october|november|december"
    r"|januar|februar|märz|mai|juni|juli|oktober|dezember)\b",
    re.IGNORECASE,
)


def exact_kind(question: str) -> ExactKind | None:
    """The kind of thing that the question asks for; None for other questions."""
    return next((kind for kind in _EXACT_KINDS if kind.asks.search(question)), None)


def unasked_condition(
    text: str, wanted: Mapping[str, frozenset[str]], headings: frozenset[str] = frozenset()
) -> float:
    """The share of the words of a condition at the beginning of `text` that neither the question nor the
    headings have.

    `wanted` has the stems of the question, each with those of other words for it.
    """
    condition = _CONDITION.match(text) or _AFTER.match(text) or _IN_MONTH.match(text)
    words = stems(condition[1]) - weak_stems() if condition else frozenset()
    if not words:
        return 0.0
    asked = wanted.keys() | frozenset().union(*wanted.values())
    return len(words - asked - headings) / len(words)
