"""Metrics of one ranking: recall, reciprocal rank and nDCG of its first places.

A ranking has the results, best first, each with the key of the relevant item that it matches, or None.
Relevant items have a grade above 0. A repeated key scores nothing but occupies its place.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

Ranking = Sequence[Hashable | None]
Grades = Mapping[Any, float]


def recall(ranking: Ranking, grades: Grades, depth: int) -> float:
    """The share of the relevant items among the first `depth` results; 0 if there are none."""
    wanted = _wanted(grades)
    return len(wanted & set(ranking[:depth])) / len(wanted) if wanted else 0.0


def reciprocal_rank(ranking: Ranking, grades: Grades, depth: int) -> float:
    """1 / the first position (from 1) of a relevant item among the first `depth`; else 0."""
    wanted = _wanted(grades)
    return next((1 / place for place, key in enumerate(ranking[:depth], 1) if key in wanted), 0.0)


def ndcg(ranking: Ranking, grades: Grades, depth: int = 10) -> float:
    """Normalised discounted cumulative gain with linear gains, as trec_eval and BEIR count it: 0 to 1."""
    gain = 0.0
    seen: set[Hashable] = set()
    for place, key in enumerate(ranking[:depth]):
        if key is not None and key not in seen:
            seen.add(key)
            gain += max(grades.get(key, 0.0), 0.0) / math.log2(place + 2)
    best = sorted((grade for grade in grades.values() if grade > 0), reverse=True)[:depth]
    ideal = sum(grade / math.log2(place + 2) for place, grade in enumerate(best))
    return gain / ideal if ideal else 0.0


def _wanted(grades: Grades) -> set[Hashable]:
    return {key for key, grade in grades.items() if grade > 0}
