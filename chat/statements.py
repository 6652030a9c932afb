"""The results of verifying an answer. Positions are in characters of the answer's text."""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, Literal

Edit = tuple[int, int, int]  # start and end of the replaced text, and the length of its replacement
Verdict = Literal["quoted", "supported", "not_found", "uncited"]
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Proof:
    """One citation of a statement, `[label]` at start:end, with its verdict and the supporting words.

    `marks` has the start and end of each range of supporting words in the content of the source with rank
    `rank`.
    """

    start: int
    end: int
    label: str
    verdict: Verdict
    rank: int = 0  # rank of the source that the citation opens; 0 if nothing was compared
    marks: tuple[tuple[int, int], ...] = ()
    by_model: bool = False  # whether only the model's second look (engine/second_look.py) supports it
    # Whether it was not found although no fact contradicts it: the wording differs too much to decide.
    unclear: bool = False
    # Start and end of the sentence with disagreeing facts, in the source with rank `rank`; never stored.
    disagreeing: tuple[int, int] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement at start:end of the text, with its labels, and a proof for each citation."""

    start: int
    end: int
    citations: tuple[str, ...]
    verdict: Verdict
    proofs: tuple[Proof, ...] = ()

    @property
    def by_model(self) -> bool:
        """Whether only the language model's second look supports the statement."""
        proven = [proof for proof in self.proofs if proof.verdict in ("quoted", "supported")]
        return bool(proven) and all(proof.by_model for proof in proven)

    @property
    def unclear(self) -> bool:
        """Whether the statement was not found, but a cited source is worded too differently to decide."""
        return self.verdict == "not_found" and any(proof.unclear for proof in self.proofs)

    def moved(self, by: int) -> "Statement":
        """The same statement, moved by this many characters."""
        return self.placed(lambda place: place + by)

    def placed(self, place: Callable[[int], int]) -> "Statement":
        """The same statement in another text, with positions mapped by `place`."""
        proofs = tuple(
            replace(proof, start=place(proof.start), end=place(proof.end)) for proof in self.proofs
        )
        return replace(self, start=place(self.start), end=place(self.end), proofs=proofs)

    def without(self, labels: Collection[str]) -> "Statement":
        """The same statement for a reader who must not see these sources."""
        if not any(label in labels for label in self.citations):
            return self
        cited = tuple(label for label in self.citations if label not in labels)
        proofs = tuple(proof for proof in self.proofs if proof.label not in labels)
        return replace(self, citations=cited, proofs=proofs, verdict=self.verdict if cited else "uncited")


def to_rows(statements: Iterable[Statement]) -> list[Json]:
    """Rows for the field `verification` of a message."""
    return [
        {
            "start": each.start,
            "end": each.end,
            "citations": list(each.citations),
            "verdict": each.verdict,
            "proofs": [
                {
                    "start": proof.start,
                    "end": proof.end,
                    "label": proof.label,
                    "verdict": proof.verdict,
                    "rank": proof.rank,
                    "marks": [list(mark) for mark in proof.marks],
                    **({"by_model": True} if proof.by_model else {}),
                    **({"unclear": True} if proof.unclear else {}),
                }
                for proof in each.proofs
            ],
        }
        for each in statements
    ]


def from_rows(rows: Iterable[Mapping[str, Any]]) -> tuple[Statement, ...]:
    """The inverse of :func:`to_rows`; also reads the statements of events in the journal."""
    return tuple(
        Statement(
            row["start"],
            row["end"],
            tuple(row["citations"]),
            row["verdict"],
            tuple(
                Proof(
                    proof["start"],
                    proof["end"],
                    proof["label"],
                    proof["verdict"],
                    proof["rank"],
                    tuple((start, end) for start, end in proof["marks"]),
                    bool(proof.get("by_model")),
                    bool(proof.get("unclear")),
                )
                for proof in row["proofs"]
            ),
        )
        for row in rows
    )


def to_api(statements: Sequence[Statement]) -> list[Json]:
    """The statements as the APIs send them, without proofs."""
    return [
        {
            "start": each.start,
            "end": each.end,
            "citations": list(each.citations),
            "verdict": each.verdict,
            **({"by_model": True} if each.by_model else {}),
            **({"unclear": True} if each.unclear else {}),
        }
        for each in statements
    ]


def after_edits(edits: Sequence[Edit]) -> Callable[[int], int]:
    """A function that maps positions of a text to those after ordered, non-overlapping edits.

    Positions within replaced text are mapped to the end of the replacement.
    """
    starts = [start for start, _, _ in edits]
    grown = [0, *accumulate(length - (end - start) for start, end, length in edits)]

    def place(old: int) -> int:
        number = bisect_right(starts, old)
        if number:
            start, end, _ = edits[number - 1]
            if start == old:
                number -= 1
            elif old < end:
                old = end
        return old + grown[number]

    return place


def marks_by_rank(statements: Iterable[Statement]) -> dict[int, list[tuple[int, int]]]:
    """{rank of a supporting source: its marked ranges, in order and without overlap}"""
    found: dict[int, set[tuple[int, int]]] = {}
    for proof in (proof for each in statements for proof in each.proofs):
        if proof.marks:
            found.setdefault(proof.rank, set()).update(proof.marks)
    by_rank: dict[int, list[tuple[int, int]]] = {}
    for rank, marks in found.items():
        merged = by_rank[rank] = []
        for start, end in sorted(marks):
            if merged and start <= merged[-1][1]:
                merged[-1] = merged[-1][0], max(end, merged[-1][1])
            else:
                merged.append((start, end))
    return by_rank
