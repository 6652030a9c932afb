"""Finds words in a document like a browser's “Find”: parts of words match, inflections do not."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from django.db.models import Q, QuerySet

from ingestion.models import Document, Passage

MAX_CHARACTERS, MAX_WORDS = 200, 10  # limits of a query; the rest is ignored
MAX_COUNTED = 2_000  # passages whose hits are counted
Piece = tuple[str, bool]  # a part of a text, and whether it is a match


def words_of(query: str) -> list[str]:
    """The distinct words of the query."""
    return list(dict.fromkeys(query[:MAX_CHARACTERS].replace("\0", " ").lower().split()))[:MAX_WORDS]


def passages_with(document: Document, words: list[str]) -> QuerySet[Passage]:
    """Passages with all the words in their text or heading, in the order of the document."""
    found = Passage.objects.filter(document=document)
    for word in words:
        found = found.filter(Q(content__icontains=word) | Q(heading__icontains=word))
    return found.order_by("position")


@dataclass(frozen=True, slots=True)
class Hits:
    """The hits in the passages of a document, numbered from 1 in the order of the text."""

    positions: Sequence[int]  # positions of the passages
    ends: Sequence[int]  # for each passage, the number of the last hit in it or before it

    @classmethod
    def of(cls, passages: QuerySet[Passage], words: list[str]) -> "Hits":
        rows = list(passages.values_list("position", "content")[:MAX_COUNTED])
        counts = (max(hit for *_, hit in numbered(content, words)) for _, content in rows)
        return cls([position for position, _ in rows], list(accumulate(counts)))

    @property
    def total(self) -> int:
        return self.ends[-1] if self.ends else 0

    def index_of(self, hit: int) -> int:
        """The index of the passage that contains a hit."""
        return bisect_right(self.ends, hit - 1)

    def before(self, position: int) -> int:
        """The number of hits before a passage."""
        index = bisect_right(self.positions, position - 1)
        return self.ends[index - 1] if index else 0


def marked(text: str, words: list[str]) -> list[Piece]:
    """The text in pieces; without marks if lower-casing changes its length."""
    lowered = text.lower()
    if not words or len(lowered) != len(text):
        return [(text, False)]
    inside = bytearray(len(text))
    for word in words:
        start = lowered.find(word)
        while start >= 0:
            inside[start : start + len(word)] = b"\1" * len(word)
            start = lowered.find(word, start + len(word))
    edges = [0, *(at for at in range(1, len(text)) if inside[at] != inside[at - 1]), len(text)]
    return [(text[start:end], bool(inside[start])) for start, end in pairwise(edges) if start < end]


def numbered(text: str, words: list[str], before: int = 0) -> list[tuple[str, bool, int]]:
    """The pieces of :func:`marked`, each with the number of hits up to its end.

    Matches with only spaces between them count as one hit: “annual leave”, for example.
    """
    pieces: list[tuple[str, bool, int]] = []
    for piece, is_match in marked(text, words):
        apart = not (len(pieces) > 1 and pieces[-2][1] and pieces[-1][0].isspace())
        before += is_match and apart
        pieces.append((piece, is_match, before))
    return pieces or [("", False, before)]
