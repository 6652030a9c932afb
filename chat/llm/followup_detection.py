"""Whether a question leans on what was asked before, told by its words.

English, German, French, Spanish and Chinese are known; in other languages it is told by how short it is.
"""

import re
from collections.abc import Sequence

from chat.requests import Turn
from ingestion.search.tokens import (
    has_unspaced_script,
    units,
)

FEW_WORDS = 3  # a question of no more names nothing by itself
FEW_CHARACTERS = 4  # the same of scripts without spaces

# It begins by going on …
_GOES_ON = re.compile(
    r"\s*(?:(?:and|also|but|or|what about|how about|what if"
    r"|und|auch|aber|oder|was ist mit|wie ist es|wie sieht es|und wenn"
    r"|et|mais|ou|aussi|qu['’]en est-il|et si"
    r"|y|pero|o|también|qué tal|y si)\b"
    r"|[¿]\s*(?:y|pero|o|también)\b"
    r"|那么?|还有|另外|而且|以及|但是|可是|如果|要是|它|他们?|她们?|这|其中)",
    re.I,
)
# … or points back. “Is there a canteen?” points nowhere.
_POINTS_BACK = re.compile(
    r"\b(?:same|instead|it|its|they|them|their|that|those|these|this|(?<!\bis )(?<!\bare )there|then"
    r"|he|she|his|her|davon|dafür|dabei|damit|dazu|darüber|diese[rsmn]?|dieselben?|dort|dann|ihnen|ihre[rnms]?"
    r"|ceci|cela|celui|celles?|ceux|ça|leurs?|là-bas"
    r"|eso|esto|ese|esos|esas|ellos|ellas|allí)\b"
    r"|(?-i:\b(?:sie|er|ihn|ihm)\b)"  # in lower case: “Sie” is you
    r"|它们?|他们|她们|这个|这些|那个|那些|那里|那边|那时|呢[?？]?\s*\Z",
    re.I,
)


def leans_on_earlier(question: str) -> bool:
    """Whether the question goes on, points back, or is too short to name what it is about."""
    return bool(_GOES_ON.match(question) or _POINTS_BACK.search(question) or _is_short(question))


def leaned_on(question: str, earlier: Sequence[Turn]) -> list[str]:
    """The last question that stood on its own; nothing where this one does too.

    What was added between the two is left out: each follow-up asks for something else (“and for part-time
    staff?”, “what if I was ill?”), and together they would drown what is asked now.
    """
    asked = [turn.content for turn in earlier if turn.role == "user"]
    if not asked or not leans_on_earlier(question):
        return []
    first = len(asked) - 1
    while first > 0 and leans_on_earlier(asked[first]):
        first -= 1
    return asked[first : first + 1]


def _is_short(question: str) -> bool:
    if has_unspaced_script(question):
        return len(units(question)) <= FEW_CHARACTERS
    return len(question.split()) <= FEW_WORDS
