"""How good one ranking is: recall, reciprocal rank and nDCG of its first places.

A ranking is what was found, best first, each place with the key of the wanted thing that it shows or None.
What is wanted has a grade above 0. A key that comes again brings nothing more, but takes its place.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

Ranking = Sequence[Hashable | None]
Grades = Mapping[Any, float]


def recall(ranking: Ranking, grades: Grades, depth: int) -> float:
    """The share of the wanted places among the first `depth` results; 0 if none are wanted."""
    wanted = _wanted(grades)
    return len(wanted & set(ranking[:depth])) / len(wanted) if wanted else 0.0


def reciprocal_rank(ranking: Ranking, grades: Grades, depth: int) -> float:
    """1 / the first place (from 1) of something wanted, among the first `depth`; else 0."""
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
