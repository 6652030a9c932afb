"""Splits a question into the questions that it consists of.

An example is “How many days do I get, and can I carry them over?”.

English, German, French and Spanish are recognised. When in doubt, a question is not split.
"""

import re

MAX_PARTS = 3
MAX_CHARACTERS = 400
MIN_WORDS = 3  # words of a part; a shorter one means little by itself: “How long, and when?”

_INTERROGATIVES = (
    r"how|what|when|where|which|who|whom|whose|why"
    r"|wie|was|wann|wo|wohin|welche[rsmn]?|wer|wem|wen|warum|wieso|wieviel"
    r"|comment|combien|quand|où|qui|quels?|quelles?|pourquoi"
    r"|cómo|cuánt[oa]s?|cuándo|dónde|quién(?:es)?|qué|cuál(?:es)?"
)
# Matches a verb followed by its subject (which Spanish omits), as in “and can I”, but not “staff who travel
# and can prove it”.
_ASKING_VERBS = (
    r"(?:can|could|may|must|do|does|did|will|would|should|is|are|am|have|has)"
    r" (?:i|we|you|he|she|it|they|there|the|my|our)"
    r"|(?:kann|können|darf|dürfen|muss|müssen|soll|sollen|sollte|bekomme|bekommen|brauche|brauchen"
    r"|habe|haben|ist|sind|gibt)"
    r" (?:ich|wir|man|sie|er|es|der|die|das|mein\w{0,2}|unser\w{0,2})"
    r"|(?:puis|dois|peut|doit|est|faut)-(?:je|on|il|elle|ce)|(?:puedo|debo|tengo|hay)"
)
_ASKS = re.compile(rf"(?:{_INTERROGATIVES}|{_ASKING_VERBS})\b", re.IGNORECASE)
_BORDER = re.compile(
    rf"(?<=[?？])\s|[,;]?\s(?:and|und|et|y)\s(?:(?:also|then|auch|dann|aussi|también)\s)?"
    rf"(?=[¿]?(?:{_INTERROGATIVES}|{_ASKING_VERBS})\b)",
    re.IGNORECASE,
)


def parts_of(question: str) -> tuple[str, ...]:
    """The parts in their order, or only the question itself."""
    whole = (question,)
    text = " ".join(question.split())
    if len(text) > MAX_CHARACTERS:
        return whole
    parts = [part.strip() for part in _BORDER.split(text)]
    if not 1 < len(parts) <= MAX_PARTS:
        return whole
    if any(len(part.split()) < MIN_WORDS or not _ASKS.search(part) for part in parts):
        return whole
    return tuple(parts)
