"""Whether a quotation answers a question, and with what confidence.

It must contain most of the named words, which say what the question is about (`Question.named`). Synonyms and
similar words count less; numbers and proper names only count literally. WEIGHTS were fitted by logistic
regression: docs/measurements.md describes the questions and the accuracy.
"""

import math
import re

import numpy as np

from chat.quoting.questions.amounts import durations_in, measures_in, stated_durations
from chat.quoting.questions.answer_types import QuotedText, types_asked_for
from chat.quoting.questions.question import BETWEEN
from ingestion.embedding.word_vectors import word_vectors
from ingestion.search.rough_stems import STOP_WORDS, forms, held_stems, stem, stems, weak_stems
from ingestion.search.stopwords import without_question_words
from ingestion.search.tokens import has_unspaced_script, plain_words, search_text
from ingestion.search.translations import stems_of_question, without_grammar

SURE = 0.6  # minimum confidence of a quotation that is presented as the answer
SURE_TRANSLATED = 0.9  # the same for a translated question
MIN_LIKE = 0.35  # words whose vectors have at least this cosine similarity count as similar
WEAK = 0.3  # weight of verbs and other words that do not name the subject
SYNONYM_WEIGHT = 0.8  # weight of a synonym instead of a word of the question
MIN_AS_ASKED = 0.2  # share of the named words that an answer must have without synonyms
MIN_CLOSE = 0.34  # share of the named words that one of the closest passages must have
FOUND = 1.0  # minimum `SearchResult.fit` of a search that is sure of its best passage
# A passage may answer if its share of the named words plus its search score is at least LIKELY, if it has all
# named words and a score of at least MIN_SCORE, or if it leads the search.
LIKELY = 1.7
LEADING = 0.9  # minimum search score of a leading passage
MIN_SCORE = 0.5
MIN_LEAD = 0.15  # minimum lead of a leading passage's score over the best score of any other place
MIN_LED = 0.5  # share of the named words that a leading passage must have
MIN_HEADED = 0.3  # share of the named words that the headings of a leading passage must have
MIN_NAMED = 0.6  # share of the named words that an answer must have (with two named words, both)

# The weights of the features in `evidence`, and the constant term.
WEIGHTS = (0.9, 0.5, 3.9, -0.8, -1.3, 0.8)
CONSTANT = -6.0
MAX_FIT = 8.0  # a better fit makes no difference

_NAME = re.compile(r"(?<=\w )[A-ZÀ-Þ][\w’'&.-]*(?: [A-ZÀ-Þ][\w’'&.-]*)*")
_NOT_NAMES = frozenset({"i", "i m", "i ve", "i d", "i ll"})
_PRICE = stems("cost price kostet kosten preis")
# “week 5”, but not a range or fraction: “weeks 5–7”
_NUMBERED_THING = re.compile(r"\b([^\W\d_]{3,20})\s(\d{1,4})\b(?!\s?[/,–-]\s?\d|[.:]\d)")
_NUMBER = re.compile(r"\b(?:[A-Za-z]+-)?\d[\w.,:-]*\b")


def answers(quoted: QuotedText, share: float = MIN_NAMED) -> bool:
    """Whether the text has `share` of the named words, and every type of answer asked for.

    Of several named words, some must occur literally (MIN_AS_ASKED). If the question asks for a difference,
    the text must have all named words.
    """
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
    """Whether a passage has enough of the question's words to be shown as close.

    It must mention the object of the question's verb. For “What is the capital of France?”, it must mention
    both a capital and France: a rate for capital cities is irrelevant. It also needs MIN_CLOSE of the named
    words, two adjacent ones, or a synonym of a phrase, unless the search is sure of its best passage (`fit`)
    or the question was translated.
    """
    question = quoted.question
    needed = [question.object]
    if question.asks_head:
        needed += [question.head, question.named - question.head]
    # In German, the object may be part of a compound (“Impfung”, “Impfschutz”), so a good fit is enough.
    is_exact = question.language != "german" or fit < FOUND
    if is_exact and any(words and not quoted.known(words) for words in needed):
        return False
    # Of “before I get kicked out”, only “kicked” counts.
    named = question.named - BETWEEN or question.named
    # If the question was translated, the translation may have lost a word that the passage has.
    if question.is_translated or fit >= FOUND or quoted.known(named) >= MIN_CLOSE * len(named):
        return True
    # A long question has many words besides its subject. A passage is also close if it has two adjacent words
    # of the question (“laser cutter”), or a synonym of a phrase (“lockout” for “locked out”): hardly any
    # unrelated passage has these.
    return any(1 in distances for distances in quoted.pair_distances) or any(
        len(phrase) > 1 and any(other <= quoted.stems for other in others)
        for phrase, others in quoted.phrases
    )


def is_likely(quoted: QuotedText, score: float, lead: float) -> bool:
    """Whether a passage that does not clearly answer may be presented as a possible answer.

    It must have the numbers of the question, every type of answer asked for, and nearly all named words. Of
    three words or more, half are enough if the search clearly prefers the passage to all others and its
    headings are about the subject. `score` is the passage's search score, and `lead` this score minus the
    best score of any other place.
    """
    if _lacks_number(quoted, compared=True) or not all(
        each.is_in(quoted) for each in types_asked_for(quoted.question)
    ):
        return False
    known = _known(quoted)
    named = quoted.question.named
    # A synonym of a translated word may mean something else: “access”, if “Schließfach” became “locker”.
    if quoted.question.is_translated and not quoted.known_as_asked and quoted.known(named):
        return False
    # If the search clearly prefers another place, a synonym may mean something else here.
    if lead <= -MIN_LEAD and quoted.known_as_asked < len(named) and not quoted.question.is_translated:
        return False
    if (known == 1 and score >= MIN_SCORE) or known + score >= LIKELY:
        return True
    headed = quoted.known(named, held_stems(quoted.texts[-1])) / max(1, len(named))
    # One word of two does not identify the subject: a passage on meals does not say what zebras eat.
    return (
        len(named) > 2 and known >= MIN_LED and headed >= MIN_HEADED and score >= LEADING and lead >= MIN_LEAD
    )


def is_preferred(quoted: QuotedText, score: float, fit: float, lead: float, *, is_only: bool) -> bool:
    """Whether a passage may answer although its words are far apart.

    Words that are adjacent in the question may be distant in the passage. The passage must have the names and
    numbers of the question, and every type of answer asked for, apart from checks of word positions. In
    addition, one of two conditions must hold: the search clearly prefers the passage to all others and its
    `confidence` is at least SURE, or it is the only passage, has most of the named words, and the search is
    sure of it. `score` and `fit` are explained in `confidence`, `lead` in `is_likely`.
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
    """The share of the named words that the text contains.

    A text with the amount asked for need not contain a word such as “price”. Ages and durations in the
    question also count as contained if the text gives another number with the same unit, such as a limit.
    """
    question = quoted.question
    needless = stems(" ".join(_compared(quoted)))
    if question.amount and question.amount.is_in(quoted.texts[0]):
        needless |= _PRICE
    needless &= question.named
    return (len(needless) + quoted.known(question.named - needless)) / max(1, len(question.named))


def confidence(quoted: QuotedText, score: float, fit: float) -> float:
    """The probability (0..1) that a quotation answers.

    `score` is the score of its best sentence; `fit` is the fit of the search (`SearchResult.fit`).
    """
    held = evidence(quoted, score, fit)
    return 1 / (1 + math.exp(-CONSTANT - sum(map(float.__mul__, WEIGHTS, held))))


def is_sure(quoted: QuotedText, score: float, fit: float) -> bool:
    """Whether a quotation may be called the answer.

    It must have all numbers of the question and enough `confidence`. If only one of several words could be
    translated, that word does not identify the subject (“contribution” without the club's name), and the
    result is False.
    """
    question = quoted.question
    own = stems_of_question(without_question_words(question.original))
    if len(question.named) < 2 <= len(own):
        return False
    least = SURE_TRANSLATED if question.is_translated else SURE
    return not _lacks_number(quoted) and confidence(quoted, score, fit) >= least


def evidence(quoted: QuotedText, score: float, fit: float) -> list[float]:
    """The features of a quotation, in the order of WEIGHTS.

    These are the score, the fit, the weighted share of the question's words, whether a name of the question
    is missing, whether a number is missing, and the logarithm of the number of the question's words.
    """
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
                met[asked.index(word)] = max(met[asked.index(word)], SYNONYM_WEIGHT)
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
    """Whether the text lacks a name of the question.

    Always False in German, in which every noun looks like a name.
    """
    question = quoted.question
    names = _NAME.findall(question.text) if question.language != "german" else []
    text = f" {plain_words(' '.join(quoted.texts))} "
    return any(f" {name} " not in text for name in map(plain_words, names) if name not in _NOT_NAMES)


def _lacks_number(quoted: QuotedText, *, compared: bool = False) -> bool:
    """Whether the text lacks a number of the question, or a duration in words.

    Numbers must have the same spelling. With `compared`, an age or duration does not count as missing if the
    text gives another number with the same unit. A number that only the heading has counts as missing if the
    quoted sentence is about another one: “No meeting in week 6” in the section on week 5.
    """
    if _has_other_number(quoted):
        return True
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


def _has_other_number(quoted: QuotedText) -> bool:
    """Whether the question is about “week 5”, say, and the quoted text only names other weeks."""
    asked = {
        (word.lower(), number)
        for word, number in _NUMBERED_THING.findall(quoted.question.text)
        if word.lower() not in STOP_WORDS
    }
    said = (
        {(word.lower(), number) for word, number in _NUMBERED_THING.findall(quoted.texts[0])}
        if asked
        else set()
    )
    words = {word for word, _ in said}
    return any(word in words and (word, number) not in said for word, number in asked)


def _compared(quoted: QuotedText) -> frozenset[str]:
    """The question's ages and durations for which the text has a duration in the same unit."""
    units = frozenset(unit for _, unit in durations_in(" ".join(quoted.texts)))
    measures = measures_in(f"{quoted.question.text} {quoted.question.original}")
    return frozenset(number for number, of in measures.items() if not units.isdisjoint(of))
