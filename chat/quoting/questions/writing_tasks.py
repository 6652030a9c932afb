"""Recognises tasks that need a language model: to summarise, translate, compare or write something.

English and German are recognised. The task must be at the beginning, so that a question such as “How do I
write a report?” does not count as one.
"""

import re

from ingestion.search.rough_stems import weak_stems
from ingestion.search.translations import stems_of_question

MAX_BETWEEN = 200  # characters between the parts of a German verb

_ASKS = r"\s*(?:(?:please|bitte|hi|hello|hey|hallo)\b,? ?)?"
_ENGLISH = re.compile(
    _ASKS + r"(?:(?:can|could|would|will) you (?:please )?)?"
    r"(?:(?:summari[sz]e|sum up|translate|compare|rephrase|reword|paraphrase|proofread|rewrite)\b"
    r"|(?:draft|compose|write)(?: me| us)? (?:an?|the|my|our)\b"
    r"|(?:give|make|write|create|prepare|provide)(?: me| us)? (?:(?:an?|the) )?(?:[\w-]{1,30} ){0,2}"
    r"(?:summary|translation|comparison|overview)\b(?: of\b)?)",
    re.IGNORECASE,
)
_GERMAN = re.compile(
    _ASKS + r"(?:(?:kannst du|können sie|könntest du|könnten sie) )?(?:(?:bitte|mir|uns) ){0,2}"
    r"(?:(?:übersetze?n?|vergleichen?|formulieren?|entwirf|entwerfen)\b(?: sie\b)?"
    r"|(?:schreibe?n?)(?: sie)?(?: mir| uns)? (?:eine?n?|die|den|das)\b"
    r"|(?:erstellen?|machen?|gib|geben|schreibe?n?)(?: sie)?(?: mir| uns)? (?:(?:eine|die) )?"
    r"(?:[\w-]{1,30} ){0,2}(?:zusammenfassung|übersetzung|übersicht|gegenüberstellung)\b)",
    re.IGNORECASE,
)
# “Fasse das Handbuch zusammen”, “Kannst du das Handbuch zusammenfassen?”
_GERMAN_PARTS = re.compile(
    _ASKS + rf"(?:fass(?:e|en sie|t)?\b([^?!]{{1,{MAX_BETWEEN}}})\bzusammen\b"
    rf"|(?:kannst du|können sie|könntest du|könnten sie)\b([^?!]{{1,{MAX_BETWEEN}}})"
    r"\b(?:zusammenfassen|übersetzen|vergleichen|umformulieren)\b)",
    re.IGNORECASE,
)
_INTO = re.compile(
    r" (?:into|in|to|ins|auf) (?:plain |simple |easy |einfaches? )?"
    r"(?:english|german|french|spanish|italian|polish|turkish|arabic|russian|ukrainian|chinese|(?:one|two|three"
    r"|four|five|ten|\d{1,3}) (?:sentences?|words|bullet points|points|lines|paragraphs?)"
    r"|(?:englisch|deutsch|französisch|spanisch|italienisch|polnisch|türkisch|arabisch|russisch|ukrainisch"
    r"|chinesisch|leicht)e?[rs]?(?: sprache)?"
    r"|(?:zwei|drei|vier|fünf|zehn|\d{1,3}) (?:sätzen|worten|punkten))\b",
    re.IGNORECASE,
)


def is_writing_task(question: str) -> bool:
    """Whether the question asks for a new text, which quotations cannot give."""
    return any(pattern.match(question) for pattern in (_ENGLISH, _GERMAN, _GERMAN_PARTS))


def without_task(question: str) -> str:
    """What the task is about: “the handbook” for “Summarise the handbook”; other questions unchanged."""
    parts = _GERMAN_PARTS.match(question)
    task = parts or _ENGLISH.match(question) or _GERMAN.match(question)
    if task is None:
        return question
    rest = (parts[1] or parts[2]) if parts else question[task.end() :]
    rest = _INTO.sub("", rest).strip(" .,:;!?")
    return rest if stems_of_question(rest) - weak_stems() else question
