"""Times to the first word of answers, as counts in steps: they can be added up, and hold no single answer."""

from bisect import bisect_left
from collections.abc import Sequence

# Milliseconds, each the end of a step; what is later is in one more. A quantile is right within its step.
ENDS = (50, 100, 150, 200, 300, 400, 500, 700, 1000, 1400, 2000, 2800, 4000, 5600, 8000, 11000, 16000, 30000)


def add(counts: list[int], milliseconds: int) -> None:
    """Count one answer; an empty list becomes one of all steps."""
    counts.extend([0] * (len(ENDS) + 1 - len(counts)))
    counts[bisect_left(ENDS, milliseconds)] += 1


def total(many: Sequence[Sequence[int]]) -> list[int]:
    """The sums of several counts, step by step."""
    whole = [counts for counts in many if counts]
    return [sum(step) for step in zip(*whole, strict=True)]


def quantile(counts: Sequence[int], share: float) -> float | None:
    """Seconds within which this share of the answers had begun; None where nothing was counted."""
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
