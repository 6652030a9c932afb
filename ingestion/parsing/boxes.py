"""Boxes around the words of a passage on the image of its page."""

import itertools
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .sections import SEPARATOR

Box = tuple[int, int, int, int]  # left, top, right, bottom
# The words of each cell of a table row, with their start and end in the page's text.
Cells = Sequence[Sequence[tuple[str, int, int]]]

COLUMN = re.compile(r"(?:^|(?<=[;\n]))[ ]?[^:;\n]{1,100}: ")
PIECE = re.compile(r"[^\n]+")
SENTENCE = re.compile(r"[^.!?\n]+[.!?]*")
OPENING = frozenset("([{\u201c\u2018\u201e\u00ab\u00bf\u00a1")
MIN_COLUMNS = 2  # a line with fewer column names is not a table row
MIN_PART = 12  # characters; a shorter line is not taken for a part of a row
MIN_LETTERS = 4  # letters in the shortest piece of text that is searched for separately
MAX_PLACES = 1_000  # places of the same text on a page that are compared
GAP = 1.5  # maximum gap between two words of a line, as a multiple of a character's height
OVERLAP = 0.5  # minimum vertical overlap of characters on one line, as a share of their height


def boxes_of(
    page: Mapping[str, Any],
    content: str,
    spans: Iterable[Sequence[int]],
    *,
    only_rows: bool = False,
    heading: str = "",
) -> list[Box]:
    """Boxes of the spans of `content`, line by line, in the units of `page`.

    For `page`, see `readers.pdf.characters`. Words of a table row are located by the row's cells on the page.
    Other text is located by its letters and digits only, because passages lack the page's hyphens and line
    ends; with `only_rows`, such text gets no boxes. If the same words are at several places, those below the
    last heading of the path `heading` get the boxes. A row that is not completely on the page gets no boxes
    either, because the same words may occur in other rows.
    """
    text, boxes = page["text"], page["boxes"]
    letters, places = _letters(text)
    searched = _PageLetters(text, letters, places, _letters(heading.rpartition(SEPARATOR)[2])[0])
    found: list[Box] = []
    stretches = list(_stretches(content, page.get("rows", ())))
    for first, last in spans:
        for stretch in stretches:
            begin, end = max(first, stretch.start), min(last, stretch.end)
            if begin >= end:
                continue
            if stretch.words is not None:
                within = [each for each in stretch.words if each[0] < end and each[1] > begin]
                row = [place for _, _, left, right in within for place in range(left, right)]
                found += _lines([boxes[place] for place in row], "".join(text[place] for place in row))
                continue
            if only_rows:
                continue
            within_text = content[stretch.start : stretch.end], begin - stretch.start, end - stretch.start
            for left, right in _ranges(searched, *within_text):
                start, stop = _with_marks(text, places[left], places[right - 1] + 1)
                found += _lines(boxes[start:stop], text[start:stop])
    return found


@dataclass(frozen=True, slots=True)
class _PageLetters:
    """The letters and digits of a page, with their positions in its text, and those of a heading."""

    text: str
    letters: str
    places: list[int]
    heading: str

    def find(self, wanted: str) -> int:
        """Where the letters are on the page; -1 if they are not, or if `wanted` is empty.

        Whole words are preferred, and among several places the one closest below the heading.
        """
        whole = self._whole_words(wanted)
        if len(whole) > 1 and self.heading:
            below = [
                (whole[next_place] - end, whole[next_place])
                for end in (start + len(self.heading) for start in self._whole_words(self.heading))
                if (next_place := bisect_left(whole, end)) < len(whole)
            ]
            if below:
                return min(below)[1]
        return whole[0] if whole else self.letters.find(wanted) if wanted else -1

    def _whole_words(self, wanted: str) -> list[int]:
        """The places that begin and end with a word, among the first MAX_PLACES places."""
        found: list[int] = []
        start = self.letters.find(wanted) if wanted else -1
        for _ in range(MAX_PLACES):
            if start < 0:
                break
            if self._is_between_words(start) and self._is_between_words(start + len(wanted)):
                found.append(start)
            start = self.letters.find(wanted, start + 1)
        return found

    def _is_between_words(self, place: int) -> bool:
        if place in (0, len(self.letters)):
            return True
        before, after = self.places[place - 1], self.places[place]
        between = self.text[before + 1 : after]
        is_in_number = between in (".", ",") and self.text[before].isdigit() and self.text[after].isdigit()
        return bool(between) and not is_in_number


@dataclass(frozen=True, slots=True)
class _Stretch:
    """A part of the content: a row of a table, or lines of other text.

    For a row, `words` has the start and end of each word in the content and in the page's text; it is None
    for other text.
    """

    start: int
    end: int
    words: list[tuple[int, int, int, int]] | None = None


def _stretches(content: str, rows: Sequence[tuple[str, Cells]]) -> Iterator[_Stretch]:
    lines = [(match.start(), match.end()) for match in PIECE.finditer(content)]
    numbers = _numbers_of_rows([content[start:end] for start, end in lines], [text for text, _ in rows])
    text_start = 0
    for (start, end), number in zip(lines, numbers, strict=True):
        if number is None:
            continue
        if text_start < start:
            yield _Stretch(text_start, start)
        yield _Stretch(start, end, list(_placed(content, start, end, rows[number][1])))
        text_start = end
    if text_start < len(content):
        yield _Stretch(text_start, len(content))


def _placed(content: str, start: int, end: int, cells: Cells) -> Iterator[tuple[int, int, int, int]]:
    """Start and end of each word in the cells of this line, in the content and in the page's text."""
    for cell in cells:
        value = " ".join(word for word, _, _ in cell)
        places = [content.find(value, start, end)]
        while places[-1] >= 0 and not _is_value(content, places[-1], places[-1] + len(value), end):
            places.append(content.find(value, places[-1] + 1, end))
        if places[0] < 0:
            continue  # the cell is on another line, because long rows are split
        start = max(places[0], places[-1])
        for word, left, right in cell:
            place = content.index(word, start)
            start = place + len(word)
            yield place, start, left, right


def _is_value(content: str, start: int, end: int, line_end: int) -> bool:
    """Whether the text from `start` to `end` is the whole value of a column."""
    begins = start == 0 or content[start - 1] == "\n" or content[start - 2 : start] in ("; ", ": ")
    return begins and (end == line_end or content.startswith("; ", end))


def _numbers_of_rows(lines: Sequence[str], rows: Sequence[str]) -> list[int | None]:
    """For each line, the number of the table row to which it belongs; None for other text.

    If several rows match, the row directly after that of the previous line is used, or else the row that
    begins the longest sequence of rows equal to this line and the following ones.
    """
    of_text: dict[str, list[int]] = {}
    for number, row in enumerate(rows):
        for key in {row, _values(row)}:
            of_text.setdefault(key, []).append(number)
    found: list[int | None] = []
    for place, raw in enumerate(lines):
        line = raw.strip()
        candidates = of_text.get(line) or (of_text.get(_values(line), []) if ";" in line else [])
        if not candidates and len(line) >= MIN_PART:
            candidates = [number for number, row in enumerate(rows) if line in row]
        before = found[-1] if found else None
        if before is not None and before + 1 in candidates:
            found.append(before + 1)
        elif candidates:
            found.append(max(candidates, key=lambda number: _agreeing(lines[place:], rows[number:])))
        else:
            found.append(None)
    return found


def _values(row: str) -> str:
    """The row without the names of its columns, because the header may be on another page."""
    return COLUMN.sub("", row).replace("; ", ";")


def _agreeing(lines: Iterable[str], rows: Iterable[str]) -> int:
    pairs = zip(lines, rows, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0].strip() == pair[1], pairs))


def _ranges(letters: _PageLetters, content: str, first: int, last: int) -> Iterable[tuple[int, int]]:
    """The ranges of the page's `letters` that match the span `first` to `last` of the content."""
    whole, places = _letters(content)
    start = letters.find(whole)
    if start < 0:
        lines = (line for line in PIECE.finditer(content) if line.start() < last and line.end() > first)
        if any(_is_row(line[0]) for line in lines):
            return _line_by_line(letters, content, first, last)
        return _found(letters, content[first:last])
    begin, end = bisect_left(places, first), bisect_right(places, last - 1)
    return [(start + begin, start + end)] if end > begin else []


def _line_by_line(letters: _PageLetters, content: str, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Like :func:`_ranges`, for content with rows of a table: each row is searched for as a whole."""
    for line in PIECE.finditer(content):
        begin, end = max(first, line.start()) - line.start(), min(last, line.end()) - line.start()
        if begin >= end:
            continue
        if not _is_row(line[0]):
            yield from _ranges(letters, line[0], begin, end)
            continue
        without_names = COLUMN.sub(lambda name: " " * len(name[0]), line[0])
        for text in (line[0], without_names):
            whole, places = _letters(text)
            start = letters.find(whole)
            if start >= 0:
                left, right = bisect_left(places, begin), bisect_right(places, end - 1)
                if right > left:
                    yield start + left, start + right
                break


def _is_row(line: str) -> bool:
    return len(COLUMN.findall(line)) >= MIN_COLUMNS


def _with_marks(text: str, left: int, right: int) -> tuple[int, int]:
    """The range, extended by adjacent brackets, quotation marks and punctuation."""
    while left > 0 and text[left - 1] in OPENING:
        left -= 1
    while right < len(text) and not (
        text[right].isspace() or text[right].isalnum() or text[right] in OPENING
    ):
        right += 1
    return left, right


def _letters(text: str) -> tuple[str, list[int]]:
    """The letters and digits of a text in normal form, with their positions in the text."""
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


def _found(letters: _PageLetters, text: str) -> Iterator[tuple[int, int]]:
    """Where the text occurs among the letters: as a whole, as rows without column names, or in pieces."""
    for way in (text, COLUMN.sub("; ", text)):
        wanted, _ = _letters(way)
        start = letters.find(wanted)
        if start >= 0:
            yield start, start + len(wanted)
            return
    pieces = PIECE.findall(text)
    if len(pieces) == 1:
        pieces = SENTENCE.findall(text)
    for piece in pieces if len(pieces) > 1 else ():
        for way in (piece, COLUMN.sub("; ", piece)):
            wanted, _ = _letters(way)
            start = letters.find(wanted) if len(wanted) >= MIN_LETTERS else -1
            if start >= 0:
                yield start, start + len(wanted)
                break


def _lines(boxes: Sequence[Sequence[int]], text: str) -> Iterator[Box]:
    """The boxes of characters, joined if they are adjacent."""
    line: Box | None = None
    before: Box = (0, 0, 0, 0)
    for character, (left, top, right, bottom) in zip(text, boxes, strict=True):
        if character.isspace() or right <= left or bottom <= top:
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
