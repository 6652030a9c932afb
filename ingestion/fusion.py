"""One score from two legs, and which passages have too little to do with the question to be shown.

The weights were measured on nine public collections; docs/benchmarks.md has the figures.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Mode = Literal["hybrid", "text", "vectors"]
FoundBy = Literal["words", "meaning", "both"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage that a leg found. `coverage` is the share of the question's words, by weight, in it."""

    passage_id: int
    language: str
    text_score: float | None
    coverage: float
    vector_score: float | None


@dataclass(frozen=True, slots=True)
class VectorTrust:
    """How far the embedding model's similarities count: its share of a score, in which languages (empty: in
    all), and from which similarity on a passage is taken to be about the question."""

    weight: float
    languages: frozenset[str]
    least_similarity: float


@dataclass(frozen=True, slots=True)
class Ranked:
    candidate: Candidate
    score: float  # 0..1
    found_by: FoundBy


LEAST_COVERAGE = 0.35


def rank(candidates: Sequence[Candidate], mode: Mode, trust: VectorTrust) -> list[Ranked]:
    """The candidates that fit the question, best first; equal scores in the order of their ids."""
    best_text = max((row.text_score or 0.0 for row in candidates), default=0.0)
    similarities = [row.vector_score for row in candidates if row.vector_score is not None]
    low, high = min(similarities, default=0.0), max(similarities, default=0.0)
    ranked = []
    for row in candidates:
        found_by = _found_by(row, mode, trust)
        if found_by is None:
            continue
        text = (row.text_score or 0.0) / best_text if best_text else 0.0
        vector = 0.0 if row.vector_score is None else _between(row.vector_score, low, high)
        weight = _vector_weight(row, mode, trust, has_text=best_text > 0)
        if mode == "vectors":
            vector = max(0.0, row.vector_score or 0.0)
        score = (1 - weight) * text + weight * vector
        ranked.append(Ranked(row, min(1.0, score), found_by))
    return sorted(ranked, key=lambda item: (-item.score, item.candidate.passage_id))


def _vector_weight(row: Candidate, mode: Mode, trust: VectorTrust, *, has_text: bool) -> float:
    if mode != "hybrid":
        return 1.0 if mode == "vectors" else 0.0
    if trust.languages and row.language not in trust.languages:
        return 0.0
    return trust.weight if has_text else 1.0


def _between(value: float, low: float, high: float) -> float:
    return (value - low) / (high - low) if high > low else 1.0


def _found_by(row: Candidate, mode: Mode, trust: VectorTrust) -> FoundBy | None:
    """By what the passage fits the question; None if it does not."""
    words = mode != "vectors" and row.text_score is not None and row.coverage >= LEAST_COVERAGE
    trusted = mode == "vectors" or not trust.languages or row.language in trust.languages
    meaning = (
        mode != "text"
        and trusted
        and row.vector_score is not None
        and row.vector_score >= trust.least_similarity
    )
    if words and meaning:
        return "both"
    if words:
        return "words"
    return "meaning" if meaning else None
