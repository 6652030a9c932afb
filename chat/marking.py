"""Text of a passage with its cited words marked."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

BROKEN = re.compile(r"(?<=[^\s.:;!?])\n(?=[^\W\d_]|[(“‘])(?![^:;\n]{1,80}: [^;\n]*;)")  # never before a row


@dataclass(frozen=True, slots=True)
class Piece:
    """Text of a passage, cited or not."""

    text: str
    marked: bool


def flowing(text: str) -> str:
    """Lines that a page's width has broken run on again; no character changes its place."""
    return BROKEN.sub(" ", text)


def marked(content: str, quotes: Sequence[Sequence[int]]) -> list[Piece]:
    """The content in pieces, none lost or doubled; what lies in a span of `quotes` is marked."""
    edges = {0, len(content)}
    for start, end in quotes:
        edges |= {max(0, min(start, len(content))), max(0, min(end, len(content)))}
    return [
        Piece(content[left:right], any(start <= left and right <= end for start, end in quotes))
        for left, right in pairwise(sorted(edges))
    ]
