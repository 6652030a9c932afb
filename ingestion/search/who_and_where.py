"""Whether a text says who does what a question asks about, or where something is.

English and German are known. When in doubt, a text does.
"""

import re
from collections.abc import Sequence

from .amounts import asks_amount
from .rough_stems import stem

NEAR = 6  # words after a participle among which is who does it

_WHERE = re.compile(
    r"(?:\A|[?.,;!] |\band )where\b|\bwhere (?:do|does|can|could|may|must|should|is|are|will)\b"
    r"|\b(?:wo|wohin)\b",
    re.IGNORECASE,
)
_NO_PLACE = (
    r"(?:request|demand|time|writing|advance|full|part|addition|case|cases|general|total|call|behalf|average"
    r"|order|duty|condition|fact|which|that|this|these|those|it|them|him|her|us|me|you|any|all|least|most|once"
    r"|(?:the )?(?:first|last|next|same|following|previous|year|month|week|day|morning|evening|event)s?"
    r"|weekends?|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february|march|april|may|june|july|august"
    r"|september|october|november|december)\b"
)
_PLACE = re.compile(
    rf"\b(?:at|in|on|from|into|near|behind|opposite|inside|outside|via|through)\b:? "
    rf"(?:(?:the|a|an|your|our|its|each|every) )?(?!{_NO_PLACE})[^\W\d]"
    r"|\b\d{1,5}[a-z]? (?:The )?(?-i:[A-Z]\w)"  # a house number
    r"|\bto (?:the|your|our|an?) (?!\d)|\b(?-i:to [A-Z])"
    r"|\b(?:online|portal|intranet|website|e-?mail|extension|here)\b|https?:|@"
    r"|(?:\A|; )[^;:]{1,60}: "  # a cell of a row
    r"|\b(?:im|am|beim|bei|zum|zur|in|auf|an|unter|neben) (?:de[rmn] |die |das )?(?-i:[A-ZÄÖÜ])",
    re.IGNORECASE,
)
_WHO = re.compile(
    r"\bwho (?!is\b|are\b|was\b|were\b|has\b|have\b|can\b|may\b|must\b|does\b|do\b|did\b|will\b|should\b)"
    r"([a-z]{4,20})\b",
    re.IGNORECASE,
)
_PASSIVE = re.compile(r"\b(?:is|are|was|were|be|been|being) (?:\w{1,20}ly |also |not |first )?(\w{3,20})\b")
_AGENT = re.compile(rf"(?:\W{{1,3}}\w{{1,30}}){{0,{NEAR}}}?\W{{1,3}}(?:by|to|from) \w")
_WORD = re.compile(r"\w+")


def asks_where(question: str) -> bool:
    return bool(_WHERE.search(question))


def has_place(text: str) -> bool:
    return bool(_PLACE.search(text))


def says_who_or_where(question: str, texts: Sequence[str]) -> bool:
    """Whether the first text says who, and any where, if `question` asks for that."""
    if texts and not says_who(question, texts[0]):
        return False
    return asks_amount(question) or not asks_where(question) or any(map(has_place, texts))


def says_who(question: str, text: str) -> bool:
    """Whether `text` does not merely say that it is done: “Overtime must be approved.”"""
    asked = _WHO.search(question)
    if not asked:
        return True
    verb = stem(asked[1].lower())
    done = [match for match in _PASSIVE.finditer(text) if stem(match[1].lower()) == verb]
    if not done or any(_AGENT.match(text, match.end()) for match in done):
        return True
    active = {asked[1].lower(), asked[1].lower().removesuffix("s")}
    return any(word.lower() in active for word in _WORD.findall(text))
