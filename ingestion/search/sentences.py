"""Selects the sentences of found passages that best answer a question, quoted without a language model.

A sentence is scored by the question's words in it and around it (the sentence before, its heading and title,
its passage), by its similarity to the question, and by whether it has the kind of thing asked for.
"""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ingestion.embedding import BUILT_IN_NAME, embedder, runs_here

from .amounts import asking_words, asks_amount, counted, counts, has_amount, has_number
from .audiences import is_for_outsiders
from .definitions import defined_thing, states
from .exact_kinds import exact_kind, unasked_condition
from .rough_stems import first_part, held_stems, stems, weak_stems
from .sentence_splitting import (
    Span,
    split_sentences,
)
from .translations import stems_of_question
from .who_and_where import asks_where, has_place

MIN_SHARE = 0.25  # of the question's words that a sentence and its surroundings must have
AROUND = 0.5  # weight of a word in the sentence before, the heading or the title
IN_PASSAGE = 0.15  # weight of a word elsewhere in the passage
PASSAGE = 0.6  # weights of the passage's own score, of similarity, and of the kind of thing asked for
LIKENESS = 0.3
KIND = 0.15
HEADED = 0.12  # weight of the question's words in the headings
TOPIC = 0.15  # bonus if the innermost heading is what the question names
OPENS = 0.15  # bonus for the first sentence below such a heading, unless an amount is asked for
EXACT_KIND = 0.4  # bonus for a telephone number, a form or an address if one is asked for
CONDITION = 0.2  # malus for a case that the question does not mention: “If a guest is ill, …”
DEFINES = 0.2  # bonus for a definition of the thing asked for
NO_ANSWER = 0.2  # malus for a sentence that refers elsewhere, was cut off, or introduces missing content
ELSEWHERE = 0.5  # malus for a sentence that says only where the answer is
OUTSIDERS = 0.1  # malus for a text about passengers, customers, … whom the question does not mention
OPPOSITE = 0.5  # malus for the other direction, or a row about another name, than the one asked for
EARLIER = 0.5  # weight of a word that only earlier questions have
SYNONYM = 0.6  # weight of another word for one of the question's
LISTS = 0.1  # bonus for a lead-in with its list if several things are asked for
LITERAL = 0.1  # bonus for a path or a name with symbols, written as in the question
WEAK = 0.25  # weight of a word that only says what is done with the subject
COUNTED = 0.3  # bonus for a number of the counted thing if “how many” of it are asked for
NEXT_KIND = 0.6  # of KIND, if the next sentence has the requested number
MIN_CONTENTS = 4  # numbered titles of a table of contents
MAX_TITLE = 60  # characters of each, on average
BARE_WORDS = 5  # a list item with no more words means nothing by itself
NEARLY = 0.7  # of the score of a passage's best sentence

_SEVERAL = re.compile(r"\s*(?:what|which)\b|\bwelche\b", re.IGNORECASE)
_PERSON = re.compile(r"\b(who|whom|whose|wer|wem|wen)\b", re.IGNORECASE)
_DIRECTION = re.compile(
    r"\b(?:(?P<away>[Ff]rom|[Vv]on|[Aa]b|[Aa]us)|[Tt]o|[Nn]ach)\b:? "
    r"(?P<place>[A-ZÄÖÜ][\w-]+(?: [A-ZÄÖÜ][\w-]+)*)"
)
_LEAVES_FOR = re.compile(
    r"\b(?:leaves?|leaving|departs?|departing|sails?|sailing) (?:from )?"
    r"(?P<start>[A-Z][\w-]+(?: [A-Z][\w-]+)*) for (?=[A-Z])"
)
_POINTER = re.compile(
    r"(?:please )?(?:see|refer to|read|consult|siehe|vgl)\b"
    r"|(?:for )?(?:more|further|detailed) (?:details|information)\b",
    re.IGNORECASE,
)
# “How long you are paid is set out on the next page.”
_ELSEWHERE = re.compile(
    r"\b(?:is|are) (?:(?:set out|described|explained|dealt with|listed|found|given) )?(?:on|in) "
    r"(?:the|another|a) (?:\w+ ){0,2}(?:page|section|chapter|document|guide|manual|handbook)\b"
    r"|\b(?:steht|stehen|finden Sie) (?:auf|in) de[rmn] (?:\w+ ){0,2}"
    r"(?:Seite|Abschnitt|Kapitel|Dokument|Handbuch)\b"
    r"|\bon the (?:next|previous|following) page[.:]?\Z"
)
_NAME = re.compile(r"(?<=[a-z,] )[A-Z]\w+")
_WORD = re.compile(r"\w+")
_LEADER = ". . . ."
_CONTENTS_LINE = re.compile(r"\b\d{1,3}(?:\.\d{1,3}){1,4}\.? [^\Wa-zäöü\d_]")
_QUOTES = ".,;:?!\"'“”‘’()"
_QUESTION_MARKS = ("?", "？")


Synonyms = Mapping[str, Sequence[str]]  # other words for phrases of a question


class Quotable(Protocol):
    """What the functions here need of a passage."""

    @property
    def title(self) -> str: ...

    @property
    def heading(self) -> str: ...

    @property
    def content(self) -> str: ...

    @property
    def score(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Sentence:
    """A quotation: `text` is at start:end of the content of the passage with that index."""

    passage: int
    start: int
    end: int
    text: str
    score: float


@dataclass(frozen=True, slots=True)
class _Choice:
    """A sentence to be scored, with the words in it, around it and in its passage."""

    passage: int
    span: Span
    words: frozenset[str]
    around: frozenset[str]
    everywhere: frozenset[str]
    headings: frozenset[str]
    topic: frozenset[str]  # of the innermost heading
    following: str  # the next sentence of the same paragraph
    has_list: bool  # whether it introduces a list or table
    cut: bool  # whether it is incomplete, or introduces something that the passage lacks
    opens: bool  # whether it is the first one below its heading

    def share(
        self, wanted: Mapping[str, frozenset[str]], weights: Mapping[str, float], own: frozenset[str]
    ) -> float:
        """The weighted share of the question in the sentence, with the words `own`, and around it."""
        got = 0.0
        for word, weight in weights.items():
            places = (own, 1.0), (self.around, AROUND), (self.everywhere, IN_PASSAGE)
            found = [part for words, part in places if word in words]
            found += [SYNONYM * part for words, part in places if wanted[word] & words]
            got += weight * max(found, default=0.0)
        return got / (sum(weights.values()) or 1.0)

    def kind(self, question: str) -> float:
        """Whether it has what the question asks for, a number or a name; for less, the next sentence."""
        if _has_kind(question, self.span.text):
            return 1.0
        return NEXT_KIND * _has_kind(question, self.following)


def best_sentences(
    question: str,
    passages: Sequence[Quotable],
    count: int = 2,
    earlier: str = "",
    synonyms: Synonyms | None = None,
    other_rows: Collection[str] = (),
    subject: str = "",
) -> list[Sentence]:
    """At most `count` sentences, best first, without duplicates; none if nothing is relevant.

    `earlier` has the questions that this one refers to, and `synonyms` other words for phrases of the
    question; both count less. `other_rows` has the texts of rows about something else (`named_rows`), and
    `subject` the earlier question that this one goes on with, of which a passage must have something.
    """
    best: dict[str, Sentence] = {}
    for sentence in _judged(question, passages, earlier, synonyms, other_rows, subject):
        best.setdefault(sentence.text, sentence)
        if len(best) == count:
            break
    return list(best.values())


def best_sentences_per_passage(
    question: str, passages: Sequence[Quotable], count: int = 2
) -> list[list[Sentence]]:
    """The best sentences of every passage, at most `count`, in the order of its text.

    Further ones must be nearly as good as its best. None if a passage has no sentence.
    """
    found: list[list[Sentence]] = [[] for _ in passages]
    for sentence in _judged(question, passages, everything=True):
        chosen = found[sentence.passage]
        if not chosen or (len(chosen) < count and sentence.score >= NEARLY * chosen[0].score):
            chosen.append(sentence)
    return [sorted(chosen, key=lambda sentence: sentence.start) for chosen in found]


def shared_words(question: str, text: str, synonyms: Synonyms | None = None) -> float:
    """The share of the question's content words that `text` has, or other words for them."""
    wanted = stems_of_question(question) - weak_stems()
    held = held_stems(text)
    shared = sum(word in held or bool(other_words(word, synonyms or {}) & held) for word in wanted)
    return shared / (len(wanted) or 1)


def matching_words(question: str, text: str) -> list[tuple[int, int]]:
    """Positions in `text` of the words of the question, in any form, as (start, end)."""
    wanted = stems(question)
    return [match.span() for match in _WORD.finditer(text) if held_stems(match[0]) & wanted]


def _judged(
    question: str,
    passages: Sequence[Quotable],
    earlier: str = "",
    synonyms: Synonyms | None = None,
    other_rows: Collection[str] = (),
    subject: str = "",
    *,
    everything: bool = False,
) -> list[Sentence]:
    """The relevant sentences, best first; with `everything` also barely relevant ones."""
    asked = stems_of_question(question)
    words = asked | stems_of_question(earlier)
    question = f"{earlier} {question}".strip()
    wanted = {word: other_words(word, synonyms or {}) | first_part(word) for word in words}
    choices = [choice for index, passage in enumerate(passages) for choice in _choices(index, passage)]
    if not choices or not (wanted or everything):
        return []
    is_amount = asks_amount(question)
    kind = exact_kind(question)
    weights = _weights(wanted, choices)
    for word in wanted.keys() - asked:
        weights[word] *= EARLIER
    asking = asking_words(question) | (kind.asking if kind else frozenset())
    for word in wanted.keys() & (weak_stems() | asking):
        weights[word] *= WEAK
    # Too many sentences to embed them on a server.
    alike_counts = not everything or runs_here()
    likeness = _likeness(question, choices) if alike_counts else [0.0] * len(choices)
    thing = defined_thing(question)
    thing_counted = [frozenset({word}) | wanted.get(word, frozenset()) for word in counted(question)]
    literals = _literals(question)
    others_named = frozenset().union(*wanted.values())
    directions = directions_of(question)
    forms_named = {
        word: frozenset({word}) | others for word, others in wanted.items() if word not in weak_stems()
    }
    of_subject = (forms_named.get(word, frozenset()) for word in stems_of_question(subject))
    stays_with = frozenset().union(*of_subject)
    judged = []
    for choice, alike in zip(choices, likeness, strict=True):
        near = choice.words | choice.around
        known = sum(word in near or bool(others & near) for word, others in wanted.items())
        if not everything and known < MIN_SHARE * len(wanted):
            continue
        is_topic = _is_topic(choice.topic, list(forms_named.values()))
        opens = is_topic and choice.opens and (not is_amount or choice.kind(question) == 1.0)
        words = choice.words | choice.topic if opens else choice.words
        score = (
            choice.share(wanted, weights, words)
            + PASSAGE * passages[choice.passage].score
            + LIKENESS * alike
            + KIND * choice.kind(question)
            + LISTS * (choice.has_list and bool(_SEVERAL.match(question)))
            + HEADED * _held(choice.headings, wanted, weights)
            + TOPIC * is_topic
            + OPENS * opens
            + EXACT_KIND * bool(kind and kind.rare.search(choice.span.text))
            - CONDITION * unasked_condition(choice.span.text, wanted, choice.headings)
            + DEFINES * states(thing, choice.span.text, choice.headings)
            + LITERAL * any(f" {literal}" in f" {choice.span.text}" for literal in literals)
            - NO_ANSWER * (choice.cut or bool(_POINTER.match(choice.span.text)))
            - ELSEWHERE * bool(_ELSEWHERE.search(choice.span.text))
            - OPPOSITE * (choice.span.text in other_rows or is_opposite(directions, choice.span.text))
            - OPPOSITE * (bool(stays_with) and stays_with.isdisjoint(choice.everywhere))
            - OUTSIDERS
            * is_for_outsiders(question, choice.span.text, passages[choice.passage].heading, others_named)
        )
        span = choice.span
        judged.append(Sentence(choice.passage, span.start, span.end, span.text, score))
    # A number of the counted thing decides between sentences, but makes none of them surer.
    return sorted(judged, key=lambda each: -each.score - COUNTED * counts(thing_counted, each.text))


def _choices(index: int, passage: Quotable) -> list[_Choice]:
    if _is_contents(passage.content):
        return []
    named = held_stems(f"{passage.title} {passage.heading}")
    topic = stems(passage.heading.rpartition("›")[2]) - weak_stems()
    everywhere = held_stems(passage.content) | named
    choices = []
    heading: frozenset[str] = frozenset()
    above = topic
    before: frozenset[str] = frozenset()
    opens = True
    spans = split_sentences(passage.content)
    names = {_plain(passage.title), _plain(passage.heading.rpartition("›")[2])}
    for place, span in enumerate(spans):
        words = held_stems(span.text)
        if span.is_heading or _plain(span.text) in names:
            heading, above, before = words, stems(span.text) or topic, frozenset()
            opens = True
            continue
        if not span.text.endswith(_QUESTION_MARKS) and not _is_bare_item(spans, place):
            after = spans[place + 1] if place + 1 < len(spans) else None
            introduces = span.text.endswith((":", "："))
            starts_within = place == 0 and span.text[:1].islower() and not (span.is_item or span.is_row)
            choices.append(
                _Choice(
                    index,
                    span,
                    words,
                    named | heading | before,
                    everywhere,
                    named | heading,
                    above,
                    following=after.text if after and after.block == span.block else "",
                    has_list=introduces and after is not None and (after.is_item or after.is_row),
                    cut=starts_within or (introduces and after is None),
                    opens=opens,
                )
            )
        before, opens = words, False
    return choices


def _is_contents(content: str) -> bool:
    """Whether it is a table of contents: hardly anything but numbered titles."""
    titles = len(_CONTENTS_LINE.findall(content))
    return titles >= MIN_CONTENTS and titles * MAX_TITLE > len(content)


def _plain(text: str) -> str:
    return " ".join(_WORD.findall(text)).lower()


def _is_bare_item(spans: Sequence[Span], place: int) -> bool:
    """Whether it means nothing by itself: a line of a table of contents, or a short item without an
    introduction, such as the number and title of a part."""
    span = spans[place]
    if _LEADER in span.text:
        return True
    if not span.is_item or len(span.text.split()) > BARE_WORDS:
        return False
    first = place
    while first and spans[first - 1].is_item:
        first -= 1
    return first == 0 or spans[first - 1].is_heading or not spans[first - 1].text.endswith((":", "："))


def other_words(word: str, synonyms: Synonyms) -> frozenset[str]:
    """Stems of other words for a stem of the question."""
    others = (stems(" ".join(words)) for phrase, words in synonyms.items() if word in stems(phrase))
    return frozenset().union(*others) - {word}


def _weights(wanted: Mapping[str, frozenset[str]], choices: Sequence[_Choice]) -> dict[str, float]:
    """Weights of the question's words: higher for words in fewer of the sentences."""
    total = len(choices)
    weights = {}
    for word, others in sorted(wanted.items()):
        found = sum(word in choice.words or bool(others & choice.words) for choice in choices)
        weights[word] = math.log(1 + (total - found + 0.5) / (found + 0.5))
    return weights


def _likeness(question: str, choices: Sequence[_Choice]) -> Sequence[float]:
    """Cosine of each sentence with the question."""
    # A local model would take a second for that many sentences.
    name = BUILT_IN_NAME if runs_here() else ""
    vectors = np.asarray(embedder(name).embed([question, *(choice.span.text for choice in choices)]))
    return [float(value) for value in vectors[1:] @ vectors[0]]


def _held(words: frozenset[str], wanted: Mapping[str, frozenset[str]], weights: Mapping[str, float]) -> float:
    """The weighted share of the question in these words."""
    got = sum(
        weight * (1.0 if word in words else SYNONYM * bool(wanted[word] & words))
        for word, weight in weights.items()
    )
    return got / (sum(weights.values()) or 1.0)


def _is_topic(topic: frozenset[str], subject: Sequence[frozenset[str]]) -> bool:
    """Whether a heading names the question's subject and nothing else; each word with its other forms."""
    return bool(topic) and all(forms & topic for forms in subject) and topic <= frozenset().union(*subject)


def directions_of(text: str) -> frozenset[tuple[bool, str]]:
    """The places after “from” (True) and “to” (False), in German “von” and “nach”, also as columns."""
    text = _LEAVES_FOR.sub(r"from \g<start> to ", text)
    return frozenset((bool(match["away"]), match["place"].lower()) for match in _DIRECTION.finditer(text))


def is_opposite(asked: frozenset[tuple[bool, str]], text: str) -> bool:
    """Whether `text` has only the other direction of a place that the question names with one."""
    if not asked:
        return False
    there = directions_of(text)
    return any((not away, place) in there and (away, place) not in there for away, place in asked)


def _literals(question: str) -> list[str]:
    """The words with symbols: paths, file names, 401(k)."""
    words = (word.strip(_QUOTES) for word in question.split())
    return [word for word in words if len(word) > 1 and not word.replace("-", "").isalnum()]


def _has_kind(question: str, text: str) -> bool:
    """Whether `text` has a number if the question asks for one, or a name if it asks for a person."""
    if asks_amount(question):
        return has_number(text) and has_amount(question, text)
    if asks_where(question):
        return has_place(text)
    return bool(_PERSON.search(question) and _NAME.search(text))
