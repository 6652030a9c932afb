"""Whether a text applies to a question: its audience, condition and direction.

If a question names nobody (“What is the hotel limit?”), it is assumed to be about employees, not about
passengers.
"""

import re

from ingestion.search.rough_stems import held_stems, stems, weak_stems

_OUTSIDERS = re.compile(
    r"\b(?:passengers?|customers?|guests?|visitors?|travellers?|suppliers?|contractors?|agency workers?"
    r"|candidates?|applicants?|patients?|students?|pupils?|tenants?"
    r"|passagiere?n?|fahrg[aä]ste?n?|kund(?:e|en|innen)|g[aä]ste?n?|besucher(?:n|innen)?|lieferanten?"
    r"|bewerber(?:n|innen)?|patient(?:en|innen)|schüler(?:n|innen)?|mieter(?:n|innen)?)\b",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r"(?:if|when|where|unless|after|before|from|in case|wenn|falls|sofern|nach|bei|ab)\b([^,;:]{3,120}),",
    re.IGNORECASE,
)
# A condition without a comma: “After a stillbirth the full leave applies.”
_AFTER = re.compile(
    r"(?:after|before|in case of|following) an? ([^,;:]{3,80}?) (?:the|you|we)\b", re.IGNORECASE
)
# The case that a question names (“… after the guest has checked in”), or to which a sentence applies.
_CASE = re.compile(
    r"\b(?:if|after|before|once|unless|wenn|falls|nachdem|bevor|sobald)\b(?! (?:not|so|possible|any)\b)"
    r"([^,;:.?!]{3,80})"
    r"|(?<=\w )(?<!by )(?<!till )(?<!until )(?<!since )\bwhen\b([^,;:.?!]{3,80})"
    r"|\A\s*when\b([^,;:.?!]{3,80}),",
    re.IGNORECASE,
)
_IN_MONTH = re.compile(
    r"(?:in|during|im) (january|february|march|april|may|june|july|august|september|october|november|december"
    r"|januar|februar|märz|mai|juni|juli|oktober|dezember)\b",
    re.IGNORECASE,
)
# An exception to a rule: “In exceptional cases up to ten days may be carried over.”
_EXCEPTION = re.compile(
    r"(?:in |under |by way of (?:an )?|as an )?"
    r"(exception(?:al(?:ly)?)?\b|(?:special|rare|justified) (?:cases?|circumstances)\b"
    r"|ausnahmsweise\b|(?:\w{5,12} )?(?:ausnahme|einzel|sonder)f[aä]ll)",
    re.IGNORECASE,
)
_DIRECTION = re.compile(
    r"\b(?:(?P<away>[Ff]rom|[Vv]on|[Aa]b|[Aa]us)|[Tt]o|[Nn]ach)\b:? "
    r"(?P<place>[A-ZÄÖÜ][\w-]+(?: [A-ZÄÖÜ][\w-]+)*)"
)
_LEAVES_FOR = re.compile(
    r"\b(?:leaves?|leaving|departs?|departing|sails?|sailing) (?:from )?"
    r"(?P<start>[A-Z][\w-]+(?: [A-Z][\w-]+)*) for (?=[A-Z])"
)
# An office that acts or is addressed: “the travel desk may approve”, “book through the travel desk”.
_OFFICE = r"(?:the|our|your|an?) ((?:[\w-]{2,20} ){1,2})([\w-]{2,20})\b"
_ACTS = re.compile(
    rf"\b{_OFFICE}"
    r"(?= (?:may|can|will|must|shall|should|decides|approves|answers|helps|handles|checks|issues)\b)"
    rf"|\b(?:through|via|by|ask|call|ring|phone|contact|tell|inform|notify|e-?mail) {_OFFICE}",
    re.IGNORECASE,
)
_LEAVES = re.compile(r"\b(?:leaves?|leaving|departs?|departing) (?=[A-Z])")


def outsiders_in(text: str) -> frozenset[str]:
    """The stems of a text's words for people outside the organisation, such as “guests”."""
    return held_stems(" ".join({match[0].lower() for match in _OUTSIDERS.finditer(text)}))


def names_outsiders(question: str) -> bool:
    return bool(_OUTSIDERS.search(question))


def condition_of(text: str) -> frozenset[str]:
    """The stems of a condition at the beginning of a sentence: “If a guest is ill, …”.

    “In exceptional cases” and “In May” also count as conditions. Empty if there is none.
    """
    found = _CONDITION.match(text) or _AFTER.match(text) or _IN_MONTH.match(text) or _EXCEPTION.match(text)
    return stems(found[1]) - weak_stems() if found else frozenset()


def case_of(text: str) -> frozenset[str]:
    """The stems of the cases that a question or a sentence names: “if …”, “after …”.

    Unlike a condition, a case may be at the end, as in “You cannot cancel after you have checked in”.
    """
    found = (match[1] or match[2] or match[3] for match in _CASE.finditer(text))
    return frozenset().union(*map(stems, found))


def offices_in(text: str) -> frozenset[tuple[str, frozenset[str]]]:
    """The offices that act or are addressed in a text: the noun's stem, and the stems of the words before it.

    “The travel desk may approve more” has “desk” with “travel”. Nouns that the text also has in another role
    are left out.
    """
    found = list(_ACTS.finditer(text))
    rest = held_stems(_ACTS.sub(" ", text)) if found else frozenset[str]()
    offices = ((match[2] or match[4], match[1] or match[3]) for match in found)
    return frozenset(
        (head, stems(kind))
        for noun, kind in offices
        for head in stems(noun)
        if head not in rest and stems(kind)
    )


def directions_of(text: str) -> frozenset[tuple[bool, str]]:
    """The places after “from” (True) or “to” (False), or in columns with these names.

    In German, the words are “von”, “ab” or “aus”, and “nach”.
    """
    text = _LEAVES.sub("from ", _LEAVES_FOR.sub(r"from \g<start> to ", text))
    return frozenset((bool(match["away"]), match["place"].lower()) for match in _DIRECTION.finditer(text))


def is_opposite(asked: frozenset[tuple[bool, str]], there: frozenset[tuple[bool, str]]) -> bool:
    """Whether a text has the opposite direction of the question.

    False if the text has both directions. The text may use a longer name for the place: “Sennick Harbour” for
    “Sennick”.
    """

    def has(away: bool, place: str) -> bool:
        return any(away == known and f"{name} ".startswith(f"{place} ") for known, name in there)

    return any(has(not away, place) and not has(away, place) for away, place in asked)
