"""Combines the scores of words and vectors, and decides whether the best passage is relevant enough.

The weights were measured on nine public collections; docs/measurements.md has the figures.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from .rerank import RerankScores

Mode = Literal["hybrid", "text", "vectors"]
FoundBy = Literal["words", "meaning", "both", "person"]


# Named tuples, because a search creates hundreds: a frozen dataclass takes four times as long.
class Candidate(NamedTuple):
    """A passage found by words or vectors.

    `coverage` is the weighted share of the question's words in it; `vector_score` is the greatest similarity
    of its pieces, and `vector_mean` their mean.
    """

    passage_id: int
    language: str
    text_score: float | None
    coverage: float
    vector_score: float | None
    vector_mean: float | None = None

    @property
    def likeness(self) -> float | None:
        """The score for vectors: of its nearest piece and of all pieces."""
        if self.vector_score is None or self.vector_mean is None:
            return self.vector_score
        return (self.vector_score + self.vector_mean) / 2

    def met(self, mode: Mode, covered: bool) -> float:
        """How much of the question it matches; `covered` if vectors count in its language."""
        similarity = max(0.0, self.vector_score or 0.0)
        if mode == "vectors":
            return similarity
        return self.coverage + similarity if mode == "hybrid" and covered else self.coverage

    def found_by(self, mode: Mode, covered: bool) -> FoundBy:
        if mode != "hybrid":
            return "meaning" if mode == "vectors" else "words"
        if self.text_score is None:
            return "meaning"
        alike = covered and (self.vector_score or 0.0) >= ALIKE
        return "both" if alike else "words"


@dataclass(frozen=True, slots=True)
class Bound:
    """How much of a question its best passage must match for an answer, and for a sure one.

    Both grow with the logarithm of the number of readable passages: among more passages, the best one matches
    more by chance. `at_1000` applies to a thousand passages; `per_e` is added for e times as many. `step` is
    what counts as one more above the sure bound; by default as much as lies between the bounds.
    """

    at_1000: float
    per_e: float
    sure_at_1000: float
    sure_per_e: float
    step: float | None = None

    def for_answer(self, readable: float) -> float:
        return self.at_1000 + self.per_e * _logarithm(readable)

    def for_sure(self, readable: float) -> float:
        return self.sure_at_1000 + self.sure_per_e * _logarithm(readable)

    def fit(self, value: float, readable: float) -> float:
        """`value` between the bounds: 0 is just relevant enough for an answer, 1 for a sure one."""
        least, sure = self.for_answer(readable), self.for_sure(readable)
        if self.step and value > sure:
            return 1 + (value - sure) / self.step
        return (value - least) / (sure - least)


MIN_READABLE = 300  # passages; the bounds do not decrease for fewer

# The share of the question's words plus the similarity; without usable vectors only the share, of words or of
# character bigrams, which match less often by chance; or the similarity only. docs/measurements.md has the
# errors of both bounds at four sizes.
COMBINED = Bound(0.465, 0.017, 0.68, 0.074)
WORDS = Bound(0.2, 0.01, 0.36, 0.05)
PAIRS = Bound(0.12, 0.005, 0.2, 0.03)
SIMILARITY = Bound(0.275, 0.02, 0.4, 0.03)
# The sum of what `Relevance` weighs.
CLOSE = Bound(1.07, 0.035, 1.45, 0.06, step=0.17)
ALIKE = 0.3  # similarity from which a passage counts as found by meaning, too


class Relevance(NamedTuple):
    """Signs that a question is answered, each with a weight of its own (`WEIGHTS`).

    `met` is the greatest sum of share and similarity in one passage, `nearest` the greatest similarity;
    `closest` and `first` say how well the words of any passage, and those of the best one, match those of the
    question (RerankScores); `length` is the logarithm of its number of words: long questions match less.
    """

    met: float
    nearest: float
    closest: float = 0.0
    first: float = 0.0
    length: float = 0.0

    def total(self) -> float:
        return sum(weight * sign for weight, sign in zip(WEIGHTS, self, strict=True))


WEIGHTS = Relevance(met=0.5, nearest=0.8, closest=0.4, first=0.6, length=0.15)


@dataclass(frozen=True, slots=True)
class VectorTrust:
    """How much the embedding model's similarities count: their share of a score, and in which languages
    (empty: all).

    `words` is the bound for words without vectors. With `close`, relevance is decided after the words of the
    best passages were compared (`settle`).
    """

    weight: float
    languages: frozenset[str]
    words: Bound = WORDS
    close: Bound | None = None

    def covers(self, language: str) -> bool:
        return self.weight > 0 and (not self.languages or language in self.languages)

    def bound(self, mode: Mode, language: str) -> Bound:
        """The bound for what a passage in this language meets (`Candidate.met`)."""
        if mode == "vectors":
            return SIMILARITY
        return COMBINED if mode == "hybrid" and self.covers(language) else self.words


class Ranked(NamedTuple):
    """A candidate with its score from 0 to 1."""

    candidate: Candidate
    score: float
    found_by: FoundBy

    def scored(self, score: float) -> "Ranked":
        return Ranked(self.candidate, score, self.found_by)


MIN_FURTHER_FIT = 0.5  # the share of the best passage's bound that each further passage must reach

# Weights for reranking beside the combined score, which counts 1. They decrease for questions longer than
# this number of words, of which some are close together in many passages by chance.
WORD_WEIGHT = 0.25
NEIGHBOUR_WEIGHT = 0.25
SHORT_QUESTION = 4


@dataclass(frozen=True, slots=True)
class Ranking:
    """Candidates relevant to a question, best first, and how relevant the best one is (`Bound.fit`).

    `open` has what is known if relevance is still to be settled.
    """

    passages: list[Ranked]
    fit: float = 0.0
    open: Relevance | None = None


def rank(candidates: Sequence[Candidate], mode: Mode, trust: VectorTrust, readable: float) -> Ranking:
    """The relevant candidates, best first; ties by id.

    None if even the best is not relevant enough, as far as that is known before `settle`. `readable` is the
    number of readable passages.
    """
    languages = {row.language for row in candidates}
    trusted = {language for language in languages if trust.covers(language)}
    bounds = {language: trust.bound(mode, language) for language in languages}
    least = {language: bound.for_answer(readable) for language, bound in bounds.items()}
    met = [row.met(mode, row.language in trusted) for row in candidates]
    fits = [value / least[row.language] for row, value in zip(candidates, met, strict=True)]
    most = {  # that a passage of each language meets
        language: max(value for row, value in zip(candidates, met, strict=True) if row.language == language)
        for language in languages
    }
    opened = None
    if mode == "hybrid" and trust.close:
        open_languages = {language for language, bound in bounds.items() if bound == COMBINED}
        fixed = [most[language] / least[language] for language in languages - open_languages]
        if open_languages and max(fixed, default=0.0) < 1:
            nearest = max(row.vector_score or 0.0 for row in candidates if row.language in open_languages)
            opened = Relevance(max(most[language] for language in open_languages), nearest)
    if opened is None and max(fits, default=0.0) < 1:
        return Ranking([])
    best_text = max(row.text_score or 0.0 for row in candidates)
    similarities = [likeness for row in candidates if (likeness := row.likeness) is not None]
    low, high = min(similarities, default=0.0), max(similarities, default=0.0)
    ranked = []
    for row, fit in zip(candidates, fits, strict=True):
        if fit < MIN_FURTHER_FIT:
            continue
        text = (row.text_score or 0.0) / best_text if best_text else 0.0
        likeness = row.likeness
        vector = 0.0 if likeness is None else _between(likeness, low, high)
        covered = row.language in trusted
        if mode == "hybrid":
            weight = (trust.weight if best_text > 0 else 1.0) if covered else 0.0
        elif mode == "vectors":
            weight, vector = 1.0, max(0.0, row.vector_score or 0.0)
        else:
            weight = 0.0
        score = (1 - weight) * text + weight * vector
        ranked.append(Ranked(row, min(1.0, score), row.found_by(mode, covered)))
    best = max(bounds[language].fit(value, readable) for language, value in most.items())
    return Ranking(sorted(ranked, key=lambda item: (-item.score, item.candidate.passage_id)), best, opened)


def settle(
    ranking: Ranking, trust: VectorTrust, near: RerankScores, length: float, readable: float
) -> Ranking:
    """`ranking`, or nothing if its best passages, whose scores are `near`, match too little of a question of
    `length` words."""
    if ranking.open is None or trust.close is None:
        return ranking
    relevance = ranking.open._replace(closest=near.closest, first=near.first, length=math.log(1 + length))
    fit = trust.close.fit(relevance.total(), readable)
    return Ranking(ranking.passages, fit) if fit >= 0 else Ranking([])


def rerank(ranked: Sequence[Ranked], near: RerankScores, length: float = 0) -> list[Ranked]:
    """Rerank the first of `ranked`, whose scores are `near`; scores remain 0..1. `length` is the question's
    number of words."""
    share = min(1.0, SHORT_QUESTION / max(length, 1))
    most = 1 + share * (WORD_WEIGHT + NEIGHBOUR_WEIGHT)
    words, neighbours = _spread(near.words.tolist()), _spread(near.neighbours.tolist())
    rescored = [
        item.scored((item.score + share * (WORD_WEIGHT * word + NEIGHBOUR_WEIGHT * neighbour)) / most)
        for item, word, neighbour in zip(ranked, words, neighbours, strict=False)
    ]
    others = [item.scored(item.score / most) for item in ranked[len(rescored) :]]
    return sorted(rescored, key=lambda item: (-item.score, item.candidate.passage_id)) + others


def _spread(values: Sequence[float]) -> list[float]:
    low, high = min(values, default=0.0), max(values, default=0.0)
    return [_between(value, low, high) for value in values]


def _logarithm(readable: float) -> float:
    """Of the number in thousands."""
    return math.log(max(readable, MIN_READABLE) / 1_000)


def _between(value: float, low: float, high: float) -> float:
    return (value - low) / (high - low) if high > low else 1.0
