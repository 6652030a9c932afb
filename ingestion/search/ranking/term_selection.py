"""Selects which passages of a large corpus to score.

These are the passages with a rare word of the question, or with enough of its common words. A sample shows
how frequent the words and their combinations are. From this, groups of words are selected, such that about
the wanted number of passages have all words of at least one group.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

MAX_SAMPLED_TERMS = 8  # maximum number of words in groups; others only add to the scores of found passages
ROUNDING = 1e-5  # tolerance for the weights of words
ALONE = 0.5  # share of the passages still wanted that a group of a single word may match

Sample = Mapping[frozenset[int], float]  # the number of passages with exactly these words


@dataclass(frozen=True, slots=True)
class TermGroups:
    """Groups of words, each word by its number.

    A passage is selected if it has all words of one group. `common` has groups that match more passages than
    wanted; they are used if the other groups match hardly any. For words that are not a group by themselves,
    `shares` has the share of the sample that contains the word.
    """

    groups: tuple[tuple[int, ...], ...]
    common: tuple[tuple[int, ...], ...]
    shares: Mapping[int, float]


def merged_samples(rough: Sample, counted: Sample, uncommon: Collection[int], size: float) -> Sample:
    """Complete the sample `counted` of `size` passages.

    `counted` lacks passages without `uncommon` words; the number of these is extrapolated from the sample
    `rough`, which is returned if `uncommon` is empty.
    """
    if not uncommon:
        return rough
    ratio = size / sum(rough.values())
    others = {held: passages * ratio for held, passages in rough.items() if held.isdisjoint(uncommon)}
    return {**others, **counted}


def single_terms(numbers: Iterable[int]) -> TermGroups:
    """Groups of one word each, which match every passage with any of the words."""
    return TermGroups(tuple((number,) for number in numbers), (), {})


def select_groups(numbers: Iterable[int], sample: Sample, wanted: float) -> TermGroups:
    """The groups that match about the share `wanted` of the passages."""
    size, counts = sum(sample.values()), _counts(numbers, sample)
    by_rarity = sorted(counts, key=lambda number: (counts[number], number))[:MAX_SAMPLED_TERMS]
    alone, limit = [], wanted * size
    for number in by_rarity:
        if counts[number] > ALONE * limit:
            break
        alone.append(number)
        limit -= counts[number]
    worth = {number: -math.log((counts[number] + 0.5) / (size + 1)) for number in by_rarity[len(alone) :]}
    others = {held: passages for held, passages in sample.items() if not held.intersection(alone)}
    most = _worth_limit(worth, others, limit)
    together = _smallest_groups(worth, lambda total: total > most + ROUNDING)
    common = _smallest_groups(worth, lambda total: total > most - ROUNDING)
    shares = {number: (count + 0.5) / (size + 1) for number, count in counts.items() if number not in alone}
    return TermGroups(
        (*((number,) for number in alone), *together),
        tuple(group for group in common if group not in together),
        shares,
    )


def with_rare_terms(sought: TermGroups, numbers: Iterable[int], sample: Sample) -> TermGroups:
    """`sought`, extended by those words among `numbers` that are too rare to occur in the sample."""
    size, counts = sum(sample.values()), _counts(numbers, sample)
    alone = tuple((number,) for number, count in counts.items() if not count)
    shares = {number: (count + 0.5) / (size + 1) for number, count in counts.items() if count}
    return TermGroups(sought.groups + alone, sought.common, {**sought.shares, **shares})


def _counts(numbers: Iterable[int], sample: Sample) -> dict[int, float]:
    """The number of passages of the sample in which each word occurs."""
    return {
        number: sum(passages for held, passages in sample.items() if number in held) for number in numbers
    }


def _worth_limit(worth: Mapping[int, float], sample: Sample, limit: float) -> float:
    """The highest weight that more than `limit` passages of the sample reach; 0 if there is none.

    The weight of a passage is the sum of its words' weights in `worth`.
    """
    by_worth: dict[float, float] = {}
    for held, passages in sample.items():
        total = round(sum(worth.get(number, 0.0) for number in held), 6)
        by_worth[total] = by_worth.get(total, 0) + passages
    by_worth.pop(0.0, None)
    for total in sorted(by_worth, reverse=True):
        limit -= by_worth[total]
        if limit < 0:
            return total
    return 0.0


def _smallest_groups(
    worth: Mapping[int, float], is_enough: Callable[[float], bool]
) -> tuple[tuple[int, ...], ...]:
    """The groups of words whose total weight is enough, without those that contain a smaller such group."""
    groups: list[tuple[int, ...]] = []
    for length in range(1, len(worth) + 1):
        for group in combinations(sorted(worth), length):
            enough = is_enough(sum(worth[number] for number in group))
            if enough and not any(set(smaller) <= set(group) for smaller in groups):
                groups.append(group)
    return tuple(groups)
