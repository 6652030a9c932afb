"""One score from two legs, and which passages have too little to do with the question to be shown.

The weights were measured on nine public collections; docs/benchmarks.md has the figures.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from .rerank import RerankScores

Mode = Literal["hybrid", "text", "vectors"]
FoundBy = Literal["words", "meaning", "both"]


# Named tuples, of which a search makes hundreds: a frozen dataclass takes four times as long to make.
class Candidate(NamedTuple):
    """A passage that a leg found. `coverage` is the share of the question's words, by weight, in it."""

    passage_id: int
    language: str
    text_score: float | None
    coverage: float
    vector_score: float | None


@dataclass(frozen=True, slots=True)
class VectorTrust:
    """How far the embedding model's similarities count: their share of a score, and from which similarity on
    a passage is about the question. Only in these languages; empty stands for all."""

    weight: float
    languages: frozenset[str]
    min_similarity: float
    min_coverage: float = 0.22  # from which on its words alone make a passage one about the question

    def covers(self, language: str) -> bool:
        return self.weight > 0 and (not self.languages or language in self.languages)


class Ranked(NamedTuple):
    """A candidate with its score from 0 to 1."""

    candidate: Candidate
    score: float
    found_by: FoundBy

    def scored(self, score: float) -> "Ranked":
        return Ranked(self.candidate, score, self.found_by)


# How much of a question its best passage must meet, so that there is an answer at all: the share of its
# words, or that share and the similarity together. docs/benchmarks.md says what these bounds let through.
MIN_COMBINED_FIT = 0.45
MIN_FURTHER_FIT = 0.5  # the part of it that each further passage must meet

# What the best are ordered by beside the score of the legs, which counts 1.
WORD_WEIGHT = 0.25
NEIGHBOUR_WEIGHT = 0.25


def rank(candidates: Sequence[Candidate], mode: Mode, trust: VectorTrust) -> list[Ranked]:
    """The candidates that fit the question, best first; equal scores in the order of their ids.

    None at all when not even the best has enough to do with the question.
    """
    trusted = {language for language in {row.language for row in candidates} if trust.covers(language)}
    fits = [_fit(row, mode, trust, row.language in trusted) for row in candidates]
    if max(fits, default=0.0) < 1:
        return []
    best_text = max(row.text_score or 0.0 for row in candidates)
    similarities = [row.vector_score for row in candidates if row.vector_score is not None]
    low, high = min(similarities, default=0.0), max(similarities, default=0.0)
    ranked = []
    for row, fit in zip(candidates, fits, strict=True):
        if fit < MIN_FURTHER_FIT:
            continue
        text = (row.text_score or 0.0) / best_text if best_text else 0.0
        vector = 0.0 if row.vector_score is None else _between(row.vector_score, low, high)
        covered = row.language in trusted
        weight = _vector_weight(mode, trust, covered=covered, has_text=best_text > 0)
        if mode == "vectors":
            vector = max(0.0, row.vector_score or 0.0)
        score = (1 - weight) * text + weight * vector
        ranked.append(Ranked(row, min(1.0, score), _found_by(row, mode, trust, covered)))
    return sorted(ranked, key=lambda item: (-item.score, item.candidate.passage_id))


def rerank(ranked: Sequence[Ranked], near: RerankScores) -> list[Ranked]:
    """`ranked`, of which `near` tells of the first ones, by all that is known of them; scores stay 0..1."""
    most = 1 + WORD_WEIGHT + NEIGHBOUR_WEIGHT
    words, neighbours = _spread(near.words.tolist()), _spread(near.neighbours.tolist())
    rescored = [
        item.scored((item.score + WORD_WEIGHT * word + NEIGHBOUR_WEIGHT * neighbour) / most)
        for item, word, neighbour in zip(ranked, words, neighbours, strict=False)
    ]
    others = [item.scored(item.score / most) for item in ranked[len(rescored) :]]
    return sorted(rescored, key=lambda item: (-item.score, item.candidate.passage_id)) + others


def _spread(values: Sequence[float]) -> list[float]:
    low, high = min(values, default=0.0), max(values, default=0.0)
    return [_between(value, low, high) for value in values]


def _fit(row: Candidate, mode: Mode, trust: VectorTrust, covered: bool) -> float:
    """How much the passage has to do with the question; 1 is enough for an answer."""
    similarity = max(0.0, row.vector_score or 0.0)
    if mode == "vectors":
        return similarity / trust.min_similarity
    if mode == "hybrid" and covered:
        return (row.coverage + similarity) / MIN_COMBINED_FIT
    return row.coverage / trust.min_coverage


def _vector_weight(mode: Mode, trust: VectorTrust, *, covered: bool, has_text: bool) -> float:
    if mode != "hybrid":
        return 1.0 if mode == "vectors" else 0.0
    if not covered:
        return 0.0
    return trust.weight if has_text else 1.0


def _between(value: float, low: float, high: float) -> float:
    return (value - low) / (high - low) if high > low else 1.0


def _found_by(row: Candidate, mode: Mode, trust: VectorTrust, covered: bool) -> FoundBy:
    if mode != "hybrid":
        return "meaning" if mode == "vectors" else "words"
    if row.text_score is None:
        return "meaning"
    alike = covered and (row.vector_score or 0.0) >= trust.min_similarity
    return "both" if alike else "words"
