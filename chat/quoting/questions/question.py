"""A parsed question: what it names, what it asks for, and its conditions."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise

from django.utils.functional import cached_property

from chat.quoting.table_rows.row_conditions import SUPERLATIVE
from ingestion.search.definitions import asks_definition, defined_thing
from ingestion.search.rough_stems import STOP_WORDS, first_part, stem, stems, weak_stems
from ingestion.search.tokens import plain_words
from ingestion.search.translations import language_of, stems_of_question

from .amounts import AskedAmount, asked_amount, counted, numbers_of
from .applicability import case_of, directions_of, names_outsiders
from .entities import Entity, asks_where, asks_who, asks_who_does, deed_asked_for, entity_asked_for
from .instructions import asks_how_to, asks_what_to_do

Synonyms = Mapping[str, Sequence[str]]  # synonyms for phrases of a question

# “How late” asks for a time, but in “my ferry is late” the word is content.
_HOW_LATE = re.compile(r"\bhow (?:early|late|soon)\b", re.IGNORECASE)
_TIMELY = frozenset(map(stem, ("early", "late", "soon")))
# Nouns that only name an attribute of the subject, as in “the name of the manager”.
_MEASURE = r"(?:name|value|price|cost|amount|number|rate|fee|size|length|date|time|deadline|kind|type)s?\b"
_HEAD = re.compile(
    r"\b(?:what|which|welche[rnms]?) (?!(?:is|are|was|were)\b)(\w+)"
    r"|\b(?:when|where|how (?:long|late|early|often)) (?:does|do|did|is|are|was|were|will) (?:the|my|our) "
    r"(?:(?:first|last|next|earliest|latest) )?(\w+)"
    rf"|(?:\A|\b(?:the|my|our|der|die|das|den|mein\w{{0,2}}) )(?!{_MEASURE})(\w+) (?:of|for|on|von|für)\b",
    re.IGNORECASE,
)
_WHAT_IS = re.compile(rf"\s*(?:what|who)(?: is|'s|’s) the (?!{_MEASURE})\w+ of\b", re.IGNORECASE)
MAX_COMPOUND = 60  # letters; the time for splitting a word grows with the square of its length

# A text about guests who come does not answer “What if a guest does not come?”.
NEGATION = r"\b(?:not|never|cannot|nicht|kein\w{0,2}|nie)\b|n['’]t\b"
_NEGATION = re.compile(NEGATION, re.IGNORECASE)
# A verb (and its object) for which the asker wants permission: “Can I smoke on board?”
_MAY_DO = re.compile(
    r"\s*(?:can|may|could) (?:i|we|you|one) (\w+)(?: (?:(?:my|our|the|an?|any|own|some) )+(\w+))?",
    re.IGNORECASE,
)
_ASKS_EXPLANATION = re.compile(
    r"(?:[^?]{0,80}, )?(?:and |but |so )?(?:why|can|may|must|do|does|is|are|am|should|will"
    r"|warum|wieso|weshalb|kann|darf|muss|soll|ist|sind|bin)\b",
    re.IGNORECASE,
)
# The verb “may”, not the month: “May I take …?”, “what may I take”.
_MODAL_MAY = re.compile(r"\bmay\b|\A\s*May\b(?! \d)")
# The asker's verb (“may I take …”); the other named words are its objects.
_DOES = re.compile(
    r"\b(?:do|does|can|could|may|must|should|would|will|darf|kann|muss) (?:i|we|you|one|ich|wir|man) (\w+)",
    re.IGNORECASE,
)
_DOES_IN_GERMAN = re.compile(
    r"\b\w{2,30}e (?:ich|wir|man) (?:(?:der|die|das|den|dem|eine?[nmr]?|mein\w{0,2}) )?([A-ZÄÖÜ]\w{1,60})"
)
# As in “the first sailing”; a part of a table only answers such a question if its best row has the word.
_IN_ORDER = re.compile(
    r"\b(?:first|earliest|last|latest|next|erste[nrsm]?|früheste[nrsm]?|letzte[nrsm]?|späteste[nrsm]?|nächste[nrsm]?)\b",
    re.IGNORECASE,
)
_ENGLISH_ORDER = {
    "erst": "first",
    "frühest": "earliest",
    "letzt": "last",
    "spätest": "latest",
    "nächst": "next",
}
_DIFFERENCE = re.compile(r"\b(?:difference|differ|unterschied)\w*\b", re.IGNORECASE)
_SEVERAL = re.compile(r"\s*(?:what|which)\b|\bwelche\b", re.IGNORECASE)
# Words that are not part of the name of a thing, so “ill before” is not one of `Question.pairs`.
BETWEEN = stems("before after during may might until without between up out off here want just really please")
# The beginning of a follow-up question that only adds a term: “and for crews?”. The rest of the question
# must not match `_HAS_CLAUSE`.
_ADDS = re.compile(
    r"\s*(?:and|also|but|or|what about|how about|und|auch|aber|oder|was ist mit|wie ist es mit)\b",
    re.IGNORECASE,
)
_HAS_CLAUSE = re.compile(
    r"\b(?:who|whom|what|which|when|where|why|how|if|i|we|you|it|they|that|this|there|then|is|are|do|does|can"
    r"|must|may|wer|wem|wen|was|welche[rsnm]?|wann|wo|warum|wie|wenn|falls|ich|wir|man|er|sie|dann|ist|sind"
    r"|kann|muss|darf)\b",
    re.IGNORECASE,
)
MAX_ADDED = 4  # content words; a follow-up question with more of them does not only add a term
_LETTER = re.compile(r"(?<=[^\W\d_] )[B-HJ-Z]\b")  # as in “Class D”; “A” and “I” are words
_LETTERS = re.compile(r"\b([A-Z])(?:(?: to | bis | ?[–-] ?)([A-Z]))?\b")
_NUMBERS = re.compile(r"\b(\d{1,6})(?: to | bis | ?[–-] ?)(\d{1,6})\b")
# Words for people that do not distinguish one group from another.
_PEOPLE = stems(
    "staff employee employees people person persons colleague colleagues worker workers member members"
    " mitarbeiter mitarbeiterinnen beschäftigte beschäftigten personal leute kollegen personen"
)
_QUOTES = ".,;:?!\"'“”‘’()"


@dataclass(frozen=True)
class Question:
    """A question in its conversation.

    `own` is the question itself, `earlier` has the questions to which it refers or whose subject it may
    share, and `subject` is the question that it continues. `is_translated` says whether `own` is an English
    translation of a German question; `earlier` and `subject` are then translated, too. If so, `original` has
    the asker's words, because a translation omits “von” and “nach”, and `untranslated` has the stems of an
    object without a translation (see `object`). `synonyms` maps phrases of the question to synonyms.
    """

    own: str
    earlier: str = ""
    subject: str = ""
    synonyms: Synonyms = field(default_factory=dict)
    is_translated: bool = False
    untranslated: frozenset[str] = frozenset()
    original: str = ""

    @cached_property
    def text(self) -> str:
        return f"{self.earlier} {self.own}".strip()

    @cached_property
    def language(self) -> str:
        return language_of(self.text)

    # --- What the question names ---

    @cached_property
    def stems(self) -> frozenset[str]:
        """The stems of the words of this question and the earlier ones, without function words."""
        return stems_of_question(self.text)

    @cached_property
    def own_stems(self) -> frozenset[str]:
        return stems_of_question(self.own)

    @cached_property
    def subject_stems(self) -> frozenset[str]:
        return stems_of_question(self.subject)

    @cached_property
    def words(self) -> frozenset[str]:
        """Like `stems`, but including German function words."""
        return stems(self.text)

    @cached_property
    def asking(self) -> frozenset[str]:
        """The stems of the words that only name the type of answer, such as “form” in “which form”."""
        entity = self.entity.asking if self.entity else frozenset[str]()
        return (self.amount.asking if self.amount else frozenset()) | entity

    @cached_property
    def named(self) -> frozenset[str]:
        """The stems of the words that an answer must be about (the *named words*)."""
        weak = weak_stems() if _HOW_LATE.search(self.text) else weak_stems() - _TIMELY
        is_modal = _MODAL_MAY.search(self.own) or _MODAL_MAY.search(self.earlier)
        modal = stems("may") if is_modal else frozenset[str]()
        return (self.stems - weak - self.asking - modal) or self.stems

    @cached_property
    def added_term(self) -> str:
        """The term that a follow-up question adds, in the asker's words; empty for any other question."""
        term = added_term(self.original or self.own) if self.subject else ""
        return term if len(self._added_words) <= MAX_ADDED else ""

    @cached_property
    def _added_words(self) -> frozenset[str]:
        words = self.own_stems - weak_stems() - self.asking - self.subject_stems - BETWEEN
        return (words - _PEOPLE) or words

    @cached_property
    def added(self) -> frozenset[str]:
        """The stems of the added term; empty if there is none, or if the previous question has it."""
        return self._added_words if self.added_term else frozenset()

    @property
    def adds(self) -> bool:
        """Whether the question adds a term that the previous one lacks."""
        return bool(self.added or self.added_marks)

    @cached_property
    def kept(self) -> frozenset[str]:
        """The named words of the question that this one continues."""
        return self.subject_stems & self.named

    @cached_property
    def added_marks(self) -> frozenset[str]:
        """The numbers and single letters of the added term: “D” in “and for Class D?”."""
        return numbers_of(self.added_term).union(_LETTER.findall(self.added_term))

    @cached_property
    def object(self) -> frozenset[str]:
        """The stems of the named words besides the asker's verb.

        For “How do I order stationery?”, this is “stationery”; for a question without such a verb, it is
        `untranslated`.
        """
        found = _DOES.search(self.text)
        return self.named - stems(found[1]) if found else self.untranslated

    @cached_property
    def phrases(self) -> Sequence[tuple[frozenset[str], Sequence[tuple[str, frozenset[str]]]]]:
        """The stems of each phrase that has synonyms, with each synonym and its stems."""
        return [
            (stems(phrase), [(other, stems(other)) for other in others])
            for phrase, others in self.synonyms.items()
        ]

    def other_words(self, word: str) -> frozenset[str]:
        """The stems of synonyms of a stem in the question."""
        found = (each for phrase, others in self.phrases if word in phrase for _, each in others)
        return frozenset().union(*found) - {word}

    @cached_property
    def wanted(self) -> Mapping[str, frozenset[str]]:
        """The stems of this question and the earlier ones, each with the stems of its synonyms.

        The first part of a compound counts as a synonym.
        """
        words = self.own_stems | stems_of_question(self.earlier)
        return {word: self.other_words(word) | first_part(word) for word in words}

    @cached_property
    def literals(self) -> Sequence[str]:
        """The words that contain symbols: paths, file names, 401(k)."""
        words = (word.strip(_QUOTES) for word in self.text.split())
        return [word for word in words if len(word) > 1 and not word.replace("-", "").isalnum()]

    @cached_property
    def compounds(self) -> Sequence[tuple[str, Sequence[tuple[str, str]]]]:
        """The stem of each word, with the stems of all pairs into which it can be split: “pay day”."""
        return [
            (stem(word), [(stem(word[:cut]), stem(word[cut:])) for cut in range(3, len(word) - 2)])
            for word in plain_words(self.text).split()
            if len(word) <= MAX_COMPOUND
        ]

    @cached_property
    def head(self) -> frozenset[str]:
        """The stem of the noun that is asked about: “capital” in “the capital of France”."""
        found = _HEAD.search(self.text)
        return stems(found[1] or found[2] or found[3]) & self.named if found else frozenset()

    # --- What the question asks for ---

    @cached_property
    def asks_head(self) -> bool:
        """Whether it is “what (or who) is the … of …?”, with a noun that is not in `_MEASURE`."""
        return bool(_WHAT_IS.match(self.own))

    @cached_property
    def amount(self) -> AskedAmount | None:
        # “Which form is it?” does not ask for a time, even after “When is it paid?”.
        return asked_amount(self.own if entity_asked_for(self.own) else self.text)

    @cached_property
    def asks_amount(self) -> bool:
        """Whether the question asks for an amount explicitly: “how many”, “when”, “which rate”."""
        return self.amount is not None and self.amount.is_explicit

    @cached_property
    def counted(self) -> Sequence[str]:
        """The stems of the counted thing, in order: “how many days of annual leave”."""
        return counted(self.text)

    @cached_property
    def counted_forms(self) -> Sequence[frozenset[str]]:
        """The stems of `counted`, each with the stems of its synonyms."""
        return [frozenset({word}) | self.wanted.get(word, frozenset()) for word in self.counted]

    @cached_property
    def entity(self) -> Entity | None:
        return entity_asked_for(self.text)

    @cached_property
    def asks_where(self) -> bool:
        return asks_where(self.text)

    @cached_property
    def asks_who(self) -> bool:
        return asks_who(self.text)

    @cached_property
    def asks_who_does(self) -> bool:
        return asks_who_does(self.text)

    @property
    def asks_kind(self) -> bool:
        """Whether it asks for an amount, a place or a person, or what to do."""
        return self.asks_amount or self.asks_where or self.asks_who or self.asks_what_to_do

    @cached_property
    def deed(self) -> frozenset[str]:
        """The stem of the verb: “approves” in “Who approves overtime?”"""
        return deed_asked_for(self.text) & self.named

    @cached_property
    def asks_how_to(self) -> bool:
        return asks_how_to(self.own)

    @cached_property
    def asks_explanation(self) -> bool:
        """Whether it asks why, or whether, something is the case."""
        return bool(_ASKS_EXPLANATION.match(self.own))

    @cached_property
    def asks_what_to_do(self) -> bool:
        return asks_what_to_do(f"{self.own} {self.original}")

    @cached_property
    def pairs(self) -> Sequence[tuple[str, str]]:
        """The stems of pairs of adjacent named words: “travel” and “time”.

        Empty for a translation, in which other words may be adjacent, and for German, in which a verb may be
        far from its object.
        """
        if self.is_translated or self.language == "german":
            return []
        words = [stem(word) for word in plain_words(self.own).split()]
        named = self.named - BETWEEN
        return [pair for pair in pairwise(words) if named.issuperset(pair)]

    @cached_property
    def asks_definition(self) -> bool:
        return asks_definition(self.text)

    @cached_property
    def defined_thing(self) -> frozenset[str]:
        return defined_thing(self.text)

    @cached_property
    def asks_extreme(self) -> bool:
        return bool(SUPERLATIVE.search(self.text))

    @cached_property
    def in_order(self) -> frozenset[str]:
        """The stems of words that ask for the first or last of several things."""
        asked = (word.lower().rstrip("emnrs") for word in _IN_ORDER.findall(self.original))
        translated = (_ENGLISH_ORDER[word] for word in asked if word in _ENGLISH_ORDER)
        return stems(" ".join([*_IN_ORDER.findall(self.own), *translated]))

    @cached_property
    def asks_difference(self) -> bool:
        return bool(_DIFFERENCE.search(self.text))

    @cached_property
    def asks_list(self) -> bool:
        return bool(_SEVERAL.match(self.text))

    @cached_property
    def permission(self) -> frozenset[str]:
        """The stem of the verb for which permission is asked: “smoke”."""
        found = _MAY_DO.match(self.text)
        return stems(found[1]) & self.named if found else frozenset()

    @cached_property
    def permitted(self) -> frozenset[str]:
        """The stem of the object for which permission is asked: “laptop” in “my own laptop”."""
        found = _MAY_DO.match(self.text)
        return stems(found[2]) & self.named if found and found[2] else frozenset()

    # --- Conditions ---

    @cached_property
    def is_negated(self) -> bool:
        return bool(_NEGATION.search(self.text))

    @cached_property
    def case(self) -> frozenset[str]:
        """The stems of the case that it names: “delete a library” in “What if I delete a library?”."""
        return case_of(self.own) & self.own_stems

    @cached_property
    def directions(self) -> frozenset[tuple[bool, str]]:
        return directions_of(f"{self.text} {self.original}")

    @cached_property
    def names_outsiders(self) -> bool:
        return names_outsiders(self.text)

    def is_for_others(self, outsiders: frozenset[str], named: frozenset[str] = frozenset()) -> bool:
        """Whether a text with these outsiders is about people whom the question does not mean.

        `outsiders` comes from `outsiders_in`; `named` has the stems of the question's synonyms.
        """
        if not outsiders or self.names_outsiders:
            return False
        return outsiders.isdisjoint(self.words | named)

    def is_about_office(self, offices: frozenset[tuple[str, frozenset[str]]]) -> bool:
        """Whether the question asks the price of a thing that a text has only in an office's name.

        “Book through the travel desk” does not answer “How much can I spend on a desk?”. `offices` comes from
        `offices_in`.
        """
        if not offices or self.amount is None or not self.amount.is_money:
            return False
        return any(noun in self.named and kind.isdisjoint(self.words) for noun, kind in offices)


def named_words(question: str) -> str:
    """The named words of a question, in order: “carried days leave”."""
    named = Question(question).named
    return " ".join(word for word in plain_words(question).split() if stem(word) in named)


def added_term(question: str) -> str:
    """The term that a question adds: “for crews?” in “and for crews?”; empty for other questions."""
    start = _ADDS.match(question)
    is_term = start and not _HAS_CLAUSE.search(question, start.end())
    return question[start.end() :].strip() if start and is_term else ""


def without_contrasted(question: str, earlier: str) -> str:
    """The earlier question without words that the term of a follow-up question replaces.

    For “and paternity leave?”, “How long is maternity leave?” becomes “How long is leave?”, because the words
    beside “leave” differ.
    """
    asked = [stem(word) for word in plain_words(added_term(question)).split()]
    words = [(word, stem(plain_words(word))) for word in earlier.split()]
    small = {*map(stem, STOP_WORDS), *weak_stems(), *asked}
    pairs = {*pairwise(asked)}
    befores, afters = {after for _, after in pairs}, {before for before, _ in pairs}
    contrasted = {
        place + step
        for place, ((_, before), (_, after)) in enumerate(pairwise(words))
        if (before, after) not in pairs
        for step, of_pair, other in ((0, after in befores, before), (1, before in afters, after))
        if of_pair and other not in small
    }
    return " ".join(word for place, (word, _) in enumerate(words) if place not in contrasted)


def has_mark(mark: str, text: str) -> bool:
    """Whether a text has a number or a single letter, also in a range such as “Grades A to D”."""
    if mark.isalpha():
        return any(first <= mark <= (last or first) for first, last in _LETTERS.findall(text))
    is_within = mark.isdecimal() and any(
        int(first) <= int(mark) <= int(last) for first, last in _NUMBERS.findall(text)
    )
    return is_within or mark in numbers_of(text)


def states_negation(text: str) -> bool:
    return bool(_NEGATION.search(text))


@cache
def measures() -> frozenset[str]:
    """The stems of words such as “rate” and “price”, which name an attribute and not a thing."""
    return frozenset(map(stem, re.findall(r"[a-z]{3,}", _MEASURE)))


def untranslated_object(asked: str, wording: str) -> frozenset[str]:
    """The stems of a German question's object if the translation has kept it in German.

    An example is “Büromaterial” in “Wie bestelle ich Büromaterial?”.
    """
    found = _DOES_IN_GERMAN.search(asked)
    return stems(found[1]) & stems(wording) if found else frozenset()
