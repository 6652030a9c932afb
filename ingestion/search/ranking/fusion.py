"""Combines scores of words and vectors, and decides whether the best passage is relevant.

The weights and bounds are based on the measurements in docs/measurements.md.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from .rerank import RerankScores

Mode = Literal["hybrid", "text", "vectors"]
FoundBy = Literal["words", "meaning", "both", "person", "scope"]


# Named tuples, because a search creates hundreds: a frozen dataclass takes four times as long.
class Candidate(NamedTuple):
    """A passage found by words or vectors.

    `coverage` is the weighted share of the question's words that the passage has. Each piece of the passage
    has a vector; `vector_score` is the greatest similarity of a piece to the question, `vector_mean` the mean
    of all pieces.
    """

    passage_id: int
    language: str
    text_score: float | None
    coverage: float
    vector_score: float | None
    vector_mean: float | None = None

    def found_by(self, mode: Mode, covered: bool) -> FoundBy:
        if mode != "hybrid":
            return "meaning" if mode == "vectors" else "words"
        if self.text_score is None:
            return "meaning"
        alike = covered and (self.vector_score or 0.0) >= ALIKE
        return "both" if alike else "words"


@dataclass(frozen=True, slots=True)
class Bound:
    """How well the best passage must match a question: for any answer, and for a confident one.

    Both bounds grow with the logarithm of the number of readable passages, because among more passages the
    best one matches better by chance. `at_1000` and `sure_at_1000` are the bounds for a thousand passages;
    `per_e` and `sure_per_e` are added each time the number grows by the factor e. Above the bound for a
    confident answer, each `step` raises the fit by one; by default, a step is the distance between the
    bounds.
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
        """The position of `value` relative to the bounds: 0 just allows an answer, 1 a sure one."""
        least, sure = self.for_answer(readable), self.for_sure(readable)
        if self.step and value > sure:
            return 1 + (value - sure) / self.step
        return (value - least) / (sure - least)


MIN_READABLE = 300  # with fewer passages, the bounds do not decrease further

# COMBINED is the bound for the sum of the share of the question's words and the similarity. Without usable
# vectors, WORDS or PAIRS (for character bigrams, which match less often by chance) are bounds for the share
# alone. In searches by vectors only, SIMILARITY is the bound for the similarity. docs/measurements.md has the
# error rates at several sizes of the corpus.
COMBINED = Bound(0.465, 0.017, 0.68, 0.074)
WORDS = Bound(0.2, 0.01, 0.36, 0.05)
PAIRS = Bound(0.12, 0.005, 0.2, 0.03)
SIMILARITY = Bound(0.275, 0.02, 0.4, 0.03)
# The bound for the weighted sum of the signs in `Relevance`.
CLOSE = Bound(1.07, 0.035, 1.45, 0.06, step=0.17)
ALIKE = 0.3  # with at least this similarity, a passage also counts as found by meaning


class Relevance(NamedTuple):
    """Signs that passages answer a question, or the weight of each sign (see WEIGHTS).

    `met` is the highest sum of a passage's coverage and vector similarity, and `nearest` the highest
    similarity, among passages in languages whose vectors count. `closest` and `first` come from RerankScores:
    how well the words of the best matching passage, and of the first passage, match those of the question.
    `length` is the logarithm of the number of words in the question, because long questions match less.
    """

    met: float
    nearest: float
    closest: float = 0.0
    first: float = 0.0
    length: float = 0.0

    def total(self, weights: "Relevance") -> float:
        return sum(weight * sign for weight, sign in zip(weights, self, strict=True))


WEIGHTS = Relevance(met=0.5, nearest=0.8, closest=0.4, first=0.6, length=0.15)

# For sentence-embedding models, whose similarities are more reliable; tuned with all-MiniLM-L6-v2.
SENTENCE_WEIGHTS = WEIGHTS._replace(nearest=2.0)
CLOSE_SENTENCES = Bound(1.45, 0.035, 2.04, 0.04, step=0.24)


@dataclass(frozen=True, slots=True)
class VectorTrust:
    """How much the similarities of an embedding model count.

    `weight` is the share of the similarity in a score; similarities are used only for `languages` (all, if
    empty). `words` is the bound for words without vectors. `weights` has the weight of each sign in
    `Relevance`. In hybrid mode, `settle` decides on relevance by the rerank scores, with `close` as the bound
    for the weighted sum; `rank` decides if `close` is None, and on passages whose vectors do not count.
    """

    weight: float
    languages: frozenset[str]
    words: Bound = WORDS
    close: Bound | None = None
    weights: Relevance = WEIGHTS

    def covers(self, language: str) -> bool:
        return self.weight > 0 and (not self.languages or language in self.languages)

    def bound(self, mode: Mode, language: str) -> Bound:
        """The bound for the value `met` of a passage in this language."""
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


MIN_FURTHER_FIT = 0.5  # share of the bound for an answer that every passage of a ranking must reach

# Weights for reranking, relative to the combined score. They decrease for questions with more words than
# SHORT_QUESTION, because some words of a long question are close together by chance in many passages.
WORD_WEIGHT = 0.25
NEIGHBOUR_WEIGHT = 0.25
SHORT_QUESTION = 4


@dataclass(frozen=True, slots=True)
class Ranking:
    """Candidates relevant to a question, best first.

    `fit` says how relevant the best one is (see `Bound.fit`). If `settle` still has to decide on relevance,
    `open` has the signs that are known so far.
    """

    passages: list[Ranked]
    fit: float = 0.0
    open: Relevance | None = None


def rank(candidates: Sequence[Candidate], mode: Mode, trust: VectorTrust, readable: float) -> Ranking:
    """The relevant candidates, best first; those with equal scores are ordered by id.

    The ranking is empty if even the best candidate is not relevant enough, unless `settle` decides that
    later. `readable` is the number of readable passages.
    """
    languages = {row.language for row in candidates}
    trusted = {language for language in languages if trust.covers(language)}
    bounds = {language: trust.bound(mode, language) for language in languages}
    least = {language: bound.for_answer(readable) for language, bound in bounds.items()}
    met = _met(candidates, mode, trusted)
    fits = [value / least[row.language] for row, value in zip(candidates, met, strict=True)]
    most: dict[str, float] = {}  # by language, the greatest value of `met`
    for row, value in zip(candidates, met, strict=True):
        if value > most.get(row.language, -math.inf):
            most[row.language] = value
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
    # The mean of two values: the nearest piece's similarity, and the mean similarity of all pieces.
    likenesses = [
        score if score is None or mean is None else (score + mean) / 2
        for _, _, _, _, score, mean in candidates
    ]
    known = [likeness for likeness in likenesses if likeness is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)
    vector_weight = trust.weight if best_text > 0 else 1.0
    ranked: list[tuple[float, int, Candidate, FoundBy]] = []
    for row, fit, likeness in zip(candidates, fits, likenesses, strict=True):
        if fit < MIN_FURTHER_FIT:
            continue
        text = (row.text_score or 0.0) / best_text if best_text else 0.0
        vector = 0.0 if likeness is None else (likeness - low) / (high - low) if high > low else 1.0
        covered = row.language in trusted
        if mode == "hybrid":
            weight = vector_weight if covered else 0.0
        elif mode == "vectors":
            weight, vector = 1.0, max(0.0, row.vector_score or 0.0)
        else:
            weight = 0.0
        score = min(1.0, (1 - weight) * text + weight * vector)
        ranked.append((-score, row.passage_id, row, row.found_by(mode, covered)))
    ranked.sort()  # ids differ, so fields after the id are never compared
    best = max(bounds[language].fit(value, readable) for language, value in most.items())
    passages = [Ranked(row, -score, found_by) for score, _, row, found_by in ranked]
    return Ranking(passages, best, opened)


def _met(candidates: Sequence[Candidate], mode: Mode, trusted: Collection[str]) -> list[float]:
    """How much of the question each candidate matches; vectors count in `trusted` languages."""
    if mode == "vectors":
        return [max(0.0, row.vector_score or 0.0) for row in candidates]
    summed = trusted if mode == "hybrid" else ()
    return [
        row.coverage + max(0.0, row.vector_score or 0.0) if row.language in summed else row.coverage
        for row in candidates
    ]


def settle(
    ranking: Ranking, trust: VectorTrust, near: RerankScores, length: float, readable: float
) -> Ranking:
    """Decide whether a ranking is relevant.

    Returns `ranking` with its final `fit`, or an empty one if its best passages match too little. `near` has
    the rerank scores of the best passages, `length` is the question's number of words, and `readable` the
    number of readable passages.
    """
    if ranking.open is None or trust.close is None:
        return ranking
    relevance = ranking.open._replace(closest=near.closest, first=near.first, length=math.log(1 + length))
    fit = trust.close.fit(relevance.total(trust.weights), readable)
    return Ranking(ranking.passages, fit) if fit >= 0 else Ranking([])


def rerank(ranked: Sequence[Ranked], near: RerankScores, length: float = 0) -> list[Ranked]:
    """Rerank the first passages of `ranked` by their scores in `near`.

    All scores remain between 0 and 1. `length` is the question's number of words.
    """
    share = min(1.0, SHORT_QUESTION / max(length, 1))
    most = 1 + share * (WORD_WEIGHT + NEIGHBOUR_WEIGHT)
    words, neighbours = _spread(near.words.tolist()), _spread(near.neighbours.tolist())
    scores = [
        (item.score + share * (WORD_WEIGHT * word + NEIGHBOUR_WEIGHT * neighbour)) / most
        for item, word, neighbour in zip(ranked, words, neighbours, strict=False)
    ]
    rescored = sorted(
        (-score, candidate.passage_id, candidate, found_by)
        for (candidate, _, found_by), score in zip(ranked, scores, strict=False)
    )
    return [
        *(Ranked(candidate, -score, found_by) for score, _, candidate, found_by in rescored),
        *(Ranked(candidate, score / most, found_by) for candidate, score, found_by in ranked[len(scores) :]),
    ]


def _spread(values: Sequence[float]) -> list[float]:
    low, high = min(values, default=0.0), max(values, default=0.0)
    return [(value - low) / (high - low) for value in values] if high > low else [1.0] * len(values)


def _logarithm(readable: float) -> float:
    """The natural logarithm of the number of readable passages, in thousands."""
    return math.log(max(readable, MIN_READABLE) / 1_000)
