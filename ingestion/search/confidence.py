"""Whether a quotation answers a question, and how surely.

Its words must have what the question names, and numbers and proper names literally; a similar word counts
for less. The weights are those of a logistic regression: docs/measurements.md says on which questions, and
how often the result is right.
"""

import math
import re
from collections.abc import Collection, Sequence

import numpy as np

from ingestion.embedding.word_vectors import word_vectors

from .amounts import asking_words, asks_amount, counted, counts, has_amount, has_number
from .definitions import gives_definition
from .exact_kinds import exact_kind
from .rough_stems import STOP_WORDS, forms, held_stems, stem, stems, weak_stems
from .row_conditions import SUPERLATIVE
from .sentence_splitting import split_sentences
from .sentences import Synonyms, directions_of, is_opposite, other_words
from .stopwords import without_question_words
from .tokens import has_unspaced_script, plain_words, search_text
from .translations import language_of, stems_of_question, without_grammar
from .who_and_where import says_who_or_where

SURE = 0.6  # from which a quotation is given as the answer
MIN_LIKE = 0.35  # cosine from which words count as similar
WEAK = 0.3  # weight of verbs and other words that do not name the subject
OF_DOCUMENTS = 0.8  # how much a word of documents counts for the everyday one
MIN_AS_ASKED = 0.2  # of these words, in any form, but not other words for them
BETWEEN = 2  # words between those of a phrase
MIN_PART = 3  # characters of a word written in two
MIN_NAMED = 0.6  # of what a question names, that an answer must have to be shown as one: both of two words

# The weights of `evidence`, in its order, and the constant.
WEIGHTS = (0.9, 0.5, 3.9, -0.8, -1.3, 0.8)
CONSTANT = -6.0
MAX_FIT = 8.0  # more says no more

_NAME = re.compile(r"(?<=\w )[A-ZÀ-Þ][\w’'&.-]*(?: [A-ZÀ-Þ][\w’'&.-]*)*")
_NOT_NAMES = frozenset({"i", "i m", "i ve", "i d", "i ll"})
_NUMBER = re.compile(r"\b(?:[A-Za-z]+-)?\d[\w.,:-]*\b")

# “How late” asks for a time; in “my ferry is late” the word is what is asked about.
_HOW_LATE = re.compile(r"\bhow (?:early|late|soon)\b", re.IGNORECASE)
_TIMELY = frozenset(map(stem, ("early", "late", "soon")))
_UNITS = frozenset(map(stem, ("minute", "hour", "day", "week", "month", "year", "time", "period")))
_HEAD = re.compile(
    r"\b(?:what|which|welche[rnms]?) (\w+)"
    r"|(?:\A|\b(?:the|my|our|der|die|das|den|mein\w{0,2}) )(\w+) (?:of|for|on|von|für)\b",
    re.IGNORECASE,
)
# “A smoke-filled space” says nothing about smoking.
_DESCRIBED_BY = re.compile(r"\b\w{1,30}-(?=\w{1,30}(?:ed|free|proof|resistant)\b)", re.IGNORECASE)
_EXTREME = re.compile(r"\b(?:max|min)(?:imum)?\b|\bno other\b", re.IGNORECASE)
_NUMBER_COLUMN = re.compile(r"(?<=; )([^:;]{1,60}): (?=\d)")
# “What if a guest does not come?” is not answered by what happens when one comes.
_NEGATION = re.compile(r"\b(?:not|never|cannot|nicht|kein\w{0,2}|nie)\b|n['’]t\b", re.IGNORECASE)
_NEGATIVE = re.compile(
    rf"{_NEGATION.pattern}|\b(?:no|none|nobody|nothing|without|only|unless|un\w{{2,20}}|refus\w{{1,5}}|fail\w{{0,5}}"
    r"|miss\w{0,5}|lapse\w?|expire\w?|los[te]\w?|lack\w{0,3}|ohne|nur|niemand|nichts)\b",
    re.IGNORECASE,
)
# What somebody asks to do: “Can I smoke on board?”
_MAY_DO = re.compile(r"\s*(?:can|may|could) (?:i|we|you|one) (\w+)", re.IGNORECASE)
_COMPARISON = re.compile(r"\b(?:difference|differ|unterschied)\w*\b", re.IGNORECASE)


def answers(
    question: str, texts: Sequence[str], share: float = MIN_NAMED, synonyms: Synonyms | None = None
) -> bool:
    """Whether `texts` have this share of what a question names, and a number if it asks for one."""
    asked = stems_of_question(question)
    weak = weak_stems() if _HOW_LATE.search(question) else weak_stems() - _TIMELY
    kind = exact_kind(question)
    weak |= asking_words(question) | (kind.asking if kind else frozenset())
    named = (asked - weak) or asked
    text = _DESCRIBED_BY.sub("", " ".join(texts))
    held = held_stems(text)
    synonyms = _said_together(synonyms or {}, text)
    if texts and not asks_amount(question) and _said(texts[0]) <= asked:
        return False  # it says nothing that the question does not say
    if not any(has_amount(question, text) for text in texts) or not says_who_or_where(question, texts):
        return False
    if kind and not any(kind.has.search(text) for text in texts):
        return False
    if any(is_opposite(directions_of(question), text) for text in texts) or not gives_definition(
        question, texts
    ):
        return False
    thing = [word for word in counted(question) if word in named]
    if thing and not _known(thing, held, synonyms):
        return False
    if thing and texts and not _is_counted(thing, named, texts, synonyms):
        return False
    if SUPERLATIVE.search(question) and not any(_compares(text, named) for text in texts[:1]):
        return False
    if _NEGATION.search(question) and not any(_NEGATIVE.search(text) for text in texts):
        return False
    may_do = _MAY_DO.match(question)
    if may_do and not stems(may_do[1]) & named <= held:
        return False
    head = _HEAD.search(question)
    if head and not all(_known([word], held, synonyms) for word in stems(head[1] or head[2]) & named):
        return False
    if len(named) > 1 and _held_as_asked(named, question, held) < MIN_AS_ASKED * len(named):
        return False
    if _COMPARISON.search(question):
        share = 1.0
    return _known(named, held, synonyms) >= share * len(named)


def _held_as_asked(named: Collection[str], question: str, held: frozenset[str]) -> int:
    """How many of the words are held themselves, or in two parts (“payday”, “pay day”)."""
    parts = {
        stem(word)
        for word in plain_words(question).split()
        for cut in range(MIN_PART, len(word) - MIN_PART + 1)
        if stem(word[:cut]) in held and stem(word[cut:]) in held
    }
    return sum(word in held or word in parts for word in named)


def _said_together(synonyms: Synonyms, text: str) -> Synonyms:
    """Without the phrases whose words are far from each other in `text`."""
    order = [frozenset(forms(word)) for word in search_text(text, stored=False).split()]

    def is_together(phrase: str) -> bool:
        wanted = stems(phrase)
        if len(wanted) < 2:
            return True
        starts = (at for at, each in enumerate(order) if not each.isdisjoint(wanted))
        size = len(wanted) + BETWEEN
        return any(wanted <= frozenset().union(*order[at : at + size]) for at in starts)

    return {phrase: [other for other in others if is_together(other)] for phrase, others in synonyms.items()}


def _known(words: Collection[str], held: frozenset[str], synonyms: Synonyms | None) -> int:
    """How many of the words are held, or all words of another phrase for them."""
    phrases = [
        (stems(phrase), [stems(other) for other in others]) for phrase, others in (synonyms or {}).items()
    ]
    return sum(
        word in held
        or any(
            word in phrase and any(other and other <= held for other in others) for phrase, others in phrases
        )
        for word in words
    )


def _is_counted(
    words: Sequence[str], named: frozenset[str], texts: Sequence[str], synonyms: Synonyms | None
) -> bool:
    """Whether a sentence with a number of the counted thing has, with the headings, half of what is named
    besides; and whether it is the sentence that mentions the thing, if only some do."""
    others = named - frozenset(words)
    thing = [frozenset({word}) | other_words(word, synonyms or {}) for word in words]
    headings = held_stems(" ".join(texts[1:]))
    spans = [span.text for span in split_sentences(texts[0])]
    # “Leave is booked early. It is 27 days.”: with the sentence before.
    named_so = {words[0], *(thing[0] - _UNITS)}  # “hours of rest” does not make hours a word for rest
    mentions = {place for place, text in enumerate(spans) if not named_so.isdisjoint(held_stems(text))}
    with_number = [place for place, text in enumerate(spans) if has_number(text)]
    if mentions and with_number and mentions.isdisjoint({*with_number, *(at - 1 for at in with_number)}):
        return False
    numbered = [
        " ".join(spans[max(0, place - 1) : place + 1])
        for place, text in enumerate(spans)
        if counts(thing, text)
    ]
    return not numbered or any(  # without one the number may be put in other words, or in a table
        2 * _known(others, held_stems(text) | headings, synonyms) >= len(others) for text in numbered
    )


def _compares(text: str, named: Collection[str]) -> bool:
    """Whether `text` says what is most or least, or has rows with a number of something named."""
    if SUPERLATIVE.search(text) or _EXTREME.search(text):
        return True
    return any(not stems(column[1]).isdisjoint(named) for column in _NUMBER_COLUMN.finditer(text))


def _said(text: str) -> frozenset[str]:
    """The stems of a text without numbers, which may be those of sections."""
    return frozenset(word for word in stems(text) if not word.isdigit())


def confidence(
    question: str, quoted: Sequence[str], score: float, fit: float, synonyms: Synonyms | None = None
) -> float:
    """The probability (0..1) that a quotation answers; from `SURE` on it may be called the answer.

    `quoted` has its text and headings, `score` is that of its best sentence, `fit` that of the search
    (`SearchResult.fit`), and `synonyms` other words for phrases of the question.
    """
    held = evidence(question, quoted, score, fit, synonyms)
    return 1 / (1 + math.exp(-CONSTANT - sum(map(float.__mul__, WEIGHTS, held))))


def evidence(
    question: str, quoted: Sequence[str], score: float, fit: float, synonyms: Synonyms | None = None
) -> list[float]:
    """What speaks for and against a quotation: the two scores, the share of the question's words that it has,
    whether it lacks a name or a number of the question, and the logarithm of the number of words."""
    language = language_of(question)
    asked = search_text(without_question_words(question), stored=False).split()
    asked = [word for word in dict.fromkeys(without_grammar(asked, language)) if word not in STOP_WORDS]
    text = f" {plain_words(' '.join(quoted))} "
    held = list(dict.fromkeys(search_text(text, stored=False).split()))
    stems = {each for word in held for each in forms(word)}
    met = [float(stem(word) in stems) for word in asked]
    weights = [WEAK if stem(word) in weak_stems() else 1.0 for word in asked]
    total = sum(weights) or 1.0
    for phrase, others in (synonyms or {}).items():
        if any({stem(part) for part in plain_words(other).split()} <= stems for other in others):
            for word in {*phrase.split()}.intersection(asked):
                met[asked.index(word)] = max(met[asked.index(word)], OF_DOCUMENTS)
    if asked and held and language != "german" and not has_unspaced_script(question):
        likeness = (word_vectors(asked) @ word_vectors(held).T).max(axis=1)
        like = np.clip((likeness - MIN_LIKE) / (1 - MIN_LIKE), 0, 1)
        like[[any(map(str.isdigit, word)) for word in asked]] = 0
        met = np.maximum(met, like).tolist()
    kind = exact_kind(question)
    if kind and kind.has.search(" ".join(quoted)):
        met = [1.0 if stem(word) in kind.asking else share for word, share in zip(asked, met, strict=True)]
    # Each German noun looks like a name.
    names = [plain_words(name) for name in _NAME.findall(question)] if language != "german" else []
    numbers = map(plain_words, _NUMBER.findall(question))
    return [
        score,
        max(-1.0, min(fit, MAX_FIT)),
        sum(map(float.__mul__, met, weights)) / total,
        float(any(f" {name} " not in text for name in names if name not in _NOT_NAMES)),
        float(any(f" {number} " not in text for number in numbers)),
        math.log(1 + len(asked)),
    ]
