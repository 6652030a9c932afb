"""Recall, reciprocal rank and nDCG of a ranking, and confidence intervals of their means.

A ranking is a list of results, best first; each is the key of the relevant item that the result matches, or
None. Relevant items have a grade above 0. A repeated key scores nothing, but takes up a position.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ranking = Sequence[Hashable | None]
Grades = Mapping[Any, float]

SAMPLES = 2_000
SEED = 20_260_101
BOUNDS = (2.5, 97.5)  # percentiles


def recall(ranking: Ranking, grades: Grades, depth: int) -> float:
    """The share of relevant items that the first `depth` results match; 0 without such items."""
    wanted = _wanted(grades)
    return len(wanted & set(ranking[:depth])) / len(wanted) if wanted else 0.0


def reciprocal_rank(ranking: Ranking, grades: Grades, depth: int) -> float:
    """1 / the first position (from 1) of a relevant item among the first `depth`; otherwise 0."""
    wanted = _wanted(grades)
    return next((1 / place for place, key in enumerate(ranking[:depth], 1) if key in wanted), 0.0)


def ndcg(ranking: Ranking, grades: Grades, depth: int = 10) -> float:
    """Normalised discounted cumulative gain (0 to 1) with linear gains, as in trec_eval and BEIR."""
    gain = 0.0
    seen: set[Hashable] = set()
    for place, key in enumerate(ranking[:depth]):
        if key is not None and key not in seen:
            seen.add(key)
            gain += max(grades.get(key, 0.0), 0.0) / math.log2(place + 2)
    best = sorted((grade for grade in grades.values() if grade > 0), reverse=True)[:depth]
    ideal = sum(grade / math.log2(place + 2) for place, grade in enumerate(best))
    return gain / ideal if ideal else 0.0


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean and its 95 % bootstrap interval."""

    mean: float
    low: float
    high: float


def intervals(scores: NDArray[np.float64]) -> list[Interval]:
    """The mean and the 95 % bootstrap interval of each column of `scores`, with a fixed seed.

    `scores` has a row for each question. To compare two settings, pass the differences for each question, so
    that the samples are paired.
    """
    random = np.random.default_rng(SEED)
    count = len(scores)
    means = np.stack([scores[random.integers(0, count, count)].mean(axis=0) for _ in range(SAMPLES)])
    low, high = np.percentile(means, BOUNDS, axis=0)
    columns = zip(scores.mean(axis=0), low, high, strict=True)
    return [Interval(float(mean), float(least), float(most)) for mean, least, most in columns]


def _wanted(grades: Grades) -> set[Hashable]:
    return {key for key, grade in grades.items() if grade > 0}
