"""Questions for a telephone number or a form, and sentences about a case that a question does not mention."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from .rough_stems import stems, weak_stems


@dataclass(frozen=True, slots=True)
class ExactKind:
    """A kind of thing: questions for it, texts that have it, and the words that only ask for it."""

    asks: re.Pattern[str]
    has: re.Pattern[str]
    asking: frozenset[str]


_EXACT_KINDS = (
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
        re.compile(
            r"\b(?:extension|ext|dial|call|ring|(?:tele)?phone|tel|number|on|durchwahl|telefon|nummer)\b"
            r"[^\d;]{0,30}\d{3}|\+\d{2}|\b0\d{2,5}[ /-]\d{3}",
            re.IGNORECASE,
        ),
        stems(
            "telephone phone number extension call ring dial reach telefonnummer rufnummer durchwahl nummer"
        ),
    ),
    ExactKind(
        re.compile(r"\b(?:what|which) form\b(?! of\b)|\bwelche[ns]? formular\b", re.IGNORECASE),
        re.compile(r"\b(?:form|formular):? [A-Z\d]", re.IGNORECASE),
        stems("form formular"),
    ),
)
_CONDITION = re.compile(
    r"(?:if|when|where|unless|after|before|from|in case|wenn|falls|sofern|nach|bei|ab)\b([^,;:]{3,120}),",
    re.IGNORECASE,
)


def exact_kind(question: str) -> ExactKind | None:
    """The kind of thing that the question asks for; None for other questions."""
    return next((kind for kind in _EXACT_KINDS if kind.asks.search(question)), None)


def unasked_condition(text: str, wanted: Mapping[str, frozenset[str]]) -> float:
    """The share of the words of a condition at the beginning of `text` that the question does not have.

    `wanted` has the stems of the question, each with those of other words for it.
    """
    condition = _CONDITION.match(text)
    words = stems(condition[1]) - weak_stems() if condition else frozenset()
    if not words:
        return 0.0
    return len(words - wanted.keys() - frozenset().union(*wanted.values())) / len(words)
