"""PDF: text page by page, with its headings, and pages as images."""

import ctypes
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pypdfium2
import pypdfium2.raw as pdfium

from .sections import HEADING_CHARACTERS, Contents, Limits, Section, Unreadable, clean, one_line
from .sniffing import DAMAGED, PASSWORD

FONT_NAME_BYTES = 200
EDGE_LINES = 2  # at the top and at the foot, where running titles and page numbers stand
EDGE_SHARE = 0.6  # of the pages on which a line must stand to be furniture
HEADING_SCALE = 1.12  # of the size of the text around
BOLD_HEADING_SCALE = 1.02  # the same for a bold line
HEADING_LINE = 120
FULL_LINE = 0.72  # of the widest usual line: a shorter one ends its paragraph
SHORT_LINE = 40  # never joined with the next
IMAGE_SCALE = 110 / 72
IMAGE_SIDE = 2_000  # pixels; pages may claim to be as large as a house
BULLET = re.compile(r"^(?:[•◦▪‣–*-]|\(?\d{1,2}[.)]|[a-z]\))\s")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a page, with the size and weight of its first letter."""

    text: str
    size: float
    bold: bool = False


def open_pdf(path: Path) -> pypdfium2.PdfDocument:
    try:
        document = pypdfium2.PdfDocument(path)
        if len(document) == 0:
            raise Unreadable("The file has no pages.")
    except pypdfium2.PdfiumError as error:
        locked = pdfium.FPDF_GetLastError() == pdfium.FPDF_ERR_PASSWORD or "password" in str(error).lower()
        raise Unreadable(PASSWORD if locked else DAMAGED) from error
    return document


def read(path: Path, limits: Limits, on_page: Callable[[int, int], None]) -> Contents:
    document = open_pdf(path)
    count = len(document)
    if count > limits.pages:
        raise Unreadable(f"The file has {count:,} pages; at most {limits.pages:,} are read.")
    pages: list[list[Line]] = []
    characters = 0
    for number in range(count):
        pages.append(list(_lines(document, number)))
        characters += sum(len(line.text) for line in pages[-1])
        if characters > limits.characters:
            raise Unreadable(f"The file holds more text than is read ({limits.characters:,} characters).")
        on_page(number + 1, count)
    if not characters:
        raise Unreadable("No text was found; it may be a scan. Run text recognition on it and add it again.")
    title = document.get_metadata_dict().get("Title", "")
    return Contents(list(_sections(_without_furniture(pages))), title, count)


def render(path: Path, number: int) -> bytes:
    """Page `number` (from 1) as a PNG of about 110 dots an inch. Raises Unreadable where there is none."""
    document = open_pdf(path)
    if not 1 <= number <= len(document):
        raise Unreadable("The file has no such page.")
    page = document[number - 1]
    scale = min(IMAGE_SCALE, IMAGE_SIDE / max(*page.get_size(), 1))
    buffer = io.BytesIO()
    page.render(scale=scale).to_pil().save(buffer, "PNG")
    return buffer.getvalue()


def _lines(document: pypdfium2.PdfDocument, number: int) -> Iterator[Line]:
    try:
        page = document[number]
        textpage = page.get_textpage()
    except pypdfium2.PdfiumError:
        return  # one broken page does not make the others unreadable
    position = 0
    for raw in textpage.get_text_range().split("\r\n"):
        start = position
        position += len(raw) + 2
        # A hyphen at the end of a line comes as U+0002 or U+FFFE: the word goes on in the next line.
        text = one_line(raw.replace("\x02", "\u2010").replace("\ufffe", "\u2010"), 20_000)
        if text:
            size = pdfium.FPDFText_GetFontSize(textpage.raw, start)
            yield Line(text, round(size, 1), _bold(textpage, start))
    textpage.close()
    page.close()


def _bold(textpage: pypdfium2.PdfTextPage, position: int) -> bool:
    name = ctypes.create_string_buffer(FONT_NAME_BYTES)
    pdfium.FPDFText_GetFontInfo(textpage.raw, position, name, FONT_NAME_BYTES, ctypes.c_int())
    return b"bold" in name.value.lower() or pdfium.FPDFText_GetFontWeight(textpage.raw, position) >= 600


def _without_furniture(pages: list[list[Line]]) -> list[list[Line]]:
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
    return lines[:EDGE_LINES] + lines[EDGE_LINES:][-EDGE_LINES:]


def _shape(line: Line) -> str:
    return re.sub(r"\d+", "#", line.text)


def _sections(pages: list[list[Line]]) -> Iterator[Section]:
    """One section for each heading on each page; a heading goes on over the page's end."""
    sizes = [line.size for lines in pages for line in lines for _ in range(0, len(line.text), 20)]
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
        heading = line.size >= body * scale and len(line.text) <= HEADING_LINE and body > 0
        if run and (heading != run_heading or (heading and line.size != run[-1].size)):
            yield run_heading, run
            run = []
        run.append(line)
        run_heading = heading
    if run:
        yield run_heading, run


def _widest(lines: list[Line]) -> int:
    """The usual width of a full line, in characters."""
    return sorted(len(line.text) for line in lines)[int(len(lines) * 0.9)] if lines else 0


def _paragraphs(lines: list[Line], full: float) -> str:
    """Lines joined to paragraphs; those shorter than `full` (rows, ends of paragraphs) stay alone."""
    text = ""
    previous, size = "", 0.0
    for line in lines:
        goes_on = len(previous) >= full and line.size == size and not BULLET.match(line.text)
        if previous.endswith("\u2010"):
            text = text[:-1] + line.text
        elif goes_on:
            text += f" {line.text}"
        else:
            text += f"\n{line.text}" if text else line.text
        previous, size = line.text, line.size
    return clean(text.replace("\u2010", "-"))
