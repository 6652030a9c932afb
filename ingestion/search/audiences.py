"""For whom a rule is: the people outside the organisation whom a text is about and a question does not name.

A question of an employee that names nobody (“What is the hotel limit?”) is hardly about passengers.
"""

import re

from .rough_stems import held_stems, stems

_OUTSIDERS = re.compile(
    r"\b(?:passengers?|customers?|guests?|visitors?|travellers?|suppliers?|contractors?|agency workers?"
    r"|candidates?|applicants?|patients?|students?|pupils?|tenants?"
    r"|passagiere?n?|fahrg[aä]ste?n?|kund(?:e|en|innen)|g[aä]ste?n?|besucher(?:n|innen)?|lieferanten?"
    r"|bewerber(?:n|innen)?|patient(?:en|innen)|schüler(?:n|innen)?|mieter(?:n|innen)?)\b",
    re.IGNORECASE,
)


def is_for_outsiders(question: str, text: str, headings: str, named: frozenset[str] = frozenset()) -> bool:
    """Whether `text` or its headings name people outside the organisation, and the question none of them.

    `named` has the stems of other words for those of the question.
    """
    groups = {match[0].lower() for match in _OUTSIDERS.finditer(f"{text} {headings}")}
    if not groups or _OUTSIDERS.search(question):
        return False
    return not held_stems(" ".join(groups)) & (stems(question) | named)
