"""Boxes around the words of a passage on the image of its page."""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

Box = tuple[int, int, int, int]  # left, top, right, bottom

COLUMN = re.compile(r"(?:^|(?<=[;\n]))[ ]?[^:;\n]{1,100}: ")
PIECE = re.compile(r"[^\n]+")
SENTENCE = re.compile(r"[^.!?\n]+[.!?]*")
OPENING = frozenset("([{\u201c\u2018\u201e\u00ab\u00bf\u00a1")
LEAST_LETTERS = 4  # shortest piece that is searched for by itself
GAP = 1.5  # of a character's height: the widest gap between two words of a line
OVERLAP = 0.5  # of a character's height: the least overlap of characters on one line


def boxes_of(page: Mapping[str, Any], content: str, spans: Iterable[Sequence[int]]) -> list[Box]:
    """Boxes of the spans of `content`, in the units of `page` (see `readers.pdf.characters`), line by line.

    Only letters and digits are compared: a passage has lost the hyphens and line ends of its page, and a
    table row contains the names of its columns.
    """
    text = page["text"]
    letters, places = _letters(text)
    whole, whole_places = _letters(content)
    start = letters.find(whole) if whole else -1
    found: list[Box] = []
    for first, last in spans:
        if start >= 0:
            begin, end = bisect_left(whole_places, first), bisect_right(whole_places, last - 1)
            ranges: Iterable[tuple[int, int]] = [(start + begin, start + end)] if end > begin else []
        else:
            ranges = _found(letters, content[first:last])
        for begin, end in ranges:
            left, right = places[begin], places[end - 1] + 1
            # With adjacent brackets, quotes and full stops.
            while left > 0 and text[left - 1] in OPENING:
                left -= 1
            while right < len(text) and not (
                text[right].isspace() or text[right].isalnum() or text[right] in OPENING
            ):
                right += 1
            found += _lines(page["boxes"][left:right], text, left)
    return found


def _letters(text: str) -> tuple[str, list[int]]:
    """Letters and digits in normal form, and the position of each in the text."""
    letters: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        if character.isascii():
            plain = character.lower() if character.isalnum() else ""
        else:
            plain = "".join(filter(str.isalnum, unicodedata.normalize("NFKC", character).casefold()))
        letters.append(plain)
        places += [place] * len(plain)
    return "".join(letters), places


def _found(letters: str, text: str) -> Iterator[tuple[int, int]]:
    """Where the text occurs among the letters: as a whole, as rows without column names, or in pieces."""
    for way in (text, COLUMN.sub("; ", text)):
        wanted, _ = _letters(way)
        start = letters.find(wanted) if wanted else -1
        if start >= 0:
            yield start, start + len(wanted)
            return
    pieces = PIECE.findall(text)
    if len(pieces) == 1:
        pieces = SENTENCE.findall(text)
    for piece in pieces if len(pieces) > 1 else ():
        for way in (piece, COLUMN.sub("; ", piece)):
            wanted, _ = _letters(way)
            start = letters.find(wanted) if len(wanted) >= LEAST_LETTERS else -1
            if start >= 0:
                yield start, start + len(wanted)
                break


def _lines(boxes: Sequence[Sequence[int]], text: str, place: int) -> Iterator[Box]:
    """The boxes of characters, joined while each is next to the one before."""
    line: Box | None = None
    before: Box = (0, 0, 0, 0)
    for offset, (left, top, right, bottom) in enumerate(boxes):
        if text[place + offset].isspace() or right <= left or bottom <= top:
            continue
        box = left, top, right, bottom
        if line and (_beside(before, box) or _beside(_turned(before), _turned(box))):
            line = min(line[0], left), min(line[1], top), max(line[2], right), max(line[3], bottom)
        else:
            if line:
                yield line
            line = box
        before = box
    if line:
        yield line


def _beside(one: Box, other: Box) -> bool:
    height = min(one[3] - one[1], other[3] - other[1])
    overlap = min(one[3], other[3]) - max(one[1], other[1])
    gap = max(other[0] - one[2], one[0] - other[2])
    return overlap >= OVERLAP * height and gap <= GAP * max(one[3] - one[1], other[3] - other[1])


def _turned(box: Box) -> Box:
    left, top, right, bottom = box
    return top, left, bottom, right
