"""Means with 95 % bootstrap intervals, with a fixed seed."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SAMPLES = 2_000
SEED = 20_260_101
BOUNDS = (2.5, 97.5)  # percentiles


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean and its 95 % interval over samples of as many questions."""

    mean: float
    low: float
    high: float


def intervals(scores: NDArray[np.float64]) -> list[Interval]:
    """One interval for each column of `scores`, which has one row for each question (at least one).

    To compare two settings, pass the differences of each question: the samples are then paired.
    """
    random = np.random.default_rng(SEED)
    count = len(scores)
    means = np.stack([scores[random.integers(0, count, count)].mean(axis=0) for _ in range(SAMPLES)])
    low, high = np.percentile(means, BOUNDS, axis=0)
    columns = zip(scores.mean(axis=0), low, high, strict=True)
    return [Interval(float(mean), float(least), float(most)) for mean, least, most in columns]
