"""The text of a PDF page as PDFium returns it: lines, words with positions, and drawn rules."""

import ctypes
import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

import pypdfium2
import pypdfium2.raw as pdfium

from chatsite.superscripts import superscript
from ingestion.parsing.sections import one_line

from .hyphenation import BREAK, without_breaks
from .pdf_tables import Border, Rule
from .pdf_words import Word

FONT_NAME_BYTES = 200
LINE_CHARACTERS = 20_000
WORD = re.compile(r"\S+")
MAX_OBJECTS = 5_000
MAX_RECTANGLES = 500
GAP = 0.7  # a gap wider than this share of the line's height may separate columns
THIN = 2.5  # points; a thinner rectangle counts as a line
# A page with more letters, and with more letters per space, may lack spaces between words.
MIN_LETTERS, LETTERS_PER_SPACE = 40, 15
SPACE = 0.12  # minimum space between words, relative to the height of the font's box
IDEOGRAPHS = "\u2e80"  # from this character on, most scripts have no spaces between words
BROWSERS = ("Skia/PDF", "Qt ", "cairo ")  # prefixes of the producer names that browsers write
BOLD_WEIGHT = 600
# Of a note: its maximum size relative to the text above it, and its minimum distance from that text, in em.
NOTE_SCALE, NOTE_GAP = 0.95, 2.5
SLOPE = 0.3  # a line that rises more, such as a diagonal watermark, counts as rotated
BULLETS = "•◦▪‣●○■□◻☐❑❖➢➔✓✔"  # characters that mark items of lists
FONT_SUBSET = re.compile(r"\A[a-z]{6}\+")  # the prefix of a font of which the file contains only a part
# Hyphens at the end of a line (see hyphenation.BREAK), also if PDFium has joined that line with the next one.
BROKEN_LINE = re.compile(r"[\x02\ufffe\xad](?=\s*\Z)|(?<=\w)[\x02\ufffe](?=\w)")
BROKEN_INSIDE = re.compile(r"(?<=\w)[\x02\ufffe](?=\w)")
# Digits that may be a superscript of the letter, digit or sign before them.
RAISED = re.compile(
    r"(?:(?<=[^\W_])[-−+]?[0-9]{1,12}|(?<=[.,;:)%€$\"”’'])[0-9]{1,3}|(?<=[^\W\d_] )[0-9]{1,3})(?![0-9])"
)
# Of a superscript: its rise, and its height, relative to the height of the text before it.
LEAST_RISE, GREATEST_RISE, SMALLER = 0.15, 0.7, 0.85


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a page, with the font size of its first letter.

    `whole` marks a row of a table or recognised text, which is never a heading and never joined with its
    neighbours. `font` is the name of its font, empty if the line ends in another one. `level` is the level of
    the bookmark that names the line; the size is 0 if it is unknown, such as for a line that only exists
    in a bookmark. `left` is the left edge of the line, and `baseline` the height of its baseline, in points;
    `right`, its right edge, is only set for text behind a scan. Rotated lines have no baseline.
    """

    text: str
    size: float
    bold: bool = False
    font: str = ""
    whole: bool = False
    level: int | None = None
    left: float | None = None
    baseline: float | None = None
    right: float | None = None

    def outranks(self, other: "Line") -> bool:
        """Whether this heading ranks above another; bookmarks rank above lines that look like headings."""
        if self.level is not None or other.level is not None:
            return self.level is not None and (other.level is None or self.level < other.level)
        return self.size > other.size * 1.02


def text_units(textpage: pypdfium2.PdfTextPage) -> str:
    """The text of the page in PDFium's units: a character beyond U+FFFF, such as an emoji, has two."""
    text = str(textpage.get_text_range())
    if text and max(text) > "\uffff":
        text = "".join(map(chr, memoryview(text.encode("utf-16-le")).cast("H")))
    return _with_superscripts(textpage, text)


def _with_superscripts(textpage: pypdfium2.PdfTextPage, text: str) -> str:
    """The text of the page with raised digits as superscript digits. Positions do not change."""

    def raised(match: re.Match[str]) -> str:
        base = _character(textpage, match.start() - (2 if text[match.start() - 1] == " " else 1))
        start, end = match.span()
        place = start
        if not _is_raised(textpage, base, _character(textpage, end - 1)):
            return match[0]
        # The digits before are part of the number, not of the superscript.
        while place < end and not _is_raised(textpage, base, _character(textpage, place)):
            place += 1
        return match[0][: place - start] + superscript(match[0][place - start :])

    return RAISED.sub(raised, text)


def _is_raised(textpage: pypdfium2.PdfTextPage, base: int, character: int) -> bool:
    """Whether a character is smaller than the one at `base`, on the same line, and raised above it."""
    across, up, next_across, next_up = (ctypes.c_double() for _ in range(4))
    if not (
        pdfium.FPDFText_GetCharOrigin(textpage.raw, base, across, up)
        and pdfium.FPDFText_GetCharOrigin(textpage.raw, character, next_across, next_up)
    ):
        return False
    rise = next_up.value - up.value
    if rise <= 0 or next_across.value <= across.value:
        return False
    height, raised_height = pdfium.FS_RECTF(), pdfium.FS_RECTF()
    if not (
        pdfium.FPDFText_GetLooseCharBox(textpage.raw, base, height)
        and pdfium.FPDFText_GetLooseCharBox(textpage.raw, character, raised_height)
    ):
        return False
    size = height.top - height.bottom
    return bool(
        LEAST_RISE * size < rise < GREATEST_RISE * size
        and raised_height.top - raised_height.bottom < SMALLER * size
    )


def _whole(text: str) -> str:
    """The text whose units :func:`text_units` returned."""
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")


def lines_with_starts(
    textpage: pypdfium2.PdfTextPage, text: str, *, with_right: bool = False
) -> Iterator[tuple[int, Line]]:
    """Each line of the page's text with its start position."""
    lacks_spaces = MIN_LETTERS < sum(map(str.isalpha, text)) > LETTERS_PER_SPACE * text.count(" ")
    for start, raw in _raw_lines(textpage, text):
        shown = _with_spaces(textpage, raw, start) if lacks_spaces else raw
        line = one_line(_whole(BROKEN_LINE.sub(BREAK, shown)), LINE_CHARACTERS)
        if line:
            first = _character(textpage, start + len(raw) - len(raw.lstrip()))
            last = _character(textpage, start + len(raw.rstrip()) - 1)
            # Use the second letter, because small capitals are in a different font from the initial capital.
            second = first + 1 if line[1:2].isalpha() else first
            font, bold = _font(textpage, second)
            last_font, last_bold = _font(textpage, last)
            # Use the rendered size, because many programs set size 1 and scale the text.
            size = float(pdfium.FPDFText_GetFontSize(textpage.raw, first))
            matrix = pdfium.FS_MATRIX()
            if pdfium.FPDFText_GetMatrix(textpage.raw, first, matrix):
                size *= math.hypot(matrix.c, matrix.d)
            is_level = abs(matrix.b) <= SLOPE * abs(matrix.a)
            left, baseline = _left(textpage, first), _baseline(textpage, first) if is_level else None
            right = _right(textpage, last) if with_right else None
            own_font = font if font == last_font else ""
            yield (
                start,
                Line(
                    line,
                    round(size, 1),
                    bold and last_bold,
                    own_font,
                    left=left,
                    baseline=baseline,
                    right=right,
                ),
            )


def _raw_lines(textpage: pypdfium2.PdfTextPage, text: str) -> Iterator[tuple[int, str]]:
    """The start and text of each line.

    If the last word of a page is broken, PDFium appends the note at its foot; here, it is a line of its own.
    """
    position = 0
    for raw in text.split("\r\n"):
        start, end = position, position + len(raw)
        position = end + 2
        for broken in BROKEN_INSIDE.finditer(raw):
            place = end - len(raw) + broken.start()
            if _begins_note(textpage, _character(textpage, place - 1), _character(textpage, place + 1)):
                yield start, text[start : place + 1]
                start = place + 1
        yield start, text[start:end]


def _begins_note(textpage: pypdfium2.PdfTextPage, before: int, after: int) -> bool:
    """Whether a character is smaller and far below the one before it."""
    up, next_up = _baseline(textpage, before), _baseline(textpage, after)
    box, next_box = pdfium.FS_RECTF(), pdfium.FS_RECTF()
    if (
        up is None
        or next_up is None
        or not (
            pdfium.FPDFText_GetLooseCharBox(textpage.raw, before, box)
            and pdfium.FPDFText_GetLooseCharBox(textpage.raw, after, next_box)
        )
    ):
        return False
    size = box.top - box.bottom
    return bool(next_box.top - next_box.bottom < size * NOTE_SCALE and up - next_up > NOTE_GAP * size)


def _with_spaces(textpage: pypdfium2.PdfTextPage, raw: str, start: int) -> str:
    """A line of the page's text with spaces inferred from the distances between its letters.

    Some programs place each letter separately, and write no spaces; PDFium then finds only wide ones.
    """
    if len(raw) < 2 or max(raw) >= IDEOGRAPHS:
        return raw
    loose = pdfium.FS_RECTF()
    places = [_character(textpage, start + place) for place in range(len(raw))]
    if not pdfium.FPDFText_GetLooseCharBox(textpage.raw, places[0], loose):
        return raw
    edges = [(_left(textpage, place) or 0.0, _right(textpage, place) or 0.0) for place in places]
    gaps = [after[0] - before[1] for before, after in itertools.pairwise(edges)]
    in_words = [
        gap for gap, pair in zip(gaps, itertools.pairwise(raw), strict=True) if "".join(pair).isalnum()
    ]
    least = SPACE * (loose.top - loose.bottom) + max(0, median(in_words or [0]))
    parts = [raw[0]]
    for gap, before, letter in zip(gaps, raw, raw[1:], strict=False):
        is_apart = gap > least and letter.isalnum() and not (before.isdigit() and letter.isdigit())
        parts.append(f" {letter}" if is_apart else letter)
    return "".join(parts)


def words_with_boxes(
    textpage: pypdfium2.PdfTextPage, text: str, lines: list[tuple[int, Line]], is_hyphenated: bool
) -> Iterator[Word]:
    """The words with their boxes and the numbers of their lines."""
    box = tuple(ctypes.c_double() for _ in range(4))
    edge = tuple(ctypes.c_double() for _ in range(4))
    line = 0
    for start, end in _word_places(textpage, text):
        while line + 1 < len(lines) and lines[line + 1][0] <= start:
            line += 1
        first, last = _character(textpage, start), _character(textpage, end - 1)
        has_start = pdfium.FPDFText_GetCharBox(textpage.raw, first, *box)
        if has_start and pdfium.FPDFText_GetCharBox(textpage.raw, last, *edge):
            # The first letter of an Arabic or Hebrew word is the rightmost one.
            left, right = min(box[0].value, edge[0].value), max(box[1].value, edge[1].value)
            bottom, top = min(box[2].value, edge[2].value), max(box[3].value, edge[3].value)
            word = _whole(BROKEN_LINE.sub(BREAK, text[start:end]))
            word = without_breaks(word, is_hyphenated=is_hyphenated)
            yield Word(word, left, right, bottom, top, line, lines[line][1].bold, first, last)


def _word_places(textpage: pypdfium2.PdfTextPage, text: str) -> Iterator[tuple[int, int]]:
    """The start and the end of each word.

    If a word is broken at the end of a line, PDFium appends whatever text follows. If this text is to the
    right of the break, it belongs to the next column, and the word is split there.
    """
    for match in WORD.finditer(text):
        start = match.start()
        for broken in BROKEN_INSIDE.finditer(match.group()):
            place = match.start() + broken.start()
            before = _left(textpage, _character(textpage, place - 1))
            after = _left(textpage, _character(textpage, place + 1))
            if before is not None and after is not None and before < after:
                yield start, place + 1
                start = place + 1
        yield start, match.end()


def wide_gaps(textpage: pypdfium2.PdfTextPage, lines: list[tuple[int, Line]]) -> Iterator[bool]:
    """Yield for each line whether it has a wide gap. Far faster than locating its words."""
    box = tuple(ctypes.c_double() for _ in range(4))  # left, top, right, bottom
    for start, line in lines:
        spans, height = [], 0.0
        count = pdfium.FPDFText_CountRects(textpage.raw, start, len(line.text))
        for index in range(count if 1 < count < MAX_RECTANGLES else 0):
            pdfium.FPDFText_GetRect(textpage.raw, index, *box)
            spans.append((box[0].value, box[2].value))
            height = max(height, box[1].value - box[3].value)
        yield any(after[0] - before[1] > height * GAP for before, after in itertools.pairwise(sorted(spans)))


def drawn_rules(page: pypdfium2.PdfPage) -> tuple[list[Rule], list[Border]]:
    """Horizontal and vertical edges of drawings, such as lines and the borders of boxes."""
    rules, borders = [], []
    left, bottom, right, top = (ctypes.c_float() for _ in range(4))
    for index in range(min(pdfium.FPDFPage_CountObjects(page.raw), MAX_OBJECTS)):
        shape = pdfium.FPDFPage_GetObject(page.raw, index)
        if pdfium.FPDFPageObj_GetType(shape) != pdfium.FPDF_PAGEOBJ_PATH:
            continue
        if pdfium.FPDFPageObj_GetBounds(shape, left, bottom, right, top):
            heights, places = {bottom.value, top.value}, {left.value, right.value}
            if top.value - bottom.value < THIN:
                heights, places = {(bottom.value + top.value) / 2}, set()
            elif right.value - left.value < THIN:
                places = {(left.value + right.value) / 2}
            rules += [Rule(left.value, right.value, height) for height in heights]
            borders += [Border(place, bottom.value, top.value) for place in places]
    return rules, borders


def breaks_words(document: pypdfium2.PdfDocument) -> bool:
    """Whether the program that wrote the file may have broken words at the ends of lines.

    Browsers do so only if the web page asks for it.
    """
    return not document.get_metadata_value("Producer").startswith(BROWSERS)


def _character(textpage: pypdfium2.PdfTextPage, place: int) -> int:
    """PDFium's index of the character at a position of the text.

    The two differ, because the text omits some characters.
    """
    index = int(pdfium.FPDFText_GetCharIndexFromTextIndex(textpage.raw, place))
    return index if index >= 0 else place


def _left(textpage: pypdfium2.PdfTextPage, position: int) -> float | None:
    left, right, bottom, top = (ctypes.c_double() for _ in range(4))
    found = pdfium.FPDFText_GetCharBox(textpage.raw, position, left, right, bottom, top)
    return left.value if found else None


def _right(textpage: pypdfium2.PdfTextPage, position: int) -> float | None:
    left, right, bottom, top = (ctypes.c_double() for _ in range(4))
    found = pdfium.FPDFText_GetCharBox(textpage.raw, position, left, right, bottom, top)
    return right.value if found else None


def _baseline(textpage: pypdfium2.PdfTextPage, position: int) -> float | None:
    across, up = ctypes.c_double(), ctypes.c_double()
    return up.value if pdfium.FPDFText_GetCharOrigin(textpage.raw, position, across, up) else None


def _font(textpage: pypdfium2.PdfTextPage, position: int) -> tuple[str, bool]:
    """The name of a character's font, and whether it is bold."""
    buffer = ctypes.create_string_buffer(FONT_NAME_BYTES)
    pdfium.FPDFText_GetFontInfo(textpage.raw, position, buffer, FONT_NAME_BYTES, ctypes.c_int())
    name = FONT_SUBSET.sub("", buffer.value.decode("utf-8", "replace").lower())
    heavy = pdfium.FPDFText_GetFontWeight(textpage.raw, position) >= BOLD_WEIGHT
    return name, "bold" in name or heavy
