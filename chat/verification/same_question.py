"""Decides whether two questions ask the same thing, so that one answer can be given to both.

Words, numbers, names, negations and question words must be equivalent; in doubtful cases, the result is
False. English and German are supported; in other languages, the words must be nearly equal.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from os.path import commonprefix

from ingestion.search.tokens import plain_words

from .asked_question import (
    ARTICLES,
    BEING,
    BETWEEN,
    COUNTS,
    MAX_PATTERNS,
    MIN_BASE,
    POSSESSIVE,
    QUANTITIES,
    WHO_ACT,
    Question,
    read,
)
from .terms.lexicon import SYNONYMS

MAX_CHARACTERS = 400  # longest question that is compared
MIN_BEGINNING = 2  # letters of a prefix that is used to look up texts

_SYNONYMS: dict[str, set[int]] = {}
for _number, _line in enumerate(SYNONYMS):
    for _form in _line.split():
        _SYNONYMS.setdefault(_form, set()).add(_number)


def asks_the_same(asked: str, pattern: str) -> bool:
    """Whether the answer to `pattern` answers the question `asked`. Symmetric."""
    if max(len(asked), len(pattern)) > MAX_CHARACTERS:
        return False
    one, other = read(asked), read(pattern)
    if one.words == other.words:
        return bool(one.words) and _marks(one) == _marks(other)
    kinds = {one.asks_for, other.asks_for}
    if one.duty != other.duty and (
        not kinds.isdisjoint(("yes or no", *QUANTITIES)) or {one.duty, other.duty} == {"has to", "may"}
    ):
        return False
    return (
        bool(one.content)
        and one.negations == other.negations
        and one.poles == other.poles
        and one.telling == other.telling
        and one.of_sources == other.of_sources
        and one.tense == other.tense
        and one.is_passive == other.is_passive
        and {one.asker, other.asker} != {"acts", "is acted on"}
        and one.others == other.others
        and one.acquires == other.acquires
        and one.particle == other.particle
        and (len(kinds) == 1 or kinds in ({"", "what"}, {"who", "by whom"}))
        and _say_the_same(one, other)
    )


def _marks(question: Question) -> list[str]:
    """The symbols that change the meaning: “C++” is not “C”, and “20 %” is not “20”."""
    return re.findall(r"[+#%€$£°§&]", question.text)


def _say_the_same(one: Question, other: Question) -> bool:
    """Whether the content words of both are equivalent, in an equivalent order."""
    if len(one.content) != len(other.content):
        return False
    places: list[int] = []
    replaced = 0
    for word in one.content:
        free = [place for place in range(len(other.content)) if place not in places]
        same = next((place for place in free if _are_forms(word, other.content[place])), None)
        if same is None:
            synonyms = _SYNONYMS.get(word, set())
            said = (place for place in free if synonyms & _SYNONYMS.get(other.content[place], set()))
            same = next(said, None)
            replaced += 1
        if same is None:
            return False
        places.append(same)
    if replaced > 1 or (replaced and len(places) < 2):
        return False
    if not _relate_alike(one, other, places):
        return False
    if _is_put_in_passive(one, other, places):
        return True
    if one.asks_for != other.asks_for and "by whom" in (one.asks_for, other.asks_for):
        return False
    return _act_alike(one, other, places) and (places == sorted(places) or _is_turned(one, other, places))


def _relate_alike(one: Question, other: Question, places: Sequence[int]) -> bool:
    """Whether the words have compatible prepositions, unlike “for customers” and “with customers”."""
    end = len(places)
    pairs = [(one.prepositions[place], other.prepositions[found]) for place, found in enumerate(places)]
    if places[-1] == end - 1:
        pairs.append((one.prepositions[end], other.prepositions[end]))
    if "what" in (one.asks_for, other.asks_for) and one.prepositions[end] != other.prepositions[end]:
        return False  # “What is the fund?” and “What is the fund for?”
    return all(first == second or not (first and second) for first, second in pairs)


def _is_put_in_passive(one: Question, other: Question, places: Sequence[int]) -> bool:
    """Whether one question is the passive form of the other.

    Examples are “How do I report a theft?” and “How is a theft reported?”, or “Who signs a lease?” and “By
    whom is a lease signed?”.
    """
    moved = [place for place, found in enumerate(places) if found != place]
    if not moved:
        return False
    start, end = moved[0], moved[-1] + 1
    there = places[start:end]
    return (there == [end - 1, *range(start, end - 1)] and _is_passive_of(other, one, start, end)) or (
        there == [*range(start + 1, end), start] and _is_passive_of(one, other, start, end)
    )


def _is_passive_of(passive: Question, active: Question, start: int, end: int) -> bool:
    """Whether the verb is passive in `passive` and active in `active`.

    Among the words from `start` to `end`, the verb is the first in the active question and the last in the
    passive one.
    """
    if not BEING.search(passive.words) or not passive.content[end - 1].endswith(("ed", "n", "t", "d")):
        return False
    if (active.asks_for, passive.asks_for) == ("who", "by whom"):
        return True
    words = ["", *active.words.split()]
    verb = active.content[start]
    return (
        active.asks_for == passive.asks_for
        and passive.asker != "acts"
        and verb in words
        and words[words.index(verb) - 1] in WHO_ACT
    )


def _act_alike(one: Question, other: Question, places: Sequence[int]) -> bool:
    """Whether verbs have compatible forms in both questions, and each comparative is in both.

    “Which tools are used?” and “Which tools do we use?” ask the same thing; “How am I informed?” and “How do
    I inform?” do not.
    """
    for place, found in enumerate(places):
        for first, second, word, base in (
            (one, other, one.content[place], other.content[found]),
            (other, one, other.content[found], one.content[place]),
        ):
            if word == base:
                continue
            if word.endswith(("er", "est")) and word.startswith(base[:-1]) and not base.endswith("er"):
                return False  # “cheaper”
            is_active = second.asker == "acts" and first.asker != "acts" and bool(BEING.search(first.words))
            if word.endswith("ed") and not base.endswith(("ed", "ing")) and not is_active:
                return False
            if word.endswith("ing") and not base.endswith("ing") and first.duty == "has to":
                return False  # “need supervising”
    return True


def _is_turned(one: Question, other: Question, places: Sequence[int]) -> bool:
    """Whether two adjacent parts are swapped without a change of meaning.

    “VPN password” and “password of my VPN”; “What happens if I am late?” and “If I am late, what happens?”;
    “On Sundays, when does it open?” and “When does it open on Sundays?”.
    """
    count = len(places)
    start = next(place for place in range(count) if places[place] != place)
    end = next(place for place in range(count, 0, -1) if places[place - 1] != place - 1)
    turn = places.index(start)  # where the second part begins in `one`
    middle = places[start]  # where the first part of `one` begins in `other`
    if [*places[turn:end], *places[start:turn]] != list(range(start, end)):
        return False
    if (start, end) == (0, count) and one.has_fronted_clause != other.has_fronted_clause:
        return True
    if (start, end) == (0, count) and (
        _has_in_front(one, other, turn, middle) or _has_in_front(other, one, middle, turn)
    ):
        return True
    # The head of the phrase must be a single word: “change the password of a user” is not “a user changes the
    # password”. In a question with a possessive, or without a verb other than “is”, it may have several
    # words: “bicycle mileage rate” is “mileage rate for bicycles”.
    is_thing = one.names_one_thing or other.names_one_thing
    parts = (
        (one, one.gap(turn - 1), other.gap(middle - 1), other.content[start:middle]),
        (other, other.gap(middle - 1), one.gap(turn - 1), one.content[start:turn]),
    )
    return any(
        not compound
        and set(phrase) <= BETWEEN | ARTICLES
        and not BETWEEN.isdisjoint(phrase)
        and (len(head) == 1 or is_thing or POSSESSIVE.search(question.text))
        and COUNTS.isdisjoint(head)
        for question, compound, phrase, head in parts
    )


def _has_in_front(one: Question, other: Question, words: int, place: int) -> bool:
    """Whether a preposition and `words` content words precede the question word of `one`.

    `other` must have the same preposition before its content word at `place`.
    """
    preposition = one.prepositions[0]
    return bool(preposition) and preposition == other.prepositions[place] and one.is_fronted(words)


def _are_forms(one: str, other: str) -> bool:
    if one == other:
        return True
    if one.startswith("#") or other.startswith("#") or not (one.isalpha() and other.isalpha()):
        return False
    return not _bases(one).isdisjoint(_bases(other))


@lru_cache(50_000)
def _bases(word: str) -> frozenset[str]:
    """The possible base forms of a word: without an ending of verbs or nouns."""
    bases: list[str] = []
    if word.endswith("ies"):
        bases.append(f"{word[:-3]}y")
    elif word.endswith(("ses", "xes", "zes", "ches", "shes", "oes")):
        bases += [word[:-2], word[:-1]]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        bases.append(word[:-1])
    for ending in ("ed", "ing"):
        if word.endswith(ending):
            base = word.removesuffix(ending)
            bases += [base, f"{base}e"]
            if len(base) > MIN_BASE and base[-1] == base[-2]:
                bases.append(base[:-1])
            if ending == "ed" and base.endswith("i"):
                bases.append(f"{base[:-1]}y")
    # German endings, only of long words with an umlaut or “ß”, so that no English word becomes another one.
    for ending in ("en", "n", "er", "em", "es"):
        base = word.removesuffix(ending)
        if base != word and len(base) >= 6 and any(letter in "äöüß" for letter in word):
            bases.append(base)
    return frozenset({word, *(base for base in bases if len(base) >= MIN_BASE)})


def beginnings(pattern: str) -> str:
    """A tsquery that matches every text that may ask the same thing as `pattern`.

    Empty if it would match all texts. The query requires each content word in one of its forms, which share
    a prefix, or as a synonym. Words without such a prefix (see `_stem`) are left out.
    """
    plain = set(plain_words(pattern).split())
    wanted = []
    for word in read(pattern).content:
        stems = {_stem(each) for each in (word, *_synonyms_of(word))} if word in plain else {""}
        if all(len(stem) >= MIN_BEGINNING for stem in stems):
            wanted.append("(" + " | ".join(f"'{stem}':*" for stem in sorted(stems)) + ")")
    return " & ".join(wanted)


def _synonyms_of(word: str) -> Iterator[str]:
    for number in _SYNONYMS.get(word, ()):
        yield from SYNONYMS[number].split()


def _stem(word: str) -> str:
    """The longest common prefix of a word's forms; empty if the word is not an ordinary one."""
    if not word.isalpha() or word.startswith("month") or "ss" in word:
        return ""  # “ss” may be written “ß”
    return commonprefix([base[:-1] if base[-1] in "ey" else base for base in _bases(word)])  # noqa: RUF071 (no paths)


@lru_cache(MAX_PATTERNS)
def content_words(text: str) -> frozenset[str]:
    """The words by which questions are grouped or looked up, in their shortest forms."""
    return frozenset(map(_shortest_base, read(text).content))


def written_words(text: str) -> dict[str, str]:
    """The `content_words`, each with its form in the text."""
    asked = read(text)
    return dict(zip(map(_shortest_base, asked.content), asked.written, strict=True))


def _shortest_base(word: str) -> str:
    return min(_bases(word), key=lambda base: (len(base), base))
