"""Whether a quotation answers a question, and how surely.

Its words must have what the question names, and numbers and proper names literally; a similar word counts
for less. The weights are those of a logistic regression: docs/measurements.md says on which questions, and
how often the result is right.
"""

import math
import re

import numpy as np

from chat.quoting.questions.amounts import durations_in, measures_in, stated_durations
from chat.quoting.questions.answer_types import QuotedText, types_asked_for
from ingestion.embedding.word_vectors import word_vectors
from ingestion.search.rough_stems import STOP_WORDS, forms, held_stems, stem, stems, weak_stems
from ingestion.search.stopwords import without_question_words
from ingestion.search.tokens import has_unspaced_script, plain_words, search_text
from ingestion.search.translations import without_grammar

SURE = 0.6  # from which a quotation is given as the answer
SURE_TRANSLATED = 0.9  # the same for a translated question
MIN_LIKE = 0.35  # cosine from which words count as similar
WEAK = 0.3  # weight of verbs and other words that do not name the subject
OF_DOCUMENTS = 0.8  # how much a word of documents counts for the everyday one
MIN_AS_ASKED = 0.2  # of these words, in any form, but not other words for them
MIN_CLOSE = 0.34  # of what a question names, that one of the closest passages must have: more than a third
FOUND = 1.0  # the fit of a search that is sure of its best passage
LIKELY = 1.7  # the share of what is named and the score of the search, added, of a passage that may answer
LEADING = 0.9  # the score of the search from which half of what is named is enough
MIN_SCORE = 0.5  # the score of the search from which all that is named is enough
MIN_LEAD = 0.15  # its distance to the best score of another place, for that
MIN_LED = 0.5  # of what is named, that such a passage must have
MIN_HEADED = 0.3  # and its headings
MIN_NAMED = 0.6  # of what a question names, that an answer must have to be shown as one: both of two words

# The weights of `evidence`, in its order, and the constant.
WEIGHTS = (0.9, 0.5, 3.9, -0.8, -1.3, 0.8)
CONSTANT = -6.0
MAX_FIT = 8.0  # more says no more

_NAME = re.compile(r"(?<=\w )[A-ZÀ-Þ][\w’'&.-]*(?: [A-ZÀ-Þ][\w’'&.-]*)*")
_NOT_NAMES = frozenset({"i", "i m", "i ve", "i d", "i ll"})
_PRICE = stems("cost price kostet kosten preis")
_NUMBER = re.compile(r"\b(?:[A-Za-z]+-)?\d[\w.,:-]*\b")


def answers(quoted: QuotedText, share: float = MIN_NAMED) -> bool:
    """Whether it has this share of what its question names, and every kind of thing that it asks for."""
    if not quoted.texts:
        return False
    question = quoted.question
    named = question.named
    if question.asks_difference:
        share = 1.0
    return (
        quoted.known(named) >= share * len(named)
        and (len(named) < 2 or quoted.known_as_asked >= MIN_AS_ASKED * len(named))
        and all(each.is_in(quoted) for each in types_asked_for(question))
    )


def is_close(quoted: QuotedText, fit: float) -> bool:
    """Whether it has enough of what its question names for passages to be shown that may not answer.

    If the search, of which `fit` is the result, is sure of its best passage, this may be in other words. Of a
    question that only asks for one thing of another (“the capital of France”), it must have both: a rate for
    capital cities says nothing about France.
    """
    question = quoted.question
    needed = [question.object]
    if question.asks_head:
        needed += [question.head, question.named - question.head]
    if any(words and not quoted.known(words) for words in needed):
        return False
    named = question.named
    # A translation may lack a word that the quotation has in another language.
    return question.is_translated or fit >= FOUND or quoted.known(named) >= MIN_CLOSE * len(named)


def is_likely(quoted: QuotedText, score: float, lead: float) -> bool:
    """Whether a passage that does not clearly answer may be introduced as one that may.

    It has the numbers of the question, every kind of thing that it asks for, and nearly all of what it names;
    half is enough if the search clearly prefers it to all others and its headings are about the subject.
    `score` is that of the search, `lead` its distance to the best score of another place.
    """
    if _lacks_number(quoted, compared=True) or not all(
        each.is_in(quoted) for each in types_asked_for(quoted.question)
    ):
        return False
    known = _known(quoted)
    named = quoted.question.named
    # Other words for those of the question may mean something else.
    if lead <= -MIN_LEAD and quoted.known_as_asked < len(named) and not quoted.question.is_translated:
        return False
    if (known == 1 and score >= MIN_SCORE) or known + score >= LIKELY:
        return True
    headed = quoted.known(named, held_stems(quoted.texts[-1])) / max(1, len(named))
    return known >= MIN_LED and headed >= MIN_HEADED and score >= LEADING and lead >= MIN_LEAD


def is_preferred(quoted: QuotedText, score: float, fit: float, lead: float, *, is_only: bool) -> bool:
    """Whether a passage may answer although words that are adjacent in the question are far apart in it.

    The search clearly prefers it to all others and it is sure enough for an answer, or it is the only one
    that was found and has most of what the question names. It has the names and numbers of the question, and
    every kind of thing that it asks for. `score` and `fit` are those of `confidence`, `lead` of `is_likely`.
    """
    question = quoted.question
    asked = (each for each in types_asked_for(question) if not each.is_worded)
    if (
        _lacks_name(quoted)
        or _lacks_number(quoted, compared=True)
        or not all(each.is_in(quoted) for each in asked)
    ):
        return False
    if is_only and fit >= FOUND and _known(quoted) >= MIN_NAMED:
        return True
    return lead >= MIN_LEAD and confidence(quoted, score, fit) >= SURE


def _known(quoted: QuotedText) -> float:
    """The share of what the question names. If it has a price, it need not have that word, nor a number that
    it compares with others."""
    question = quoted.question
    needless = stems(" ".join(_compared(quoted)))
    if question.amount and question.amount.is_in(quoted.texts[0]):
        needless |= _PRICE
    needless &= question.named
    return (len(needless) + quoted.known(question.named - needless)) / max(1, len(question.named))


def confidence(quoted: QuotedText, score: float, fit: float) -> float:
    """The probability (0..1) that a quotation answers; from `SURE` on it may be called the answer.

    `score` is that of its best sentence, and `fit` that of the search (`SearchResult.fit`).
    """
    held = evidence(quoted, score, fit)
    return 1 / (1 + math.exp(-CONSTANT - sum(map(float.__mul__, WEIGHTS, held))))


def is_sure(quoted: QuotedText, score: float, fit: float) -> bool:
    """Whether it may be called the answer: it has all numbers of the question, and `confidence`."""
    least = SURE_TRANSLATED if quoted.question.is_translated else SURE
    return not _lacks_number(quoted) and confidence(quoted, score, fit) >= least


def evidence(quoted: QuotedText, score: float, fit: float) -> list[float]:
    """What speaks for and against a quotation: the two scores, the share of the question's words that it has,
    whether it lacks a name or a number of the question, and the logarithm of the number of words."""
    question = quoted.question
    asked = search_text(without_question_words(question.text), stored=False).split()
    asked = [
        word for word in dict.fromkeys(without_grammar(asked, question.language)) if word not in STOP_WORDS
    ]
    text = f" {plain_words(' '.join(quoted.texts))} "
    held = list(dict.fromkeys(search_text(text, stored=False).split()))
    found = {each for word in held for each in forms(word)}
    met = [float(stem(word) in found) for word in asked]
    weights = [WEAK if stem(word) in weak_stems() else 1.0 for word in asked]
    total = sum(weights) or 1.0
    for phrase, others in question.synonyms.items():
        if any({stem(part) for part in plain_words(other).split()} <= found for other in others):
            for word in {*phrase.split()}.intersection(asked):
                met[asked.index(word)] = max(met[asked.index(word)], OF_DOCUMENTS)
    if asked and held and question.language != "german" and not has_unspaced_script(question.text):
        likeness = (word_vectors(asked) @ word_vectors(held).T).max(axis=1)
        like = np.clip((likeness - MIN_LIKE) / (1 - MIN_LIKE), 0, 1)
        like[[any(map(str.isdigit, word)) for word in asked]] = 0
        met = np.maximum(met, like).tolist()
    entity = question.entity
    if entity and entity.has.search(" ".join(quoted.texts)):
        met = [1.0 if stem(word) in entity.asking else share for word, share in zip(asked, met, strict=True)]
    return [
        score,
        max(-1.0, min(fit, MAX_FIT)),
        sum(map(float.__mul__, met, weights)) / total,
        float(_lacks_name(quoted)),
        float(_lacks_number(quoted)),
        math.log(1 + len(asked)),
    ]


def _lacks_name(quoted: QuotedText) -> bool:
    """Whether it lacks a name that the question has; in German, each noun looks like one."""
    question = quoted.question
    names = _NAME.findall(question.text) if question.language != "german" else []
    text = f" {plain_words(' '.join(quoted.texts))} "
    return any(f" {name} " not in text for name in map(plain_words, names) if name not in _NOT_NAMES)


def _lacks_number(quoted: QuotedText, *, compared: bool = False) -> bool:
    """Whether it lacks a number that the question has, written as there, or a duration in words.

    If `compared`, an age or a duration is not lacking if it gives another one of the same unit.
    """
    said = " ".join(quoted.texts)
    other = _compared(quoted) if compared else frozenset[str]()
    durations = {each for each in stated_durations(quoted.question.text) if each[0] not in other}
    if not durations <= durations_in(said):
        return True
    text = f" {plain_words(said)} "
    return any(
        f" {plain_words(number)} " not in text
        for number in _NUMBER.findall(quoted.question.text)
        if number.partition("-")[0] not in other  # “13-year-old”
    )


def _compared(quoted: QuotedText) -> frozenset[str]:
    """The ages and durations of the question of whose unit it gives another number."""
    units = frozenset(unit for _, unit in durations_in(" ".join(quoted.texts)))
    measures = measures_in(f"{quoted.question.text} {quoted.question.original}")
    return frozenset(number for number, of in measures.items() if not units.isdisjoint(of))
