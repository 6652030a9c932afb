"""Compares two texts by paragraphs, and changed paragraphs by words, in almost linear time.

Equal units (paragraphs or words) at both ends of a range are matched first. Units that occur exactly once in
the rest of the range in each text are anchors (patience diff). The ranges between anchors are compared in the
same way, at most MAX_DEPTH levels deep. A range without an anchor counts as replaced.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

MAX_DEPTH = 8
# Paragraphs are compared by words only if at least this share of the words of the shorter side is unchanged.
# Otherwise, all removed paragraphs are shown before the added ones.
MIN_SHARED = 0.5
PARAGRAPHS = re.compile(r"\n\s*\n")
# A line break within a paragraph, but not before a row of a table.
BROKEN = re.compile(r"(?<=[^\s.:;!?])\n(?=[^\W\d_]|[(“‘])(?![^:;\n]{1,80}: [^;\n]*;)")

Kind = Literal["same", "added", "removed"]


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive words of a paragraph that were all kept, all added, or all removed."""

    kind: Kind
    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph of either text.

    `kind` is “changed” if only some of its words are added or removed.
    """

    kind: Literal["same", "added", "removed", "changed"]
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class _Word:
    """A word.

    `ends` says whether the word is the last one of its paragraph. For a word that was kept, `ended` says the
    same about the old text.
    """

    text: str
    ends: bool
    ended: bool = False


def compare(before: str, after: str) -> list[Paragraph]:
    """The paragraphs of both texts in reading order, each with its kind of change."""
    old, new = paragraphs_of(before), paragraphs_of(after)
    found: list[Paragraph] = []
    i = j = 0
    for start, other, length in [*matches(old, new), (len(old), len(new), 0)]:
        found += _replaced(old[i:start], new[j:other])
        found += [Paragraph("same", (Piece("same", text),)) for text in new[other : other + length]]
        i, j = start + length, other + length
    return found


def paragraphs_of(text: str) -> list[str]:
    """Split a text at blank lines, and at line breaks that BROKEN does not match."""
    lines = (line for block in PARAGRAPHS.split(text) for line in BROKEN.sub(" ", block).splitlines())
    return [flat for line in lines if (flat := " ".join(line.split()))]


def matches(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int, int]]:
    """The unchanged sequences in order, each as (index in `old`, index in `new`, length)."""
    pairs: list[tuple[int, int]] = []
    ranges = [(0, len(old), 0, len(new), 0)]
    while ranges:
        low, high, other_low, other_high, depth = ranges.pop()
        while low < high and other_low < other_high and old[low] == new[other_low]:
            pairs.append((low, other_low))
            low, other_low = low + 1, other_low + 1
        while low < high and other_low < other_high and old[high - 1] == new[other_high - 1]:
            high, other_high = high - 1, other_high - 1
            pairs.append((high, other_high))
        if low == high or other_low == other_high or depth == MAX_DEPTH:
            continue
        anchors = _anchors(old, new, range(low, high), range(other_low, other_high))
        if not anchors:
            continue
        pairs += anchors
        edges = [(low - 1, other_low - 1), *anchors, (high, other_high)]
        ranges += [
            (left[0] + 1, right[0], left[1] + 1, right[1], depth + 1) for left, right in pairwise(edges)
        ]
    pairs.sort()
    runs = []
    start = 0
    for index in range(1, len(pairs) + 1):
        if index < len(pairs) and pairs[index] == (pairs[index - 1][0] + 1, pairs[index - 1][1] + 1):
            continue
        runs.append((*pairs[start], index - start))
        start = index
    return runs


def _anchors(old: Sequence[str], new: Sequence[str], here: range, there: range) -> list[tuple[int, int]]:
    """The longest common subsequence of the units that occur exactly once in each range."""
    once = {unit for unit, number in Counter(old[i] for i in here).items() if number == 1}
    numbers = Counter(new[j] for j in there if new[j] in once)
    place = {new[j]: j for j in there if numbers[new[j]] == 1}
    found = [(i, place[old[i]]) for i in here if old[i] in place]
    ends: list[int] = []  # for each length, the smallest last position of an increasing sequence
    at: list[int] = []  # for each length, the index in `found` of that last position
    before: list[int] = []  # for each index in `found`, the index of its predecessor
    for index, (_, j) in enumerate(found):
        length = bisect_left(ends, j)
        before.append(at[length - 1] if length else -1)
        ends[length : length + 1] = [j]
        at[length : length + 1] = [index]
    chosen: list[tuple[int, int]] = []
    index = at[-1] if at else -1
    while index >= 0:
        chosen.append(found[index])
        index = before[index]
    return chosen[::-1]


def _replaced(old: Sequence[str], new: Sequence[str]) -> list[Paragraph]:
    """The paragraphs between two matches, compared by words if enough words are unchanged."""
    removed = [Paragraph("removed", (Piece("removed", text),)) for text in old]
    added = [Paragraph("added", (Piece("added", text),)) for text in new]
    if not (removed and added):
        return removed + added
    words, others = _words(old), _words(new)
    same = matches([word.text for word in words], [word.text for word in others])
    if sum(length for *_, length in same) < MIN_SHARED * min(len(words), len(others)):
        return removed + added
    fates: list[tuple[Kind, _Word]] = []
    i = j = 0
    for start, other, length in [*same, (len(words), len(others), 0)]:
        fates += [("removed", word) for word in words[i:start]]
        fates += [("added", word) for word in others[j:other]]
        i, j = start + length, other + length
        fates += [
            ("same", _Word(word.text, word.ends, former.ends))
            for former, word in zip(words[start:i], others[other:j], strict=True)
        ]
    return list(_paragraphs(fates))


def _words(paragraphs: Sequence[str]) -> list[_Word]:
    found = []
    for paragraph in paragraphs:
        *inner, last = paragraph.split(" ")
        found += [*(_Word(word, ends=False) for word in inner), _Word(last, ends=True)]
    return found


def _paragraphs(fates: Sequence[tuple[Kind, _Word]]) -> Iterator[Paragraph]:
    """Group words into the paragraphs of the new text; removed words are grouped as in the old text."""
    pieces: list[tuple[Kind, list[str]]] = []
    waits = False  # the new paragraph has ended, but removed words that belong to it may follow
    for index, (kind, word) in enumerate(fates):
        if pieces and pieces[-1][0] == kind:
            pieces[-1][1].append(word.text)
        else:
            pieces.append((kind, [word.text]))
        next_kind = fates[index + 1][0] if index + 1 < len(fates) else ""
        ends = word.ends
        if kind == "same" and ends and not word.ended and next_kind == "removed":
            ends, waits = False, True
        elif kind == "removed" and ends and next_kind == "added" and not waits:
            ends = False  # the added words end the paragraph
        if ends or not next_kind:
            waits = False
            kinds = {each for each, _ in pieces}
            yield Paragraph(
                pieces[0][0] if len(kinds) == 1 else "changed",
                tuple(Piece(each, " ".join(texts)) for each, texts in pieces),
            )
            pieces = []
