"""The lines of a page of a PDF; the rows of its tables are lines that name their columns."""

import ctypes
import itertools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

import pypdfium2
import pypdfium2.raw as pdfium

from .pdf_tables import ROWS, Rule, Table, Word, tables
from .sections import (
    HEADING_CHARACTERS,
    Section,
    clean,
    one_line,
)
from .tables import table_lines

FONT_NAME_BYTES = 200
LINE_CHARACTERS = 20_000
WORD = re.compile(r"\S+")
MOST_WORDS = 5_000  # on a page on which tables are looked for
MOST_OBJECTS = 5_000
MOST_RECTANGLES = 500
LEAST_RULES = 3  # between the rows of a table
GAP = 0.7  # of the line's height: what may keep columns apart
THIN = 2.5  # points: a thinner rectangle is a line
BOLD_WEIGHT = 600


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a page, with the size and weight of its first letter.

    `whole` is a row of a table or recognised text: never a heading, never joined with its neighbours.
    """

    text: str
    size: float
    bold: bool = False
    whole: bool = False


def lines_of(page: pypdfium2.PdfPage) -> list[Line]:
    """The lines in the order of the text, with each table in the place of its first line."""
    textpage = page.get_textpage()
    try:
        text = textpage.get_text_range()
        lines = list(_lines(textpage, text))
        rules = _rules(page)
        if len(rules) < LEAST_RULES and sum(_gap(textpage, lines)) < ROWS:
            return [line for _, line in lines]
        words = list(itertools.islice(_words(textpage, text, lines), MOST_WORDS + 1))
        found = tables(words, rules) if len(words) <= MOST_WORDS else []
        return list(_with_tables(lines, found))
    finally:
        textpage.close()


def _lines(textpage: pypdfium2.PdfTextPage, text: str) -> Iterator[tuple[int, Line]]:
    """Each line with the place where it starts."""
    position = 0
    for raw in text.split("\r\n"):
        start = position
        position += len(raw) + 2
        # A hyphen at the end of a line comes as U+0002 or U+FFFE: the word goes on in the next line.
        line = one_line(raw.replace("\x02", "\u2010").replace("\ufffe", "\u2010"), LINE_CHARACTERS)
        if line:
            size = pdfium.FPDFText_GetFontSize(textpage.raw, start)
            yield start, Line(line, round(size, 1), _bold(textpage, start))


def _gap(textpage: pypdfium2.PdfTextPage, lines: list[tuple[int, Line]]) -> Iterator[bool]:
    """For each line whether it has a gap: far quicker to know than where its words are."""
    box = tuple(ctypes.c_double() for _ in range(4))  # left, top, right, bottom
    for start, line in lines:
        spans, height = [], 0.0
        count = pdfium.FPDFText_CountRects(textpage.raw, start, len(line.text))
        for index in range(count if 1 < count < MOST_RECTANGLES else 0):
            pdfium.FPDFText_GetRect(textpage.raw, index, *box)
            spans.append((box[0].value, box[2].value))
            height = max(height, box[1].value - box[3].value)
        yield any(after[0] - before[1] > height * GAP for before, after in itertools.pairwise(sorted(spans)))


def _bold(textpage: pypdfium2.PdfTextPage, position: int) -> bool:
    name = ctypes.create_string_buffer(FONT_NAME_BYTES)
    pdfium.FPDFText_GetFontInfo(textpage.raw, position, name, FONT_NAME_BYTES, ctypes.c_int())
    heavy = pdfium.FPDFText_GetFontWeight(textpage.raw, position) >= BOLD_WEIGHT
    return b"bold" in name.value.lower() or heavy


def _words(textpage: pypdfium2.PdfTextPage, text: str, lines: list[tuple[int, Line]]) -> Iterator[Word]:
    """Every word with its box and the number of its line."""
    box = tuple(ctypes.c_double() for _ in range(4))
    edge = tuple(ctypes.c_double() for _ in range(4))
    line = 0
    for match in WORD.finditer(text):
        while line + 1 < len(lines) and lines[line + 1][0] <= match.start():
            line += 1
        first = pdfium.FPDFText_GetCharBox(textpage.raw, match.start(), *box)
        last = pdfium.FPDFText_GetCharBox(textpage.raw, match.end() - 1, *edge)
        if first and last:
            left, right, bottom, top = box[0].value, edge[1].value, box[2].value, box[3].value
            word = match.group().replace("\x02", "-").replace("\ufffe", "-")
            bottom, top = min(bottom, edge[2].value), max(top, edge[3].value)
            yield Word(word, left, right, bottom, top, line, lines[line][1].bold)


def _rules(page: pypdfium2.PdfPage) -> list[Rule]:
    """Horizontal edges of what is drawn: lines, and the borders of boxes."""
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


def _with_tables(lines: list[tuple[int, Line]], found: list[Table]) -> Iterator[Line]:
    """The lines, with those that make a table replaced by its rows."""
    table_of = {number: table for table in found for number in table.lines}
    told: set[int] = set()
    for number, (_, line) in enumerate(lines):
        table = table_of.get(number)
        if table is None:
            yield line
        elif id(table) not in told:
            told.add(id(table))
            yield from (Line(row, line.size, whole=True) for row in table_lines(table.rows, table.named))


EDGE_LINES = 2  # at the top and at the foot, where running titles and page numbers stand
EDGE_SHARE = 0.6  # of the pages on which a line must stand to be furniture
HEADING_SCALE = 1.12  # of the size of the text around
BOLD_HEADING_SCALE = 1.02  # the same for a bold line
HEADING_LINE = 120
FULL_LINE = 0.72  # of the widest usual line: a shorter one ends its paragraph
SHORT_LINE = 40  # never joined with the next
BULLET = re.compile(r"^(?:[•◦▪‣–*-]|\(?\d{1,2}[.)]|[a-z]\))\s")


def without_furniture(pages: list[list[Line]]) -> list[list[Line]]:
    """The pages without lines that stand at the edge of most of them, but for their numbers."""
    if len(pages) < 3:
        return pages
    seen = Counter(key for lines in pages for key in {_shape(line) for line in _edges(lines)})
    running = {key for key, count in seen.items() if count >= max(3, len(pages) * EDGE_SHARE)}
    kept = []
    for lines in pages:
        dropped = {id(line) for line in _edges(lines) if _shape(line) in running}
        kept.append([line for line in lines if id(line) not in dropped])
    return kept


def _edges(lines: list[Line]) -> list[Line]:
    return [line for line in lines[:EDGE_LINES] + lines[EDGE_LINES:][-EDGE_LINES:] if not line.whole]


def _shape(line: Line) -> str:
    return re.sub(r"\d+", "#", line.text)


def sections_of(pages: list[list[Line]]) -> Iterator[Section]:
    """One section for each heading on each page; a heading goes on over the page's end."""
    plain = [line for lines in pages for line in lines if not line.whole]
    sizes = [line.size for line in plain for _ in range(0, len(line.text), 20)]
    body = median(sizes) if sizes else 0
    path: list[Line] = []
    for number, lines in enumerate(pages, 1):
        pending: list[Line] = []
        full = max(SHORT_LINE, _widest(lines) * FULL_LINE)
        for is_heading, run in _runs(lines, body):
            if is_heading:
                path = [line for line in path if line.size > run[0].size * 1.02]
                path.append(Line(" ".join(line.text for line in run), run[0].size))
                pending = path[-1:]
                continue
            heading = one_line(" › ".join(line.text for line in path), HEADING_CHARACTERS)
            yield Section(f"page={number}", number, heading, _paragraphs(run, full))
            pending = []
        if pending:  # a heading without text under it is still text of this page
            yield Section(f"page={number}", number, "", pending[0].text)


def _runs(lines: list[Line], body: float) -> Iterator[tuple[bool, list[Line]]]:
    """Neighbouring lines that are headings of one size, or text."""
    run: list[Line] = []
    run_heading = False
    for line in lines:
        scale = BOLD_HEADING_SCALE if line.bold else HEADING_SCALE
        large = line.size >= body * scale and body > 0
        heading = large and len(line.text) <= HEADING_LINE and not line.whole
        if run and (heading != run_heading or (heading and line.size != run[-1].size)):
            yield run_heading, run
            run = []
        run.append(line)
        run_heading = heading
    if run:
        yield run_heading, run


def _widest(lines: list[Line]) -> int:
    """The usual width of a full line, in characters."""
    widths = sorted(len(line.text) for line in lines if not line.whole)
    return widths[int(len(widths) * 0.9)] if widths else 0


def _paragraphs(lines: list[Line], full: float) -> str:
    """Lines joined to paragraphs; those shorter than `full` (rows, ends of paragraphs) stay alone."""
    text = ""
    previous, size = "", 0.0
    for line in lines:
        goes_on = len(previous) >= full and line.size == size and not BULLET.match(line.text)
        if line.whole:
            text += f"\n{line.text}" if text else line.text
            previous, size = "", 0.0
            continue
        if previous.endswith("\u2010"):
            text = text[:-1] + line.text
        elif goes_on:
            text += f" {line.text}"
        else:
            text += f"\n{line.text}" if text else line.text
        previous, size = line.text, line.size
    return clean(text.replace("\u2010", "-"))
