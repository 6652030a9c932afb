"""Selects the sentences of passages that best answer a question, without a language model.

The score of a sentence mainly depends on the question's words in it and around it (in the previous sentence,
heading, title and passage), on the search score of its passage, on its similarity to the question, and on
whether it has the kind of thing asked for.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from chat.quoting.questions.amounts import counts, numbers_of
from chat.quoting.questions.applicability import is_opposite
from chat.quoting.questions.entities import has_name, has_place
from chat.quoting.questions.instructions import tells_to
from chat.quoting.questions.question import Question
from ingestion.embedding import runs_here
from ingestion.search.definitions import states
from ingestion.search.rough_stems import held_stems, weak_stems

from .sentence_features import Quotable, QuotableSentence, sentences_of, vectors_of

MIN_SHARE = 0.25  # share of the question's words that a sentence and its surroundings must have
AROUND = 0.5  # weight of a word in the previous sentence, the heading or the title
IN_PASSAGE = 0.15  # weight of a word elsewhere in the passage
PASSAGE = 0.6  # weight of the passage's search score
LIKENESS = 0.3  # weight of the similarity to the question
KIND = 0.15  # weight of the kind of thing asked for
HEADED = 0.12  # weight of the question's words in the headings
TOPIC = 0.15  # bonus if the innermost heading has all words of the question and no others (`is_topic`)
OPENS = 0.15  # bonus for the first sentence below such a heading, unless it lacks an amount that is asked for
ENTITY = 0.4  # bonus for a telephone number, a form, an address or “free” if it is asked for (`Entity.rare`)
CONDITION = 0.2  # penalty for a condition that the question does not mention: “If a guest is ill, …”
CASE = 0.3  # bonus for the question's case (“… if I am ill”), also in the heading; affects only the order
NAMED_ROW = 0.06  # bonus for a row about something that the question names; affects only the order
DEFINES = 0.2  # bonus for a definition of the thing asked for
NO_ANSWER = 0.2  # penalty for a sentence that refers elsewhere, is cut off, or introduces missing content
ELSEWHERE = 0.5  # penalty for a sentence that only says where the answer can be found
OUTSIDERS = 0.1  # penalty for a text about passengers, customers, … whom the question does not mention
HISTORY = 0.5  # penalty for a list of changes, or of contents, unless the question asks for it
# Penalty for a sentence about another direction or name than the one asked for; also for one whose passage
# lacks `Question.subject`.
OPPOSITE = 0.5
OFFICE = 0.5  # penalty if the thing whose price is asked for is only in an office's name: “the travel desk”
ADDED = 0.5  # bonus for the term that a follow-up question adds: “and for crews?”
EARLIER = 0.5  # factor for a word that only earlier questions have
SYNONYM = 0.6  # factor for a synonym of a word
LISTS = 0.1  # bonus for a lead-in with its list if the question may ask for several things
LITERAL = 0.1  # bonus for a path or a name with symbols, written as in the question
WEAK = 0.25  # factor for a word that does not name the subject, such as a verb
COUNTED = 0.3  # bonus for a sentence that answers “how many”; affects only the order
NEXT_KIND = 0.6  # factor for KIND if only the next sentence has the kind of thing asked for
NEARLY = 0.7  # minimum score of further sentences of a passage, as a share of its best sentence's score

_Choice = tuple[int, QuotableSentence]  # a sentence with the index of its passage


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence to quote: `text` is at start:end of a passage's content.

    `passage` is the index of the passage. `is_counted` says whether the sentence has a number of the things
    that “how many” asks for.
    """

    passage: int
    start: int
    end: int
    text: str
    score: float
    is_counted: bool = False


def best_sentences(
    question: Question, passages: Sequence[Quotable], count: int = 2, other_rows: Collection[str] = ()
) -> list[Sentence]:
    """At most `count` sentences, best first, without duplicates; none if nothing is relevant.

    Words of earlier questions and synonyms count less, and so do sentences of passages without any word of
    `Question.subject`. `other_rows` has the texts of table rows about another name, day or direction than
    the one asked for; they get a penalty.
    """
    best: dict[str, Sentence] = {}
    for sentence in _judged(question, passages, other_rows):
        best.setdefault(sentence.text, sentence)
        if len(best) == count:
            break
    return list(best.values())


def sentences_of_each(
    question: Question, passages: Sequence[Quotable], other_rows: Collection[str] = ()
) -> list[list[Sentence]]:
    """All sentences of each passage, best first, including irrelevant ones."""
    found: list[list[Sentence]] = [[] for _ in passages]
    for sentence in _judged(question, passages, other_rows, everything=True):
        found[sentence.passage].append(sentence)
    return found


def best_sentences_per_passage(
    question: Question, passages: Sequence[Quotable], count: int = 2
) -> list[list[Sentence]]:
    """The best sentences of every passage, at most `count`, in the order of the text.

    Each must be nearly as good as the best one of its passage. The list is empty for a passage without
    sentences.
    """
    found: list[list[Sentence]] = [[] for _ in passages]
    for sentence in _judged(question, passages, everything=True):
        chosen = found[sentence.passage]
        if not chosen or (len(chosen) < count and sentence.score >= NEARLY * chosen[0].score):
            chosen.append(sentence)
    return [sorted(chosen, key=lambda sentence: sentence.start) for chosen in found]


def shared_words(question: Question, text: str) -> float:
    """The share of the question's content words that `text` has, counting synonyms."""
    wanted = question.stems - weak_stems()
    held = held_stems(text)
    shared = sum(word in held or bool(question.other_words(word) & held) for word in wanted)
    return shared / (len(wanted) or 1)


def _judged(
    question: Question,
    passages: Sequence[Quotable],
    other_rows: Collection[str] = (),
    *,
    everything: bool = False,
) -> list[Sentence]:
    """The relevant sentences, best first; with `everything`, all sentences."""
    choices = [(index, each) for index, passage in enumerate(passages) for each in sentences_of(passage)]
    if not choices or not (question.wanted or everything):
        return []
    # With `everything`, an embedding server is not asked, because it would take too long.
    if everything and not runs_here():
        likeness = [0.0] * len(choices)
    else:
        asked, vectors = vectors_of(passages, question.text)
        likeness = [float(value) for value in vectors @ asked]
    scoring = _Scoring(question, choices, other_rows)
    judged: list[tuple[float, Sentence]] = []
    for (index, each), alike in zip(choices, likeness, strict=True):
        if everything or scoring.is_relevant(each):
            score = scoring.score(each, passages[index].score, alike)
            is_named, counted = scoring.is_named_row(each), counts(question.counted_forms, each.text)
            is_other = bool(each.names) and not is_named
            is_counted = bool(counted) and not (is_other and not scoring.names_column(each))
            sentence = Sentence(index, each.span.start, each.span.end, each.text, score, is_counted)
            # These bonuses affect the order, but not the score. A number is ignored in a row about another
            # thing, such as another reason for leave.
            first = COUNTED * counted * (not is_other) + NAMED_ROW * is_named + CASE * scoring.case(each)
            judged.append((score + first, sentence))
    return [sentence for _, sentence in sorted(judged, key=lambda each: -each[0])]


class _Scoring:
    """Scores sentences for a question, whose words weigh more if fewer of the sentences have them."""

    def __init__(self, question: Question, choices: Iterable[_Choice], other_rows: Collection[str]) -> None:
        self.question = question
        self.other_rows = other_rows
        wanted = question.wanted
        weights = _weights(wanted, [each for _, each in choices])
        for word in wanted.keys() - question.own_stems:
            weights[word] *= EARLIER
        for word in wanted.keys() & (weak_stems() | question.asking):
            weights[word] *= WEAK
        self.terms = [(word, wanted[word], weight) for word, weight in weights.items()]
        self.total = sum(weights.values()) or 1.0
        self.forms = {
            word: frozenset({word}) | others for word, others in wanted.items() if word not in weak_stems()
        }
        self.known_forms = frozenset[str]().union(*self.forms.values())
        self.others = frozenset[str]().union(*wanted.values())
        self.asked = wanted.keys() | self.others
        self.names = self.asked | numbers_of(question.text)
        of_subject = (self.forms.get(word, frozenset()) for word in question.subject_stems)
        self.stays_with = frozenset[str]().union(*of_subject)

    def is_relevant(self, sentence: QuotableSentence) -> bool:
        """Whether the sentence and its surroundings have enough of the question's words."""
        near, wanted = sentence.near, self.question.wanted
        known = sum(word in near or not others.isdisjoint(near) for word, others in wanted.items())
        return known >= MIN_SHARE * len(wanted)

    def score(self, sentence: QuotableSentence, of_passage: float, alike: float) -> float:
        question, text = self.question, sentence.text
        kind = self.kind(sentence)
        is_topic = self.is_topic(sentence.topic)
        opens = is_topic and sentence.opens and (not question.asks_amount or kind == 1.0)
        own = sentence.words | sentence.topic if opens else sentence.words
        entity = question.entity
        return (
            self.share(sentence, own)
            + PASSAGE * of_passage
            + LIKENESS * alike
            + KIND * kind
            + LISTS * (sentence.has_list and question.asks_list)
            + HEADED * self.held(sentence.headings)
            + TOPIC * is_topic
            + OPENS * opens
            + ENTITY * bool(entity and entity.rare.search(text))
            - CONDITION * self.unasked_condition(sentence)
            + ADDED * self.added(sentence)
            + DEFINES * states(question.defined_thing, text, sentence.headings)
            + LITERAL * any(f" {literal}" in f" {text}" for literal in question.literals)
            - NO_ANSWER * (sentence.is_cut or sentence.is_pointer)
            - ELSEWHERE * sentence.is_elsewhere
            - OPPOSITE * (text in self.other_rows or is_opposite(question.directions, sentence.directions))
            - OPPOSITE * (bool(self.stays_with) and self.stays_with.isdisjoint(sentence.everywhere))
            - HISTORY * (bool(sentence.history) and self.asked.isdisjoint(sentence.history))
            - OFFICE * question.is_about_office(sentence.offices)
            - OUTSIDERS * question.is_for_others(sentence.outsiders, self.others)
        )

    def is_named_row(self, sentence: QuotableSentence) -> bool:
        """Whether the sentence is a row, and the question has all words of one of its names."""
        return any(name and name <= self.names for name in sentence.names)

    def names_column(self, sentence: QuotableSentence) -> bool:
        """Whether the question has all words of one of the row's column names."""
        return any(column and column <= self.asked for column in sentence.columns)

    def share(self, sentence: QuotableSentence, own: frozenset[str]) -> float:
        """The weighted share of the question's words in the sentence (`own`) and around it."""
        got = 0.0
        around, everywhere = sentence.around, sentence.everywhere
        for word, others, weight in self.terms:
            if word in own:
                got += weight
            elif not others.isdisjoint(own):
                got += weight * SYNONYM
            elif word in around:
                got += weight * AROUND
            elif not others.isdisjoint(around):
                got += weight * (SYNONYM * AROUND)
            elif word in everywhere:
                got += weight * IN_PASSAGE
            elif not others.isdisjoint(everywhere):
                got += weight * (SYNONYM * IN_PASSAGE)
        return got / self.total

    def held(self, words: frozenset[str]) -> float:
        """The weighted share of the question's words that are among `words`."""
        got = 0.0
        for word, others, weight in self.terms:
            if word in words:
                got += weight
            elif not others.isdisjoint(words):
                got += weight * SYNONYM
        return got / self.total

    def kind(self, sentence: QuotableSentence) -> float:
        """Whether the sentence has the number, place, name or instruction asked for.

        1.0 if it has one, NEXT_KIND if only the next sentence does, otherwise 0.0.
        """
        question, after = self.question, sentence.following
        amount = question.amount if question.asks_amount else None
        if amount:
            if amount.is_stated(sentence.text):
                return 1.0
            return NEXT_KIND * bool(after and amount.is_stated(after.text))
        if question.asks_where:
            return 1.0 if sentence.has_place else NEXT_KIND * bool(after and has_place(after.text))
        if question.asks_who:
            return 1.0 if sentence.has_name else NEXT_KIND * bool(after and has_name(after.text))
        if question.asks_what_to_do:
            return 1.0 if tells_to(sentence.text) else NEXT_KIND * bool(after and tells_to(after.text))
        return 0.0

    def added(self, sentence: QuotableSentence) -> float:
        """The share of the words of `Question.added` in the sentence and its heading.

        For a row, the heading does not count; for a row in `other_rows`, the result is 0.
        """
        if sentence.text in self.other_rows:
            return 0.0
        words = sentence.words if sentence.span.is_row else sentence.words | sentence.topic
        added = self.question.added
        known = sum(
            1.0 if word in words else SYNONYM * (not self.forms.get(word, frozenset()).isdisjoint(words))
            for word in added
        )
        return known / len(added) if added else 0.0

    def is_topic(self, topic: frozenset[str]) -> bool:
        """Whether a heading has all words of the question, or their synonyms, and no others.

        Weak words (`weak_stems`) are ignored.
        """
        return (
            bool(topic)
            and topic <= self.known_forms
            and not any(forms.isdisjoint(topic) for forms in self.forms.values())
        )

    def case(self, sentence: QuotableSentence) -> float:
        """How well the sentence matches the question's case, plus 1 if its heading names only this case.

        The share of the case's words is squared, because a single word hardly tells one case from another.
        0 if the sentence lacks the kind of thing asked for.
        """
        asked = self.question.case
        if not asked or (self.question.asks_kind and not self.kind(sentence)):
            return 0.0
        forms = [self.forms.get(word, frozenset({word})) for word in asked]
        share = sum(not each.isdisjoint(sentence.case) for each in forms) / len(forms)
        topic = sentence.topic
        is_headed = topic <= frozenset().union(*forms) and not any(map(topic.isdisjoint, forms))
        return share * share + is_headed

    def unasked_condition(self, sentence: QuotableSentence) -> float:
        """The share of the words in the sentence's condition that neither question nor headings have."""
        words = sentence.condition
        return len(words - self.asked - sentence.headings) / len(words) if words else 0.0


def _weights(wanted: Mapping[str, frozenset[str]], sentences: Sequence[QuotableSentence]) -> dict[str, float]:
    """Weights of the question's words: higher for words in fewer of the sentences."""
    total = len(sentences)
    weights = {}
    for word, others in sorted(wanted.items()):
        found = sum(word in each.words or not others.isdisjoint(each.words) for each in sentences)
        weights[word] = math.log(1 + (total - found + 0.5) / (found + 0.5))
    return weights
