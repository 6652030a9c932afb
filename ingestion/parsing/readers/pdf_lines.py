"""The lines of a PDF page; rows of tables are lines that name their columns."""

import ctypes
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

import pypdfium2
import pypdfium2.raw as pdfium

from ingestion.parsing.sections import (
    HEADING_CHARACTERS,
    Section,
    clean,
    one_line,
)

from .lone_titles import TITLE_WORDS, has_title_form, is_title
from .pdf_tables import ROWS, Rule, Table, Word, tables
from .pdf_tags import has_tags, tagged_tables, words_in_cells

FONT_NAME_BYTES = 200
LINE_CHARACTERS = 20_000
WORD = re.compile(r"\S+")
MOST_WORDS = 5_000  # pages with more words are not searched for tables
MOST_OBJECTS = 5_000
MAX_RECTANGLES = 500
LEAST_RULES = 3  # minimum number of drawn lines between the rows of a table
GAP = 0.7  # a gap wider than this share of the line's height may separate columns
THIN = 2.5  # points; a thinner rectangle counts as a line
BROWSERS = ("Skia/PDF", "Qt ", "cairo ")  # prefixes of the producer names that browsers write
BOLD_WEIGHT = 600
FONT_SUBSET = re.compile(r"\A[a-z]{6}\+")  # the prefix of a font of which the file contains only a part
EDGE_LINES = 2  # number of lines at the beginning and end of a page's text that may be running titles
# Number of heights, at the top and at the bottom, at which running titles may be, wherever they are in the
# text.
TOP_HEIGHTS, BOTTOM_HEIGHTS = 2, 3
LEAST_PAGES, LEAST_SIDES = 3, 4  # minimum number of pages, or of left or right pages, with a running title
Shape = tuple[str, int, int | None]  # a line's text with # for short numbers, its size, and its height
# PDFium returns a hyphen at the end of a line as U+0002 or U+FFFE, even if it has joined that line with the
# next one (in columns). This module writes this character for such a hyphen until `_without_hyphenation`
# resolves it.
BREAK = "\U000f00ad"
BROKEN_LINE = re.compile(r"[\x02\ufffe\xad](?=\s*\Z)|(?<=\w)[\x02\ufffe](?=\w)")
BROKEN_INSIDE = re.compile(r"(?<=\w)[\x02\ufffe](?=\w)")
BROKEN_WORD = re.compile(rf"\b(\w++){BREAK}(?=(\w++))")
BULLETS = "•◦▪‣●○■❑❖➢➔✓"
MARKER = re.compile(rf"(?:[{BULLETS}]|\(?\d{{1,2}}[.)]|[a-z][.)])\Z")  # the marker of a list item
MARKER_DISTANCE = 5  # greatest distance of a marker from its text, in em
COMPOUND = re.compile(r"\b\w++-\w++")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a page, with the font size of its first letter.

    `whole` marks a row of a table or recognised text, which is never a heading and never joined with its
    neighbours. `font` is the name of its font, empty if the line ends in another one. `level` is the level of
    the bookmark that points to the line; the size is 0 for a line that only exists in a bookmark. `left` is
    its left edge, and `baseline` the height of its baseline, in points; `right`, its right edge, is only set
    for text behind a scan.
    Rotated lines have no baseline.
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


@dataclass(frozen=True, slots=True)
class PageLines:
    """The lines of a page in the order of its text.

    A table is at the position of its first line. `last` is the table at the end of the page, if any.
    `completed` is the table at the end of the previous page, if its last row continues on this page.
    `completed` then contains the complete row, which is not among these lines.
    """

    lines: list[Line]
    last: Table | None = None
    completed: Table | None = None


def lines_of(page: pypdfium2.PdfPage, above: Table | None = None) -> PageLines:
    """The lines of a page; `above` is the table at the end of the previous page."""
    textpage = page.get_textpage()
    try:
        text = _text_units(textpage)
        is_scan = _is_behind_scan(textpage)
        lines = list(_lines(textpage, text, with_right=is_scan))
        found, outside = _tables(page, textpage, text, lines, above)
    finally:
        textpage.close()

    table_of = {number: table for table in found for number in table.lines}
    read: dict[int, Table] = {}  # tables as they were read, by the identity of the table as it was found
    last: Table | None = None
    completed: Table | None = None
    with_tables: list[Line] = []
    for number, (_, line) in enumerate(lines):
        table = table_of.get(number)
        beside = outside.get(number)
        if beside:
            with_tables.append(replace(line, text=beside))
        elif table is None:
            with_tables.append(line)
        if table is not None and id(table) not in read:
            is_first = not read and (table.numbers or len(with_tables) <= EDGE_LINES)
            if above and len(with_tables) > EDGE_LINES:
                above = replace(above, ends_page=False)  # text is between them
            last = above.continued_by(table) if above and is_first else table
            if above and is_first and (parts := above.completed_by(last)):
                completed, last = parts
            read[id(table)] = last
            with_tables += [Line(row, line.size, whole=True) for _, row in last.numbered_lines()]
    with_tables = _with_markers(with_tables, SCAN_HEIGHT if is_scan else 0)
    if is_scan:
        with_tables = _with_plain_sizes(with_tables)
    ends_with_it = (
        last and last.cells and (last.numbers or any(line.whole for line in with_tables[-EDGE_LINES - 1 :]))
    )
    if last and any(line.whole for line in with_tables[-EDGE_LINES - 1 :]):
        last = replace(last, ends_page=True)
    return PageLines(with_tables, last if ends_with_it else None, completed)


def replace_last_row(lines: list[Line], table: Table, completed: Table) -> None:
    """Replace the last row of the table at the end of a page with the completed row."""
    row = len(table.cells) - 1
    old = [text for number, text in table.numbered_lines() if number == row]
    new = [text for number, text in completed.numbered_lines() if number == row]
    end = next((place for place in range(len(lines), 0, -1) if lines[place - 1].whole), 0)
    start = end - len(old)
    if start < 0 or [line.text for line in lines[start:end]] != old:
        start = end = len(lines)
    lines[start:end] = [Line(text, 0, whole=True) for text in new]


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a table row as in :func:`lines_of`, and the words of the row's non-empty cells."""

    text: str
    cells: list[list[Word]]


def rows_of(page: pypdfium2.PdfPage) -> Iterator[Row]:
    """The rows of the page's tables: one for each line that a row was split into."""
    textpage = page.get_textpage()
    try:
        text = _text_units(textpage)
        found, _ = _tables(page, textpage, text, list(_lines(textpage, text)))
    finally:
        textpage.close()
    for table in found:
        of_row: dict[int, list[str]] = {}
        for number, line in table.numbered_lines():
            of_row.setdefault(number, []).append(line)
        for number, (texts, cells) in enumerate(zip(table.rows, table.cells, strict=True)):
            # A header row has no lines, but may be a row of a table that continues from the previous page.
            for line in of_row.get(number, ["; ".join(filter(None, texts))]):
                yield Row(line, list(filter(None, cells)))


def _tables(
    page: pypdfium2.PdfPage,
    textpage: pypdfium2.PdfTextPage,
    text: str,
    lines: list[tuple[int, Line]],
    above: Table | None = None,
) -> tuple[list[Table], dict[int, str]]:
    """The tables of the page, and other text on the same lines."""
    rules = _rules(page)
    has_rules, tags = len(rules) >= LEAST_RULES, has_tags(page)
    gaps = 0 if has_rules and not tags else sum(itertools.islice(filter(None, _gap(textpage, lines)), ROWS))
    goes_on = above is not None and bool(above.numbers)
    tagged = tagged_tables(page) if tags and (gaps or goes_on) else []
    if not tagged and not has_rules and gaps < ROWS:
        return [], {}
    words = list(itertools.islice(_words(textpage, text, lines, breaks_words(page.pdf)), MOST_WORDS + 1))
    if len(words) > MOST_WORDS:
        return [], {}
    if not tagged:
        return tables(words, rules), {}
    found, others = words_in_cells(page, textpage, words, tagged, above)
    taken = {number for table in found for number in table.lines}
    beside: dict[int, list[str]] = {}
    for word in others:
        if word.line in taken:
            beside.setdefault(word.line, []).append(word.text)
    found += tables([word for word in others if word.line not in taken], rules)
    return found, {number: " ".join(texts) for number, texts in beside.items()}


def _text_units(textpage: pypdfium2.PdfTextPage) -> str:
    """The text of the page in PDFium's units: a character beyond U+FFFF, such as an emoji, has two."""
    text = str(textpage.get_text_range())
    if not text or max(text) <= "\uffff":
        return text
    return "".join(map(chr, memoryview(text.encode("utf-16-le")).cast("H")))


def _whole(text: str) -> str:
    """The text whose units :func:`_text_units` returned."""
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")


def _lines(
    textpage: pypdfium2.PdfTextPage, text: str, *, with_right: bool = False
) -> Iterator[tuple[int, Line]]:
    """Each line of the page's text with its start position."""
    position = 0
    for raw in text.split("\r\n"):
        start = position
        position += len(raw) + 2
        line = one_line(_whole(BROKEN_LINE.sub(BREAK, raw)), LINE_CHARACTERS)
        if line:
            first = _character(textpage, start + len(raw) - len(raw.lstrip()))
            last = _character(textpage, start + len(raw.rstrip()) - 1)
            # Small capitals are in another font than the initial capital.
            second = first + 1 if line[1:2].isalpha() else first
            font, bold = _font(textpage, second)
            last_font, last_bold = _font(textpage, last)
            # Use the rendered size, because many programs set size 1 and scale the text.
            size = float(pdfium.FPDFText_GetFontSize(textpage.raw, first))
            matrix = pdfium.FS_MATRIX()
            if pdfium.FPDFText_GetMatrix(textpage.raw, first, matrix):
                size *= math.hypot(matrix.c, matrix.d)
            is_level = abs(matrix.b) <= abs(matrix.a)
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


def _character(textpage: pypdfium2.PdfTextPage, place: int) -> int:
    """PDFium's index of the character at a position of the text.

    They differ, because the text omits some characters.
    """
    index = int(pdfium.FPDFText_GetCharIndexFromTextIndex(textpage.raw, place))
    return index if index >= 0 else place


def _is_behind_scan(textpage: pypdfium2.PdfTextPage) -> bool:
    """Whether the text is invisible, because it was recognised in the image of the page."""
    if textpage.count_chars() == 0:
        return False
    first = pdfium.FPDFText_GetTextObject(textpage.raw, 0)
    return bool(first) and pdfium.FPDFTextObj_GetTextRenderMode(first) == pdfium.FPDF_TEXTRENDERMODE_INVISIBLE


def _right(textpage: pypdfium2.PdfTextPage, position: int) -> float | None:
    left, right, bottom, top = (ctypes.c_double() for _ in range(4))
    found = pdfium.FPDFText_GetCharBox(textpage.raw, position, left, right, bottom, top)
    return right.value if found else None


def _left(textpage: pypdfium2.PdfTextPage, position: int) -> float | None:
    left, right, bottom, top = (ctypes.c_double() for _ in range(4))
    found = pdfium.FPDFText_GetCharBox(textpage.raw, position, left, right, bottom, top)
    return left.value if found else None


def _baseline(textpage: pypdfium2.PdfTextPage, position: int) -> float | None:
    across, up = ctypes.c_double(), ctypes.c_double()
    return up.value if pdfium.FPDFText_GetCharOrigin(textpage.raw, position, across, up) else None


def _with_plain_sizes(lines: list[Line]) -> list[Line]:
    """The lines of a scan, with sizes by which headings can be recognised.

    Text recognition only estimates the size of a line. A line has the size of a heading if it is
    much larger than the others, or if it is short and centred; all others have the same size.
    """
    placed = [line for line in lines if line.left is not None and line.right is not None]
    if not placed:
        return lines
    usual = median(line.size for line in placed)
    # Marks at the edge of the paper may be outside.
    right = sorted(line.right or 0 for line in placed)[-2:][0]
    left = min((line.left or 0 for line in placed if len(line.text) > 3), default=0)
    width = max(right - left, 1)

    def plain(line: Line) -> Line:
        if line.left is None or line.right is None or line.whole:
            return line
        if line.size > CERTAIN_SCALE * usual:
            return replace(line, size=round(PLAIN_SIZE * line.size / usual, 1))
        indent, rest = (line.left - left) / width, (right - line.right) / width
        is_centred = min(indent, rest) > CENTRED and abs(indent - rest) < CENTRED
        is_short = len(line.text.split()) <= TITLE_WORDS and line.text[-1] not in ".,;:"
        return replace(line, size=CENTRED_SIZE if is_centred and is_short else PLAIN_SIZE)

    return [plain(line) for line in lines]


def _with_markers(lines: list[Line], tolerance: float = 0) -> list[Line]:
    """The lines, with markers of list items that are lines of their own before their items.

    Some programs draw the markers of a page after its text. Their heights may differ by 1 point, and by
    `tolerance` em.
    """
    markers = {place for place, line in enumerate(lines) if not line.whole and MARKER.match(line.text)}
    if not markers:
        return lines
    at_height: dict[int, list[tuple[float, int]]] = {}  # left edges and places of other lines
    for place, line in enumerate(lines):
        if line.left is not None and line.baseline is not None and not line.whole:
            at_height.setdefault(round(line.baseline), []).append((line.left, place))
    marked: dict[int, Line] = {}
    joined = set()
    for place in sorted(markers):
        left, baseline = lines[place].left, lines[place].baseline
        if left is None or baseline is None:
            continue
        most = max(1, round(tolerance * lines[place].size))
        near = range(round(baseline) - most, round(baseline) + most + 1)
        beside = [each for height in near for each in at_height.get(height, ()) if each[0] > left]
        start, item = min(beside, default=(0.0, place))
        if item not in marked and item not in markers and start - left < MARKER_DISTANCE * lines[item].size:
            marked[item] = replace(lines[item], text=f"{lines[place].text} {lines[item].text}", left=left)
            joined.add(place)
    return [marked.get(place, line) for place, line in enumerate(lines) if place not in joined]


def _gap(textpage: pypdfium2.PdfTextPage, lines: list[tuple[int, Line]]) -> Iterator[bool]:
    """Whether each line has a wide gap, which is far faster to compute than the words' positions."""
    box = tuple(ctypes.c_double() for _ in range(4))  # left, top, right, bottom
    for start, line in lines:
        spans, height = [], 0.0
        count = pdfium.FPDFText_CountRects(textpage.raw, start, len(line.text))
        for index in range(count if 1 < count < MAX_RECTANGLES else 0):
            pdfium.FPDFText_GetRect(textpage.raw, index, *box)
            spans.append((box[0].value, box[2].value))
            height = max(height, box[1].value - box[3].value)
        yield any(after[0] - before[1] > height * GAP for before, after in itertools.pairwise(sorted(spans)))


def _font(textpage: pypdfium2.PdfTextPage, position: int) -> tuple[str, bool]:
    """The name of a character's font, and whether it is bold."""
    buffer = ctypes.create_string_buffer(FONT_NAME_BYTES)
    pdfium.FPDFText_GetFontInfo(textpage.raw, position, buffer, FONT_NAME_BYTES, ctypes.c_int())
    name = FONT_SUBSET.sub("", buffer.value.decode("utf-8", "replace").lower())
    heavy = pdfium.FPDFText_GetFontWeight(textpage.raw, position) >= BOLD_WEIGHT
    return name, "bold" in name or heavy


def breaks_words(document: pypdfium2.PdfDocument) -> bool:
    """Whether the program that wrote the file may have broken words.

    Browsers do so only if the page asks for it.
    """
    return not document.get_metadata_value("Producer").startswith(BROWSERS)


def _words(
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
            word = (BROKEN_WORD.sub(r"\1", word) if is_hyphenated else word).replace(BREAK, "-")
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


def _rules(page: pypdfium2.PdfPage) -> list[Rule]:
    """Horizontal edges of drawings, such as lines and the borders of boxes."""
    found = []
    left, bottom, right, top = (ctypes.c_float() for _ in range(4))
    for index in range(min(pdfium.FPDFPage_CountObjects(page.raw), MOST_OBJECTS)):
        shape = pdfium.FPDFPage_GetObject(page.raw, index)
        if pdfium.FPDFPageObj_GetType(shape) != pdfium.FPDF_PAGEOBJ_PATH:
            continue
        if pdfium.FPDFPageObj_GetBounds(shape, left, bottom, right, top):
            heights = {bottom.value, top.value}
            if top.value - bottom.value < THIN:
                heights = {(bottom.value + top.value) / 2}
            found += [Rule(left.value, right.value, height) for height in heights]
    return found


SCAN_HEIGHT = 0.3  # how much the heights of recognised words on one line may differ, in em
PLAIN_SIZE, CENTRED_SIZE = 10.0, 12.0  # sizes that recognised lines get
CENTRED = (
    0.12  # least distance of a centred line from both edges, and most difference, as shares of the width
)
PAGE_NUMBER = re.compile(r"(?<!\d)\d{1,3}(?!\d)")  # longer numbers are years or invoice numbers
PRINTED_NUMBER = re.compile(r"\A\d{1,4}(?=\s|\Z)|(?<=\s)\d{1,4}\Z")  # at the beginning or end of a line
EDGE_SHARE = 0.6  # share of the pages on which a line must appear to be boilerplate
HEADING_SCALE = 1.12  # a heading is larger than the surrounding text by this factor
CERTAIN_SCALE = 1.3  # a heading of a scan, or one that a small letter follows, is larger by this factor
TEXT_SHARE = 0.2  # a size of at least this share of a document's text is no size of headings,
TEXT_LINES = 10  # if at least this many lines have it
BOLD_HEADING_SCALE = 1.02  # the same for a bold line
BOLD_HEADING_LINES = 2  # bold lines of normal size are a heading if at most this many are adjacent
BOLD_SHARE = 0.3  # and if at most this share of the document is bold
FONT_SHARE = 0.1  # a font with at most this share of the document's text may mark headings
MONOSPACED = re.compile(r"mono|courier|consol|typewriter|cmtt|code")
LONE_GAP = 3.5  # most distance of a line in another font from the text below it, in em
LONE_INDENT = 3  # most that this text may be further to the right, in em
SPACE_ABOVE = 1.2  # least distance from the text above it, relative to the distance from the text below
HEADING_LINE = 120
FULL_LINE = 0.72  # a line shorter than this share of the usual width ends its paragraph
SHORT_LINE = 40  # characters; a shorter line is never joined with the next
HYPHENATED_SHARE = 0.03  # in a hyphenated document, more than this share of the lines ends with a hyphen
MAX_MARKS = 100  # bookmarks on a page
MARKED_LINES = 3  # lines in the title of a bookmark
BULLET = re.compile(rf"^(?:[{BULLETS}–*-]|\(?\d{{1,2}}[.)]|[a-z]\))\s")
ITEM_NUMBER = re.compile(r"^\(?(\d{1,2})[.)]\s")
SENTENCE_ENDS = ".!?:;"
INDENT = 3.0  # points by which the lines of a list item are indented, relative to its marker
NUMBERED = re.compile(r"^(?:chapter|section|part|appendix|annex)?[\d.ivx]+(?=[^\d.ivx])", re.IGNORECASE)
Bookmarks = Mapping[int, Sequence[tuple[int, str]]]  # level and title of bookmarks, by page number (from 1)


def without_boilerplate(pages: list[list[Line]]) -> list[list[Line]]:
    """The pages without running titles, which are lines at the top or bottom of most pages.

    In books, left and right pages have different titles. Lines that differ only in short numbers count as
    equal, but not lines of another size. A line that occurs at least as often inside pages is kept, because
    it belongs to a list. Lines beside the page's number are running titles, too.
    """
    if len(pages) < 3:
        return pages
    edges = [_edges(lines) for lines in pages]
    often: dict[Shape, int] = {}
    for first, step, least in ((0, 1, LEAST_PAGES), (0, 2, LEAST_SIDES), (1, 2, LEAST_SIDES)):
        side = edges[first::step]
        counts = Counter(key for keys in side for key in set(itertools.chain(*keys.values())))
        often |= {key: count for key, count in counts.items() if count >= max(least, len(side) * EDGE_SHARE)}
    inside = Counter(_shape(line) for lines in pages for line in lines[EDGE_LINES:-EDGE_LINES])
    running = {key for key, count in often.items() if key[2] is not None or inside.get(key, 0) < count}
    numbered = _numbered_heights(pages)
    return [
        [
            line
            for place, line in enumerate(lines)
            if running.isdisjoint(keys.get(place, ())) and _height(line) not in heights
        ]
        for lines, keys, heights in zip(pages, edges, numbered, strict=True)
    ]


def _numbered_heights(pages: list[list[Line]]) -> list[set[int]]:
    """For each page, the height of the line with its printed page number, if it was found on most pages.

    It is the topmost or lowest line, and not large: a chapter with its number may be on top of each page.
    What else is at that height is a running title, which may be another one in each chapter.
    """
    places: list[
        set[tuple[int, int]]
    ] = []  # for each page, how far a number is ahead of the page, and its height
    for number, lines in enumerate(pages):
        heights = [round(line.baseline) for line in lines if line.baseline is not None]
        outermost = {min(heights, default=None), max(heights, default=None)}
        body = median(line.size for line in lines) if lines else 0
        ends = [
            (found, _height(line))
            for line in lines
            if not line.whole and _height(line) in outermost and line.size <= body * BOLD_HEADING_SCALE
            for found in PRINTED_NUMBER.findall(line.text)
        ]
        places.append({(int(found) - number, height) for found, height in ends if height is not None})
    ahead = Counter(each for page in places for each in {distance for distance, _ in page})
    best, count = max(ahead.items(), key=lambda item: item[1], default=(0, 0))
    if count < max(LEAST_PAGES, len(pages) * EDGE_SHARE):
        return [set() for _ in pages]
    usual = Counter(height for page in places for distance, height in page if distance == best)
    least = max(LEAST_PAGES, len(pages) * EDGE_SHARE / 2)  # other heights on left pages than on right ones
    often = {height for height, times in usual.items() if times >= least}
    return [{height for distance, height in page if distance == best and height in often} for page in places]


def _height(line: Line) -> int | None:
    return None if line.baseline is None else round(line.baseline)


def _extreme_heights(lines: list[Line]) -> set[int]:
    heights = sorted({round(line.baseline) for line in lines if line.baseline is not None})
    return {*heights[:BOTTOM_HEIGHTS], *heights[-TOP_HEIGHTS:]}


def _edges(lines: list[Line]) -> dict[int, list[Shape]]:
    """The first and last lines in the order of the text, and the top and bottom ones, by their places.

    Lines at the top or bottom must be at the same height on all pages, because rows of a table may be there,
    too.
    """
    found: dict[int, list[Shape]] = {}
    extreme = _extreme_heights(lines)
    for place, line in enumerate(lines):
        if line.whole:
            continue
        if not EDGE_LINES <= place < len(lines) - EDGE_LINES:
            found.setdefault(place, []).append(_shape(line))
        if line.baseline is not None and round(line.baseline) in extreme:
            found.setdefault(place, []).append((*_shape(line)[:2], round(line.baseline)))
    return found


def _shape(line: Line) -> Shape:
    return PAGE_NUMBER.sub("#", line.text), round(line.size), None


def sections_of(
    pages: list[list[Line]], bookmarks: Bookmarks | None = None, is_hyphenated: bool = True
) -> Iterator[Section]:
    """A section for each heading on each page; a heading also applies to the next page's start.

    `is_hyphenated` says whether the program that wrote the file breaks words at the ends of lines.
    """
    plain = [line for lines in pages for line in lines if not line.whole]
    sizes = [line.size for line in plain for _ in range(0, len(line.text), 20)]
    body = median(sizes) if sizes else 0
    large = HEADING_SCALE * _largest_common(plain, body)
    bold = sum(len(line.text) for line in plain if line.bold)
    some_bold = bold <= BOLD_SHARE * sum(len(line.text) for line in plain)
    rare_fonts = _rare_fonts(plain)
    compounds = {word.lower() for line in plain for word in COMPOUND.findall(line.text)}
    broken = sum(BREAK in line.text for line in plain)
    is_hyphenated = is_hyphenated or broken > HYPHENATED_SHARE * len(plain)
    path: list[Line] = []
    for number, page in enumerate(pages, 1):
        lines = _with_bookmarks(page, (bookmarks or {}).get(number, ()))
        pending: list[Line] = []
        widths = sorted(len(line.text) for line in lines if not line.whole)
        usual = widths[int(len(widths) * 0.9)] if widths else 0
        full = max(SHORT_LINE, usual * FULL_LINE)
        for is_heading, run in _runs(lines, _headings(lines, body, large, full, some_bold, rare_fonts)):
            if is_heading:
                parents = path[:-1]
                path = [line for line in path if line.outranks(run[0])]
                if pending and pending[0].size and pending[0] not in path:
                    yield Section(f"page={number}", number, _joined(parents), pending[0].text)
                text = _without_hyphenation(
                    " ".join(line.text for line in run).replace(f"{BREAK} ", BREAK), compounds, is_hyphenated
                )
                path.append(replace(run[0], text=text))
                pending = path[-1:]
                continue
            heading = " › ".join(line.text for line in path)
            text = _without_hyphenation(_paragraphs(run, full), compounds, is_hyphenated)
            # The heading was shortened, so keep its full text.
            if pending and len(heading) > HEADING_CHARACTERS:
                text = f"{pending[0].text}\n\n{text}"
            yield Section(f"page={number}", number, one_line(heading, HEADING_CHARACTERS), text)
            pending = []
        if pending and pending[0].size:  # a heading without text becomes text of this page
            yield Section(f"page={number}", number, _joined(path[:-1]), pending[0].text)


def _joined(path: Sequence[Line]) -> str:
    return one_line(" › ".join(line.text for line in path), HEADING_CHARACTERS)


def _with_bookmarks(lines: list[Line], bookmarks: Sequence[tuple[int, str]]) -> list[Line]:
    """Join and level the lines that bookmarks name; other bookmarks become lines at the beginning."""
    if not bookmarks:
        return lines
    keys = ["" if line.whole else _key(line.text) for line in lines]
    unseen = []
    # By first line, the number of lines and the level of a bookmark's title.
    marked: dict[int, tuple[int, int]] = {}
    for level, title in bookmarks[:MAX_MARKS]:
        wanted = _key(title)
        for start, first in enumerate(keys):
            key, count = first, 1
            while key and key != wanted and wanted.startswith(key) and count < MARKED_LINES:
                key += keys[start + count] if start + count < len(keys) and keys[start + count] else "?"
                count += 1
            if key and key == wanted and start not in marked:
                marked[start] = count, level
                break
        else:
            unseen.append(Line(title, 0, level=level))
    found, place = unseen, 0
    while place < len(lines):
        count, at = marked.get(place, (1, None))
        text = " ".join(line.text for line in lines[place : place + count])
        found.append(lines[place] if at is None else replace(lines[place], text=text, level=at))
        place += count
    return found


def _key(text: str) -> str:
    """The letters and digits of a heading, without its number, which bookmarks often omit."""
    key = NUMBERED.sub("", "".join(text.split()))
    return "".join(filter(str.isalnum, key)).casefold()


def _largest_common(lines: Sequence[Line], body: float) -> float:
    """The largest size of much text, because most of the text may be code and tables in a smaller size."""
    characters: Counter[float] = Counter()
    count: Counter[float] = Counter()
    for line in lines:
        characters[line.size] += len(line.text)
        count[line.size] += 1
    least = TEXT_SHARE * characters.total()
    common = (size for size, many in characters.items() if many >= least and count[size] >= TEXT_LINES)
    return max(body, *common, 0)


def _rare_fonts(lines: Sequence[Line]) -> frozenset[str]:
    """The fonts that may mark headings, because little of the document is set in them."""
    often: Counter[str] = Counter()
    for line in lines:
        often[line.font] += len(line.text)
    most = FONT_SHARE * often.total()
    return frozenset(
        font for font, count in often.items() if font and count <= most and not MONOSPACED.search(font)
    )


def _headings(
    lines: list[Line], body: float, large: float, full: float, some_bold: bool, rare_fonts: frozenset[str]
) -> list[bool]:
    """Whether each line is a heading: bookmarked, larger than the text, or separate and in another font."""
    found = []
    for line in lines:
        is_large = line.size >= (body * BOLD_HEADING_SCALE if line.bold else large) and body > 0
        fits = len(line.text) <= HEADING_LINE and not line.whole
        found.append(line.level is not None or (is_large and fits))
    for index, (line, following) in enumerate(itertools.pairwise(lines)):
        if found[index] and line.level is None and not found[index + 1]:
            has_letters = any(map(str.isalpha, line.text))
            is_long = len(line.text) > SHORT_LINE and line.size < CERTAIN_SCALE * body
            goes_on = is_long and following.text[0].islower() and not following.whole
            found[index] = not goes_on and (has_letters or (index > 0 and found[index - 1]))
    start = 0
    for bold, group in itertools.groupby(lines, key=lambda line: line.bold and not line.whole):
        end = start + len(list(group))
        before, after = lines[start - 1] if start else None, lines[end] if end < len(lines) else None
        ended = before is None or before.whole or len(before.text) < full or before.text[-1] in ".!?:"
        if bold and some_bold and ended and after and not after.whole and end - start <= BOLD_HEADING_LINES:
            for index in range(start, end):
                found[index] = found[index] or (
                    body <= lines[index].size * BOLD_HEADING_SCALE and is_title(lines[index].text)
                )
        start = end
    for index, line in enumerate(lines[:-1]):
        if line.font in rare_fonts and not found[index] and not line.whole and not line.bold:
            above = lines[index - 1] if index else None
            found[index] = body <= line.size * BOLD_HEADING_SCALE and _is_lone(above, line, lines[index + 1])
    return found


def _is_lone(before: Line | None, line: Line, after: Line) -> bool:
    """Whether a line has the form of a title, more space above than below, and text in another font below."""
    if after.whole or after.font == line.font or after.text[0].islower() or not has_title_form(line.text):
        return False
    if line.baseline is None or after.baseline is None or line.left is None or after.left is None:
        return False
    below = line.baseline - after.baseline
    above = before.baseline - line.baseline if before and before.baseline is not None else math.inf
    is_above = 0 < below < LONE_GAP * line.size and after.left < line.left + LONE_INDENT * line.size
    return is_above and not 0 < above < below * SPACE_ABOVE


def _runs(lines: list[Line], headings: list[bool]) -> Iterator[tuple[bool, list[Line]]]:
    """Runs of adjacent lines: headings of one size, or text. A bookmarked heading is a separate run."""
    run: list[Line] = []
    run_heading = False
    for line, heading in zip(lines, headings, strict=True):
        marked = line.level is not None or (run and run[-1].level is not None)
        if run and (heading != run_heading or (heading and (marked or line.size != run[-1].size))):
            yield run_heading, run
            run = []
        run.append(line)
        run_heading = heading
    if run:
        yield run_heading, run


def _paragraphs(lines: list[Line], full: float) -> str:
    """Join lines to paragraphs. A line shorter than `full` (a row, or the end of a paragraph) ends one."""
    text = ""
    previous: Line | None = None  # None if the previous line is complete
    item: Line | None = None  # the first line of the list item to which the previous line belongs
    for line in lines:
        joined = "\n" if text else ""
        begins = _begins_item(line, previous, item)
        if previous and not line.whole:
            after_list = item is not None and not begins and _is_after(line, previous, item)
            if previous.text.endswith(BREAK):
                joined, begins = "", False
            elif after_list:
                joined, item = "\n\n", None
            elif len(previous.text) >= full and line.size == previous.size and not begins:
                joined = " "
        text += joined + line.text
        if begins:
            item = line
        elif joined == "\n":
            item = None
        previous = None if line.whole else line
    return clean(text)


def _begins_item(line: Line, previous: Line | None, item: Line | None) -> bool:
    """Whether a line begins a list item. A number that ends a sentence does not: *at frame / 40.*"""
    found = BULLET.match(line.text)
    if found is None or line.whole:
        return False
    number = ITEM_NUMBER.match(line.text)
    if number is None or previous is None or previous.text[-1] in SENTENCE_ENDS:
        return True
    last = ITEM_NUMBER.match(item.text) if item else None
    return int(number[1]) in {1, int(last[1]) + 1 if last else 1}


def _is_after(line: Line, previous: Line, item: Line) -> bool:
    """Whether a line begins the paragraph after a list: a sentence aligned with the markers."""
    if line.left is None or item.left is None or previous.text[-1] not in SENTENCE_ENDS:
        return False
    return line.left <= item.left + INDENT


def _without_hyphenation(text: str, compounds: set[str], is_hyphenated: bool) -> str:
    """Join words that were split at line ends.

    The hyphen is kept if the document is not hyphenated, if the word has a hyphen elsewhere, and before
    digits and names.
    """
    if not is_hyphenated:
        return text.replace(BREAK, "-")

    def joined(match: re.Match[str]) -> str:
        first, second = match.groups()
        name = second[0].isupper() and not first[-1].isupper()
        kept = name or second[0].isdigit() or f"{first}-{second}".lower() in compounds
        return f"{first}-" if kept else first

    return BROKEN_WORD.sub(joined, text).replace(BREAK, "-") if BREAK in text else text
