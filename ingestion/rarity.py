"""Which passages of a large corpus are worth scoring: those that hold a rare word of the question, or enough
of its commoner words together.

A sample says how often the words occur, alone and together. From it follows which groups of words a passage
must hold, so that about as many passages as wanted do.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

MOST_JUDGED = 8  # words, the rarest; the others only add to the scores of what these find
ALONE = 0.5  # the part of what is wanted that the rarest words may fill alone

Sample = Mapping[frozenset[int], int]  # how many passages hold exactly these words


@dataclass(frozen=True, slots=True)
class Sought:
    """Groups of words (by number) of which a passage must hold one whole; and for the words that are not
    sought alone, the share of the passages that hold them as the sample has it."""

    groups: tuple[tuple[int, ...], ...]
    shares: Mapping[int, float]


def each_alone(numbers: Iterable[int]) -> Sought:
    """Every passage that holds any of the words."""
    return Sought(tuple((number,) for number in numbers), {})


def rarest(numbers: Iterable[int], sample: Sample, wanted: float) -> Sought:
    """The groups that lead to about the share `wanted` of the passages."""
    size = sum(sample.values())
    counts = {
        number: sum(passages for held, passages in sample.items() if number in held) for number in numbers
    }
    by_rarity = sorted(counts, key=lambda number: (counts[number], number))[:MOST_JUDGED]
    alone, room = [], wanted * size
    for number in by_rarity:
        if counts[number] > ALONE * room:
            break
        alone.append(number)
        room -= counts[number]
    common = {number: -math.log((counts[number] + 0.5) / (size + 1)) for number in by_rarity[len(alone) :]}
    others = {held: passages for held, passages in sample.items() if not held.intersection(alone)}
    together = _smallest_groups(common, _least_worth(common, others, room))
    shares = {number: (count + 0.5) / (size + 1) for number, count in counts.items() if number not in alone}
    return Sought((*((number,) for number in alone), *together), shares)


def with_added(sought: Sought, numbers: Iterable[int], sample: Sample) -> Sought:
    """`sought`, and those of the further words that are too rare to be in the sample."""
    size = sum(sample.values())
    counts = {
        number: sum(passages for held, passages in sample.items() if number in held) for number in numbers
    }
    alone = tuple((number,) for number, count in counts.items() if not count)
    shares = {number: (count + 0.5) / (size + 1) for number, count in counts.items() if count}
    return Sought(sought.groups + alone, {**sought.shares, **shares})


def _least_worth(worth: Mapping[int, float], sample: Sample, room: float) -> float:
    """What the words of a passage must be worth together, so that no more of the sample are than there is
    room for; never more than the best of the sample is."""
    by_worth: dict[float, int] = {}
    for held, passages in sample.items():
        total = round(sum(worth.get(number, 0.0) for number in held), 6)
        by_worth[total] = by_worth.get(total, 0) + passages
    by_worth.pop(0.0, None)
    least, taken = math.inf, 0
    for total in sorted(by_worth, reverse=True):
        taken += by_worth[total]
        if taken > room and least < math.inf:
            break
        least = total
    return least


def _smallest_groups(worth: Mapping[int, float], least: float) -> list[tuple[int, ...]]:
    """The groups that are worth enough and hold no smaller group that is."""
    groups: list[tuple[int, ...]] = []
    for length in range(1, len(worth) + 1):
        for group in combinations(sorted(worth), length):
            enough = sum(worth[number] for number in group) >= least - 1e-5
            if enough and not any(set(smaller) <= set(group) for smaller in groups):
                groups.append(group)
    return groups
