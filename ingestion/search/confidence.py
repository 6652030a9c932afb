"""How surely a quotation answers a question.

Its words must have what the question names, and numbers and proper names literally; a similar word counts
for less. The weights are those of a logistic regression: docs/measurements.md says on which questions, and
how often the result is right.
"""

import math
import re
from collections.abc import Sequence

import numpy as np

from ingestion.embedding.word_vectors import word_vectors

from .exact_kinds import exact_kind
from .rough_stems import STOP_WORDS, forms, stem, weak_stems
from .sentences import Synonyms
from .stopwords import without_question_words
from .tokens import has_unspaced_script, plain_words, search_text
from .translations import language_of, without_grammar

SURE = 0.6  # from which a quotation is given as the answer
MIN_LIKE = 0.35  # cosine from which words count as similar
WEAK = 0.3  # weight of verbs and other words that do not name the subject
OF_DOCUMENTS = 0.8  # how much a word of documents counts for the everyday one

# The weights of `evidence`, in its order, and the constant.
WEIGHTS = (0.9, 0.5, 3.9, -0.8, -1.3, 0.8)
CONSTANT = -6.0
MAX_FIT = 8.0  # more says no more

_NAME = re.compile(r"(?<=\w )[A-ZÀ-Þ][\w’'&.-]*(?: [A-ZÀ-Þ][\w’'&.-]*)*")
_NOT_NAMES = frozenset({"i", "i m", "i ve", "i d", "i ll"})
_NUMBER = re.compile(r"\b(?:[A-Za-z]+-)?\d[\w.,:-]*\b")


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
