"""Histograms of times to the first word, which can be summed and do not reveal single answers."""

from bisect import bisect_left
from collections.abc import Sequence

# Upper bounds of the buckets in milliseconds; one more bucket holds larger values. Quantiles are as precise
# as their bucket.
ENDS = (50, 100, 150, 200, 300, 400, 500, 700, 1000, 1400, 2000, 2800, 4000, 5600, 8000, 11000, 16000, 30000)


def add(counts: list[int], milliseconds: int) -> None:
    """Count one answer; an empty list becomes a list with all buckets."""
    counts.extend([0] * (len(ENDS) + 1 - len(counts)))
    counts[bisect_left(ENDS, milliseconds)] += 1


def total(many: Sequence[Sequence[int]]) -> list[int]:
    """The sums of several histograms, by bucket."""
    whole = [counts for counts in many if counts]
    return [sum(step) for step in zip(*whole, strict=True)]


def quantile(counts: Sequence[int], share: float) -> float | None:
    """Seconds within which this share of the answers started; None without counts."""
    wanted, passed = share * sum(counts), 0.0
    if not wanted:
        return None
    for step, count in enumerate(counts):
        if count and passed + count >= wanted:
            start = ENDS[step - 1] if step else 0
            end = ENDS[step] if step < len(ENDS) else ENDS[-1]
            return (start + (end - start) * (wanted - passed) / count) / 1000
        passed += count
    return ENDS[-1] / 1000
