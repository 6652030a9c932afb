"""Recognises messages without a question, and groups similar questions.

These functions are pure.
"""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import islice

from chat.verification.asked_question import read
from chat.verification.same_question import asks_the_same, content_words
from ingestion.search.tokens import plain_words

LIKE = 0.6  # two questions that share this part of their words may be in one group
MAX_READ = 1_000  # characters of a question that are compared; the rest is usually pasted text
COMPARED = 100  # number of wordings with which a question is compared
MIN_SITUATION = 10  # words; a shorter message without a comma does not describe a situation
_FIRST_PERSON = re.compile(r"\b(?:i|me|my|we|us|our|ich|mir|mich|mein\w*|wir|uns|unser\w*)\b", re.IGNORECASE)
# A message that consists only of these words contains no question.
SMALL_TALK = frozenset(
    """
    hi hello hey hallo moin servus good guten guter gute morning afternoon evening night day morgen
    tag abend nacht thanks thank thx danke dankeschön vielen dank many much so very sehr please
    bitte ok okay yes no ja nein bye goodbye tschüss ciao cheers great super prima cool nice perfect
    perfekt test testing you dir ihnen for the your für die deine ihre help hilfe how are is it
    going wie geht es well gut fine sorry welcome
    """.split()  # noqa: SIM905 (easier to read than a list of strings)
)


def alike(one: str, other: str) -> bool:
    """Whether two questions share most words and all numbers, and have equally many negations.

    Half of the words of the shorter one are enough if `asks_the_same` accepts the questions.
    """
    one, other = one[:MAX_READ], other[:MAX_READ]
    first, second = content_words(one), content_words(other)
    shared = len(first & second)
    if 2 * shared < min(len(first), len(second)) or _signature(one) != _signature(other):
        return False
    return bool(shared) and (shared >= LIKE * len(first | second) or asks_the_same(one, other))


def _signature(text: str) -> tuple[object, ...]:
    """The numbers and the count of negations, which are the same for all questions of a group."""
    return (read(text).negations, *sorted(word for word in content_words(text) if word.startswith("#")))


def is_small_talk(text: str) -> bool:
    """Whether a message only greets, thanks or tries out the site."""
    words = plain_words(text).split()
    return not words or SMALL_TALK.issuperset(words)


def describes_situation(text: str) -> bool:
    """Whether a question describes a situation: “I lost my badge on the tram, who do I ring?”

    Such questions use everyday words, so a search may miss documents that answer them.
    """
    return bool(_FIRST_PERSON.search(text)) and ("," in text or len(text.split()) >= MIN_SITUATION)


def numbered(texts: Sequence[str]) -> list[int]:
    """The group number of each question: that of a similar earlier question, or a new one.

    Groups are numbered from 0 in the order of their first questions.
    """
    texts = [text[:MAX_READ] for text in texts]
    frequency = Counter(word for text in texts for word in content_words(text))
    numbers: list[int] = []
    known = 0
    of_wording: dict[str, int] = {}
    of_word: dict[tuple[object, ...], list[tuple[int, str]]] = {}  # group and text, by signature and word
    for text in texts:
        wording = plain_words(text)
        number = of_wording.get(wording)
        if number is None:
            # Look up rare words first, because frequent ones lead to almost all groups.
            words = sorted(content_words(text), key=lambda word: (frequency[word], word))
            keys = [(*_signature(text), word) for word in words]
            near = islice((pair for key in keys for pair in of_word.get(key, ())), COMPARED)
            number = next((each for each, other in near if alike(text, other)), None)
            if number is None:
                number, known = known, known + 1
            of_wording[wording] = number
            for key in keys:
                of_word.setdefault(key, []).append((number, text))
        numbers.append(number)
    return numbers
