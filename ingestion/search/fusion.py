"""One score from two legs, and whether the best passage has enough to do with the question to be shown.

The weights were measured on nine public collections; docs/benchmarks.md has the figures.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from .rerank import RerankScores

Mode = Literal["hybrid", "text", "vectors"]
FoundBy = Literal["words", "meaning", "both", "person"]


# Named tuples, of which a search makes hundreds: a frozen dataclass takes four times as long to make.
class Candidate(NamedTuple):
    """A passage that a leg found. `coverage` is the share of the question's words, by weight, in it; the
    vectors of its pieces have the greatest similarity `vector_score`, and `vector_mean` on average."""

    passage_id: int
    language: str
    text_score: float | None
    coverage: float
    vector_score: float | None
    vector_mean: float | None = None

    @property
    def likeness(self) -> float | None:
        """What the passage is ordered by in the vector leg: its nearest piece, and all of it."""
        if self.vector_score is None or self.vector_mean is None:
            return self.vector_score
        return (self.vector_score + self.vector_mean) / 2


@dataclass(frozen=True, slots=True)
class Bound:
    """How much of a question its best passage must meet, for there to be an answer, and for a sure one.

    Both grow with the logarithm of how many passages may be read: of more passages, the best one by chance
    meets more of any question. `at_1000` holds for a thousand passages, `per_e` is added for e times as many.
    """

    at_1000: float
    per_e: float
    sure_at_1000: float
    sure_per_e: float

    def for_answer(self, readable: float) -> float:
        return self.at_1000 + self.per_e * _logarithm(readable)

    def for_sure(self, readable: float) -> float:
        return self.sure_at_1000 + self.sure_per_e * _logarithm(readable)


MIN_READABLE = 300  # passages; with fewer the bounds stay as they are

# The share of the question's words plus the similarity; where the vectors do not count, the share alone: of
# words, or of pairs of characters, which are met by chance less often; the similarity alone.
# docs/benchmarks.md has the errors of both bounds at four sizes.
COMBINED = Bound(0.465, 0.017, 0.68, 0.074)
WORDS = Bound(0.2, 0.01, 0.36, 0.05)
PAIRS = Bound(0.12, 0.005, 0.2, 0.03)
SIMILARITY = Bound(0.275, 0.02, 0.4, 0.03)
# The share plus the similarity, plus how well the words of a passage match the question's
# (RerankScores.closest), plus LENGTH_WEIGHT times the logarithm of the question's length: of a long one, less
# is met.
CLOSE = Bound(1.32, 0.055, 1.57, 0.096)
LENGTH_WEIGHT = 0.2
ALIKE = 0.3  # similarity from which a passage counts as found by its meaning, too


@dataclass(frozen=True, slots=True)
class VectorTrust:
    """How far the embedding model's similarities count: their share of a score, and only in these languages
    (empty stands for all); `words` bounds what words alone must meet. With `close`, whether there is an
    answer is decided after the words of the best passages were compared (`settle`)."""

    weight: float
    languages: frozenset[str]
    words: Bound = WORDS
    close: Bound | None = None

    def covers(self, language: str) -> bool:
        return self.weight > 0 and (not self.languages or language in self.languages)


class Ranked(NamedTuple):
    """A candidate with its score from 0 to 1."""

    candidate: Candidate
    score: float
    found_by: FoundBy

    def scored(self, score: float) -> "Ranked":
        return Ranked(self.candidate, score, self.found_by)


MIN_FURTHER_FIT = 0.5  # the part of what the best passage must meet that each further one must

# What the best are ordered by beside the score of the legs, which counts 1: less where the question is longer
# than so many words, of which by chance some are near each other in many passages.
WORD_WEIGHT = 0.25
NEIGHBOUR_WEIGHT = 0.25
SHORT_QUESTION = 4


@dataclass(frozen=True, slots=True)
class Ranking:
    """Candidates that fit a question, best first; `sure` where the best one clearly does. `open` is what the
    best one meets where it is still to be settled whether there is an answer."""

    passages: list[Ranked]
    sure: bool = False
    open: float | None = None


def rank(candidates: Sequence[Candidate], mode: Mode, trust: VectorTrust, readable: float) -> Ranking:
    """The candidates that fit the question, best first; equal scores in the order of their ids.

    None at all when not even the best has enough to do with the question, as far as that is known before
    `settle`. `readable` counts the passages among which they are the best.
    """
    trusted = {language for language in {row.language for row in candidates} if trust.covers(language)}
    met = [_met(row, mode, row.language in trusted) for row in candidates]
    bounds = [_bound(mode, trust, covered=row.language in trusted) for row in candidates]
    answer = {bound: bound.for_answer(readable) for bound in set(bounds)}
    fits = [value / answer[bound] for value, bound in zip(met, bounds, strict=True)]
    opened = None
    if mode == "hybrid" and trust.close:
        opened = max(
            (value for value, bound in zip(met, bounds, strict=True) if bound == COMBINED), default=None
        )
        fixed = [fit for fit, bound in zip(fits, bounds, strict=True) if bound != COMBINED]
        opened = None if max(fixed, default=0.0) >= 1 else opened
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
        weight = _vector_weight(mode, trust, covered=covered, has_text=best_text > 0)
        if mode == "vectors":
            vector = max(0.0, row.vector_score or 0.0)
        score = (1 - weight) * text + weight * vector
        ranked.append(Ranked(row, min(1.0, score), _found_by(row, mode, covered)))
    sure = any(value >= bound.for_sure(readable) for value, bound in zip(met, bounds, strict=True))
    return Ranking(sorted(ranked, key=lambda item: (-item.score, item.candidate.passage_id)), sure, opened)


def settle(ranking: Ranking, trust: VectorTrust, closest: float, length: float, readable: float) -> Ranking:
    """`ranking`, or nothing where its best passages meet too little of a question of `length` words."""
    if ranking.open is None or trust.close is None:
        return ranking
    met = ranking.open + closest + LENGTH_WEIGHT * math.log(1 + length)
    if met < trust.close.for_answer(readable):
        return Ranking([])
    return Ranking(ranking.passages, met >= trust.close.for_sure(readable))


def rerank(ranked: Sequence[Ranked], near: RerankScores, length: float = 0) -> list[Ranked]:
    """`ranked`, of which `near` tells of the first ones, by all that is known of them; scores stay 0..1.

    `length` counts the words of the question.
    """
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


def _met(row: Candidate, mode: Mode, covered: bool) -> float:
    """How much of the question the passage meets."""
    similarity = max(0.0, row.vector_score or 0.0)
    if mode == "vectors":
        return similarity
    return row.coverage + similarity if mode == "hybrid" and covered else row.coverage


def _bound(mode: Mode, trust: VectorTrust, *, covered: bool) -> Bound:
    """The bound for this measure."""
    if mode == "vectors":
        return SIMILARITY
    return COMBINED if mode == "hybrid" and covered else trust.words


def _vector_weight(mode: Mode, trust: VectorTrust, *, covered: bool, has_text: bool) -> float:
    if mode != "hybrid":
        return 1.0 if mode == "vectors" else 0.0
    if not covered:
        return 0.0
    return trust.weight if has_text else 1.0


def _logarithm(readable: float) -> float:
    """Of how many thousand passages."""
    return math.log(max(readable, MIN_READABLE) / 1_000)


def _between(value: float, low: float, high: float) -> float:
    return (value - low) / (high - low) if high > low else 1.0


def _found_by(row: Candidate, mode: Mode, covered: bool) -> FoundBy:
    if mode != "hybrid":
        return "meaning" if mode == "vectors" else "words"
    if row.text_score is None:
        return "meaning"
    alike = covered and (row.vector_score or 0.0) >= ALIKE
    return "both" if alike else "words"
