"""The types of answers that questions ask for, and checks of quotations for each type.

Examples of types are an amount, a count, a person, a place, a definition, an extreme, a permission and a
direction. The types that a question asks for are checked in the order of `ANSWER_TYPES`; a quotation that
fails one of these checks does not answer the question (but see `AnswerType.is_worded`).
"""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

from django.utils.functional import cached_property

from chat.quoting.table_rows.row_conditions import SUPERLATIVE
from ingestion.search.definitions import gives_definition
from ingestion.search.rough_stems import forms, held_stems, stem, stems
from ingestion.search.sentence_splitting import spans_of
from ingestion.search.tokens import search_text

from .amounts import counts, has_bare_number, has_date, has_duration, has_money, has_number
from .applicability import directions_of, is_opposite, offices_in
from .entities import has_deed, has_place, says_who, says_who_does
from .instructions import says_how, tells_to
from .question import NEGATION, Question

BETWEEN = 2  # number of other words that are allowed among the words of a synonym
TOGETHER = 8  # maximum distance, in words, between two words that are adjacent in the question

_TIME_UNITS = frozenset(map(stem, ("minute", "hour", "day", "week", "month", "year")))
_ADVANCE = re.compile(r"\b(?:ahead|advance|before(?:hand)?|notice|earlier|prior)\b", re.IGNORECASE)
_UNITS = _TIME_UNITS | {stem("time"), stem("period")}
# The first part of a compound adjective is ignored: “a smoke-filled space” says nothing about smoking.
_DESCRIBED_BY = re.compile(r"\b\w{1,30}-(?=\w{1,30}(?:ed|free|proof|resistant)\b)", re.IGNORECASE)
_NO_WORDS = frozenset[str]()
_PAYS = dict.fromkeys(
    stems("pay pays zahlt bezahlt"), stems("reimburse expense cover fund bear erstatten übernehmen tragen")
)
_NEXT_TIME = re.compile(
    r"\bwhen (?:is|are|will) (?:the|our|my) next\b|\bwann (?:ist|sind|findet|finden) (?:die|der|das) nächste",
    re.IGNORECASE,
)
_EXTREME = re.compile(r"\b(?:max|min)(?:imum)?\b|\bno other\b", re.IGNORECASE)
_MASS = re.compile(r"\bhow much \w|\bwie ?viel \w", re.IGNORECASE)
_PERMITS = re.compile(
    r"\b(?:allowed|permitted|forbidden|prohibited|banned|erlaubt|gestattet|verboten|untersagt)\b",
    re.IGNORECASE,
)
# Words that say that something is allowed, forbidden, required or usual. A text without these, and without
# any of `_PERMITS`, states no rule.
_RULE = re.compile(
    r"\b(?:can|could|may|might|must|shall|should|will|would|need(?:s|ed)?|have to|has to|only|please"
    r"|free|welcome|encouraged|ask|required?|requires?|refused?|accepted|available|provided|entitled|possible"
    r"|eligible|expected|supposed|agree[ds]?|approv\w{1,4}|permi\w{2,8}|allow\w{0,5}|prohibit\w{0,4}"
    r"|forbid\w{0,5}|bann?\w{0,4}|restrict\w{0,4}|limit\w{0,4}|right|never|always|no|not|cannot|unless"
    r"|illegal|against|up to|at least|at most|offers?|covers?|pays?|reimburs\w{1,6})\b|n['’]t\b",
    re.IGNORECASE,
)
_ASKS_JOINING = re.compile(
    r"\bhow (?:do|does|can|may) \w{1,20} (?:become|join)\b"
    r"|\bwie (?:werde|wird|werden) (?:ich|man|wir|eine?r?)\b"
    r"|\bwie (?:kann|können) (?:ich|man|wir)\b[^?]{0,200}\bwerden\b",
    re.IGNORECASE,
)
_JOINING = re.compile(
    r"\b(?:becom\w{1,3}|join\w{0,3}|appl(?:y|ies|ied|ication\w?)|admi(?:t|ssion)\w{0,4}|accepted|elect\w{0,4}"
    r"|appoint\w{0,4}|enrol\w{0,5}|regist\w{1,7}|sign(?:s|ed|ing)? up|eligible|qualif\w{1,4}"
    r"|kann jede\w{0,2}|beitr[ei]\w{1,7}|\w{0,12}aufnahme\w{0,8}|aufgenommen|\w{0,12}antr[aä]g\w{0,3}"
    r"|erw[eio]rb\w{0,3}|gewählt|bewerb\w{0,5}|anmeld\w{0,5}|eintr[ei]\w{1,4}|berufen|ernannt)\b",
    re.IGNORECASE,
)
_ASKS_END = re.compile(
    r"\b(?:when|what time|how late)\b[^?]{0,200}"
    r"\b(?:ends?|finish(?:es)?|stops?|close[sd]?|clos(?:es|ing)|over)\b"
    r"|\bwann\b[^?]{0,200}\b(?:ende[nt]?|aufhör\w{0,3}|schließ\w{0,2}|zu|vorbei)\b\s*\??\s*\Z",
    re.IGNORECASE,
)
_END = re.compile(
    r"\b(?:end(?:s|ed|ing)?|finish\w{0,3}|stop\w{0,4}|clos\w{1,4}|until|till?|last|latest|over|shut\w{0,4}"
    r"|finally|expir\w{1,4}|cut-?off|thro?ugh?|end\w{0,6}|schlie(?:ß|ss)\w{0,6}|geschlossen\w{0,2}|bis"
    r"|letzt\w{1,2}|spätestens|\w{0,12}schluss|to)\b|\d ?(?:[ap]\.?m\.?|Uhr)? ?[-–—] ?\d",
    re.IGNORECASE,
)
_WITHIN = r"(?:in|im|during|while|on|over|am|an|während|zu|über)"
_OUTSIDE = r"(?:before|after|until|till|prior to|ahead of|vor|nach|bis)"
_NAMES_TIME = re.compile(
    rf"\b{_WITHIN} (?:(?:the|my|our|de[nmr]|die|das) )?(?:[a-zäöüß]{{2,12}} )?([^\W\d]\w{{3,}})",
    re.IGNORECASE,
)
_IS_OUTSIDE = re.compile(
    rf"\b{_OUTSIDE} (?:(?:the|my|our|your|de[nmr]|die|das) )?(?:\w{{2,12}} )?\Z", re.IGNORECASE
)
NEAR_TIME = 40  # characters before a word that are searched for “before” or “after”
_OF = frozenset(map(stem, ("of", "for", "in", "on", "to", "while", "during")))
NEXT_TO = 4  # maximum distance, in words, between two words that name one thing
_WHAT_IS = re.compile(r"\s*what(?:(?: is|['’]?s| are) (?:the|our|my) )", re.IGNORECASE)
_WORD = re.compile(r"\w+")
_NUMBER_COLUMN = re.compile(r"(?<=; )([^:;]{1,60}): (?=\d)")
_CELL = re.compile(r"; [^:;]{1,60}: ")
_NEGATIVE = re.compile(
    rf"{NEGATION}|\b(?:no|none|nobody|nothing|without|only|unless|un\w{{2,20}}|refus\w{{1,5}}|fail\w{{0,5}}"
    r"|miss\w{0,5}|lapse\w?|expire\w?|los[te]\w?|lack\w{0,3}|ohne|nur|niemand|nichts)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class QuotedText:
    """A quotation to compare with a question. `texts` has the quoted text, title and heading."""

    question: Question
    texts: tuple[str, ...]

    @cached_property
    def said(self) -> str:
        return _DESCRIBED_BY.sub("", " ".join(self.texts))

    @cached_property
    def stems(self) -> frozenset[str]:
        return held_stems(self.said)

    @cached_property
    def headings(self) -> frozenset[str]:
        return held_stems(" ".join(self.texts[1:]))

    @cached_property
    def phrases(self) -> Sequence[tuple[frozenset[str], Sequence[frozenset[str]]]]:
        """The stems of each phrase that has synonyms, and those of the synonyms that this text has.

        The words of a synonym must be close together in the text.
        """
        return [
            (phrase, [words for _, words in others if words and self._is_together(words)])
            for phrase, others in self.question.phrases
        ]

    @cached_property
    def order(self) -> Sequence[frozenset[str]]:
        return [frozenset(forms(word)) for word in search_text(self.said, stored=False).split()]

    def _is_together(self, wanted: frozenset[str]) -> bool:
        if len(wanted) < 2:
            return True
        if not wanted <= self.stems:
            return False
        starts = (at for at, each in enumerate(self.order) if not each.isdisjoint(wanted))
        size = len(wanted) + BETWEEN
        return any(wanted <= frozenset().union(*self.order[at : at + size]) for at in starts)

    def known(self, words: Collection[str], held: frozenset[str] | None = None) -> int:
        """The number of `words` that `held` (by default, the quotation) has, as such or as a synonym."""
        held = self.stems if held is None else held
        return sum(
            word in held
            or any(
                word in phrase and any(other <= held for other in others) for phrase, others in self.phrases
            )
            for word in words
        )

    def other_words(self, word: str) -> frozenset[str]:
        """The stems of the synonyms that this quotation has for a stem of the question."""
        found = (each for phrase, others in self.phrases if word in phrase for each in others)
        return frozenset[str]().union(*found) - {word}

    @cached_property
    def pair_distances(self) -> Sequence[frozenset[int]]:
        """For each pair of adjacent named words of the question, their distances in the quotation.

        Distances are in words, from the first to the second word; title and heading count as part of the
        quotation. Pairs of which the quoted text itself lacks a word are left out.
        """
        own = held_stems(self.texts[0])
        pairs = [pair for pair in self.question.pairs if own.issuperset(pair)]
        places = [
            [[at for at, each in enumerate(self.order) if word in each] for word in pair] for pair in pairs
        ]
        return [frozenset(second - first for first in one for second in other) for one, other in places]

    @cached_property
    def known_as_asked(self) -> int:
        """The number of named words that the quotation has, not counting synonyms.

        A word may also occur as two words: “pay day” for “payday”.
        """
        held, named = self.stems, self.question.named
        parts = {
            word
            for word, cuts in self.question.compounds
            if any(first in held and second in held for first, second in cuts)
        }
        return sum(word in held or word in parts for word in named)


@dataclass(frozen=True, slots=True)
class AnswerType:
    """A type of answer: whether a question asks for it, and whether a quotation has it.

    With `is_worded`, the second check is only about the positions of words; a text that fails it may still be
    an answer.
    """

    name: str
    is_asked: Callable[[Question], object]
    is_in: Callable[[QuotedText], bool]
    is_worded: bool = False


def types_asked_for(question: Question) -> Sequence[AnswerType]:
    return [each for each in ANSWER_TYPES if each.is_asked(question)]


def _says_something(quoted: QuotedText) -> bool:
    """Whether the quotation has a word that the question lacks.

    Numbers are ignored: they may be section numbers.
    """
    return any(not word.isdigit() and word not in quoted.question.stems for word in stems(quoted.texts[0]))


def _has_amount(quoted: QuotedText) -> bool:
    amount = quoted.question.amount
    return amount is None or any(map(amount.is_in, quoted.texts))


def _has_entity(quoted: QuotedText) -> bool:
    entity = quoted.question.entity
    return entity is None or any(map(entity.has.search, quoted.texts))


def _keeps_direction(quoted: QuotedText) -> bool:
    asked = quoted.question.directions
    return not any(is_opposite(asked, directions_of(text)) for text in quoted.texts)


def _has_count(quoted: QuotedText) -> bool:
    """Whether the quotation gives the number of the counted thing.

    If the text has both the thing and numbers, a sentence that mentions the thing must have a number or
    precede a sentence with one. If a sentence has a number next to the thing, this sentence, the one before
    it and the headings must together contain half of the other named words.
    """
    question = quoted.question
    words = [word for word in question.counted if word in question.named]
    if not words:
        return True
    if not quoted.known(words) or not _counts_time_of(quoted, words):
        return False
    others = question.named - frozenset(words)
    thing = [frozenset({word}) | quoted.other_words(word) for word in words]
    spans = [span.text for span in spans_of(quoted.texts[0])]
    # The previous sentence may name the thing: “Leave is booked early. It is 27 days.”
    named_so = {words[0], *(thing[0] - _UNITS)}  # a synonym that is a unit does not name the thing
    mentions = {place for place, text in enumerate(spans) if not named_so.isdisjoint(held_stems(text))}
    with_number = [place for place, text in enumerate(spans) if has_number(text)]
    if mentions and with_number and mentions.isdisjoint({*with_number, *(at - 1 for at in with_number)}):
        return False
    numbered = [
        " ".join(spans[max(0, place - 1) : place + 1])
        for place, text in enumerate(spans)
        if counts(thing, text)
    ]
    if _MASS.search(question.text) and any(has_money(spans[place]) for place in mentions):
        return True  # “How much deposit do I pay?”
    if numbered:
        return any(
            2 * quoted.known(others, held_stems(text) | quoted.headings) >= len(others) for text in numbered
        )
    if not _UNITS & frozenset(words) and not has_bare_number(quoted.texts[0]):
        return False  # the numbers count units such as hours or pounds
    if _UNITS & frozenset(words) or _MASS.search(question.text):
        return True  # the text may have the number in a table or in other words
    below = frozenset(words) | others
    return any(
        2 * quoted.known(below, held_stems(text) | held_stems(quoted.texts[-1])) > len(below)
        for text in spans
        if has_bare_number(text)
    )


def _counts_time_of(quoted: QuotedText, words: Sequence[str]) -> bool:
    """Whether a sentence about the thing gives a length of time, if the question asks for one.

    Days of vacation do not answer “How many sick days”. A sentence about parental leave that only has a
    notice period does not answer “How many parental leave days”.
    """
    thing = [word for word in words if word not in _UNITS]
    if not thing or _TIME_UNITS.isdisjoint(words) or _ADVANCE.search(quoted.question.text):
        return True
    return _is_said_of(thing, quoted, has_duration)


def _states_amount(quoted: QuotedText) -> bool:
    """Whether a sentence gives the amount and is about the thing that was asked for."""
    amount = quoted.question.amount
    return amount is None or _is_said_of(quoted.question.named, quoted, amount.is_said)


def _is_said_of(thing: Collection[str], quoted: QuotedText, is_said: Callable[[str], bool]) -> bool:
    """Whether a sentence for which `is_said` is true is about the thing.

    The sentence, the one before it, and the headings together must have half of the thing's words. Otherwise
    the amount probably belongs to another thing.
    """
    spans = [span.text for span in spans_of(quoted.texts[0])]
    return any(
        2 * quoted.known(thing, held_stems(f"{before} {text}") | quoted.headings) >= len(thing)
        for before, text in pairwise(["", *spans])
        if is_said(text)
    )


def _has_deed(quoted: QuotedText) -> bool:
    """Whether the quotation has the verb of a question such as “Who approves …?”, or its synonym."""
    text = quoted.texts[0]
    words = held_stems(text)
    return all(
        has_deed(deed, text) or not words.isdisjoint(quoted.other_words(deed) | _PAYS.get(deed, _NO_WORDS))
        for deed in quoted.question.deed
    )


def _names_deed(quoted: QuotedText) -> bool:
    """Whether the quotation has the verb of a question such as “Can I smoke …?”.

    A synonym of the verb only counts in a text with a word such as “allowed”.
    """
    asked = quoted.question.permission
    return asked <= quoted.stems or (
        quoted.known(asked) == len(asked) and bool(_PERMITS.search(quoted.texts[0]))
    )


def _has_words_together(quoted: QuotedText) -> bool:
    """Whether words that are adjacent in the question (“travel time”) are near each other in the text.

    For “travel time”, a text with “part-time … or world travel” fails. Pairs of which the text lacks a word
    are not checked.
    """
    return all(
        any(abs(distance) <= TOGETHER for distance in distances) for distances in quoted.pair_distances
    )


def _names_compound(quoted: QuotedText) -> bool:
    """Whether no pair of words (“company car”) occurs only in reverse (“car companies”).

    Always True for a row, because the order of cells has no meaning.
    """
    return bool(_CELL.search(quoted.texts[0])) or not any(
        -1 in distances and not any(0 < distance <= TOGETHER for distance in distances)
        for distances in quoted.pair_distances
    )


def _has_head(quoted: QuotedText) -> bool:
    """Whether the text or heading has the noun that is asked about (`Question.head`).

    The title does not count, because it may name the organisation.
    """
    words, _, *headings = (*quoted.texts, "")
    head = quoted.question.head
    return quoted.known(head, held_stems(" ".join((words, *headings)))) == len(head)


def _has_extreme(quoted: QuotedText) -> bool:
    """Whether the quotation has a superlative, a limit, or a numeric column that is asked for."""
    text, named = quoted.texts[0], quoted.question.named
    if SUPERLATIVE.search(text) or _EXTREME.search(text):
        return True
    return any(not stems(column[1]).isdisjoint(named) for column in _NUMBER_COLUMN.finditer(text))


def _gives_rule(quoted: QuotedText) -> bool:
    """Whether the quotation says that something is allowed, forbidden, required or usual.

    “Tell us if you find someone sleeping here” does not. In the title and heading, only words such as
    “forbidden” count.
    """
    return bool(_RULE.search(quoted.texts[0]) or _PERMITS.search(" ".join(quoted.texts)))


def _keeps_time(quoted: QuotedText) -> bool:
    """Whether the text is not only about the time before or after the event asked about.

    “Two months before the holidays” does not say what happens during the holidays.
    """
    text = quoted.texts[0]
    for match in _NAMES_TIME.finditer(quoted.question.own):
        named = stem(match[1].lower())
        if named not in quoted.question.named:
            continue
        places = [each.start() for each in _WORD.finditer(text) if stem(each[0].lower()) == named]
        if places and all(_IS_OUTSIDE.search(text[max(0, place - NEAR_TIME) : place]) for place in places):
            return False
    return True


def _is_one_thing(quoted: QuotedText) -> bool:
    """Whether the question's two words name one thing in the text, if it has both.

    For “What is the sick pay?”, a text with “the pay of the sick” passes.
    """
    order = quoted.order
    for first, second in quoted.question.pairs:
        places = [[at for at, each in enumerate(order) if word in each] for word in (first, second)]
        if all(places) and not any(
            0 < later - place <= NEXT_TO
            or (0 < place - later <= NEXT_TO and any(_OF & each for each in order[later:place]))
            for place in places[0]
            for later in places[1]
        ):
            return False
    return True


def _asks_one_thing(question: Question) -> bool:
    return bool(_WHAT_IS.match(question.own)) and len(question.pairs) == 1 and len(question.named) == 2


ANSWER_TYPES = (
    AnswerType("statement", lambda question: not question.asks_amount, _says_something),
    AnswerType("amount", lambda question: question.amount, _has_amount),
    AnswerType(
        "next date",
        lambda question: _NEXT_TIME.search(question.own),
        lambda quoted: has_date(quoted.texts[0]),
    ),
    AnswerType(
        "stated amount", lambda question: question.asks_amount and not question.counted, _states_amount
    ),
    AnswerType(
        "price of the thing",
        lambda question: question.amount and question.amount.is_money,
        lambda quoted: not quoted.question.is_about_office(offices_in(quoted.texts[0])),
    ),
    AnswerType(
        "person",
        lambda question: question.asks_who_does,
        lambda quoted: says_who(quoted.question.text, quoted.texts[0]) and _has_deed(quoted),
    ),
    AnswerType(
        "person in German",
        lambda question: question.language == "german" and question.asks_who,
        lambda quoted: says_who_does(quoted.question.own, quoted.texts[0]),
    ),
    AnswerType(
        "place",
        lambda question: question.asks_where and not question.asks_amount,
        lambda quoted: any(map(has_place, quoted.texts)),
    ),
    AnswerType("entity", lambda question: question.entity, _has_entity),
    AnswerType("direction", lambda question: question.directions, _keeps_direction),
    AnswerType(
        "definition",
        lambda question: question.asks_definition,
        lambda quoted: gives_definition(quoted.question.text, quoted.texts),
    ),
    AnswerType(
        "instruction",
        lambda question: question.asks_how_to,
        lambda quoted: says_how(quoted.question.own, quoted.texts[0]),
    ),
    AnswerType(
        "what to do",
        lambda question: question.asks_what_to_do,
        lambda quoted: tells_to(quoted.texts[0]),
    ),
    AnswerType(
        "joining",
        lambda question: _ASKS_JOINING.search(question.original or question.own),
        lambda quoted: bool(_JOINING.search(quoted.texts[0])),
    ),
    AnswerType("words together", lambda question: question.pairs, _has_words_together, is_worded=True),
    AnswerType("compound", lambda question: question.pairs, _names_compound),
    AnswerType("count", lambda question: question.counted, _has_count),
    AnswerType("extreme", lambda question: question.asks_extreme, _has_extreme),
    AnswerType(
        "negated case",
        lambda question: question.is_negated,
        lambda quoted: any(map(_NEGATIVE.search, quoted.texts)),
    ),
    AnswerType(
        "permission",
        lambda question: question.permission,
        lambda quoted: (
            _names_deed(quoted)
            and bool(quoted.known(quoted.question.permitted)) >= bool(quoted.question.permitted)
        ),
    ),
    AnswerType("rule", lambda question: question.permission, _gives_rule),
    AnswerType(
        "end",
        lambda question: question.asks_amount and _ASKS_END.search(question.own),
        lambda quoted: bool(_END.search(quoted.texts[0])),
    ),
    AnswerType("time", lambda question: question.asks_amount, _keeps_time),
    AnswerType("one thing", _asks_one_thing, _is_one_thing),
    AnswerType(
        "first noun",
        lambda question: question.head,
        _has_head,
    ),
)
