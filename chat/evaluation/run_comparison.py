"""Compares two evaluation runs: their figures, and whether a difference is significant.

These functions are pure. Shares have Wilson intervals. The exact McNemar test, applied to the questions whose
results changed between right and wrong, decides whether a run is better or worse. The difference has a
Clopper–Pearson interval for the same questions; it excludes 0 exactly if the test finds a difference.
Everything is at the 95 % level.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from ingestion.evaluation.ranking_metrics import Interval, intervals

LEVEL = 0.05
Z = 1.959963984540054  # quantile of the normal distribution, two-sided at LEVEL
MIN_CHANGED = 6  # fewest changes in one direction that can be significant: 2 / 2**6 < LEVEL < 2 / 2**5
STEPS = 60  # steps of bisection, enough for the precision of a float

Verdict = Literal["better", "worse", "chance", "same"]


class Result(Protocol):
    """The result of one question."""

    wants_nothing: bool
    outcome: str
    statements: int
    supported: int

    @property
    def is_right(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Share:
    """A share with its 95 % confidence interval."""

    hits: int
    total: int
    low: float
    high: float

    @property
    def percent(self) -> int:
        return round(100 * self.hits / self.total) if self.total else 0

    @property
    def low_percent(self) -> int:
        return round(100 * self.low)

    @property
    def high_percent(self) -> int:
        return round(100 * self.high)


@dataclass(frozen=True, slots=True)
class Summary:
    """The figures of one run."""

    right: Share
    found: Share  # of the questions with an expected document, the share that find it among the first five
    nothing: Share  # of the questions without an expected document, the share that find nothing
    outcomes: Counter[str]
    supported: Share  # share of the statements that are supported by their sources


@dataclass(frozen=True, slots=True)
class PairedComparison:
    """How many questions of both runs changed between right and wrong, in each direction."""

    better: int
    worse: int
    total: int
    difference: float  # difference between the shares of right answers
    low: float
    high: float
    p: float

    @property
    def verdict(self) -> Verdict:
        if not self.better and not self.worse:
            return "same"
        if self.p >= LEVEL:
            return "chance"
        return "better" if self.better > self.worse else "worse"


def summary(results: Iterable[Result]) -> Summary:
    every = list(results)
    wanted = [each for each in every if not each.wants_nothing]
    unwanted = [each for each in every if each.wants_nothing]
    return Summary(
        right=wilson(sum(each.is_right for each in every), len(every)),
        found=wilson(sum(each.is_right for each in wanted), len(wanted)),
        nothing=wilson(sum(each.outcome == "nothing" for each in unwanted), len(unwanted)),
        outcomes=Counter(each.outcome for each in every),
        supported=wilson(sum(each.supported for each in every), sum(each.statements for each in every)),
    )


def compare(pairs: Sequence[tuple[Result, Result]]) -> PairedComparison:
    """Compare two runs by the pairs (before, after) of each question's results."""
    better = sum(after.is_right and not before.is_right for before, after in pairs)
    worse = sum(before.is_right and not after.is_right for before, after in pairs)
    changed, total = better + worse, len(pairs)
    low, high = clopper_pearson(better, changed)
    scale = changed / total if total else 0.0
    return PairedComparison(
        better,
        worse,
        total,
        (better - worse) / total if total else 0.0,
        (2 * low - 1) * scale,
        (2 * high - 1) * scale,
        mcnemar(better, worse),
    )


def compare_support(pairs: Sequence[tuple[Result, Result]]) -> Interval | None:
    """The mean change in the share of supported statements, with a bootstrap interval.

    Considers only questions with statements in both runs; None if there are none.
    """
    both = [(one, two) for one, two in pairs if one.statements and two.statements]
    if not both:
        return None
    gains = [two.supported / two.statements - one.supported / one.statements for one, two in both]
    return intervals(np.array(gains)[:, None])[0]


def wilson(hits: int, total: int) -> Share:
    if not total:
        return Share(hits, total, 0.0, 1.0)
    share, weight = hits / total, Z**2 / total
    middle = share + weight / 2
    reach = Z * math.sqrt(share * (1 - share) / total + weight / (4 * total))
    return Share(
        hits, total, max(0.0, (middle - reach) / (1 + weight)), min(1.0, (middle + reach) / (1 + weight))
    )


def mcnemar(better: int, worse: int) -> float:
    """The exact two-sided p-value of McNemar's test."""
    changed = better + worse
    return min(1.0, 2 * _at_most(min(better, worse), changed, 0.5)) if changed else 1.0


def clopper_pearson(hits: int, total: int) -> tuple[float, float]:
    """The exact interval of a share; 0 to 1 without data."""
    if not total:
        return 0.0, 1.0
    low = _where(lambda share: 1 - _at_most(hits - 1, total, share) >= LEVEL / 2) if hits else 0.0
    high = _where(lambda share: _at_most(hits, total, share) < LEVEL / 2) if hits < total else 1.0
    return low, high


def _where(holds: Callable[[float], bool]) -> float:
    """The value from 0 to 1 from which on `holds` is true."""
    low, high = 0.0, 1.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _at_most(hits: int, total: int, share: float) -> float:
    """The probability of at most `hits` successes in `total` trials."""
    return sum(
        math.comb(total, each) * share**each * (1 - share) ** (total - each) for each in range(hits + 1)
    )
