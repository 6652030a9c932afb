"""PDF files: the text of each page, and images of pages with positions of characters.

Text is recognised on scanned pages.
"""

import ctypes
import io
import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium
from PIL import Image

from ingestion.parsing.formats import (
    DAMAGED,
    PASSWORD,
)
from ingestion.parsing.sections import (
    HEADING_CHARACTERS,
    SEPARATOR,
    Contents,
    Limits,
    Progress,
    Unreadable,
    one_line,
)
from ingestion.parsing.titles import first_title

from . import ocr
from .pdf_forms import with_fields
from .pdf_headings import Bookmark, Bookmarks
from .pdf_lines import PageLines, lines_of, replace_last_row, rows_of
from .pdf_order import Place
from .pdf_page_text import Line, breaks_words
from .pdf_running_titles import without_running_titles
from .pdf_scans import is_scanned, recognise_pages
from .pdf_sections import sections_of
from .pdf_tables import Table
from .pdf_turned import level_page

IMAGE_SCALE = 110 / 72
IMAGE_SIDE = 2_000  # longest side in pixels, because a page may claim any size
MAX_BOOKMARKS = 10_000
UNITS = 10_000  # length of the page's longer side, in units of character positions
MAX_CHARACTERS = 50_000


def open_pdf(path: Path) -> pypdfium2.PdfDocument:
    try:
        document = pypdfium2.PdfDocument(path)
        document.init_forms()
        if len(document) == 0:
            raise Unreadable("The file has no pages.")
    except pypdfium2.PdfiumError as error:
        locked = pdfium.FPDF_GetLastError() == pdfium.FPDF_ERR_PASSWORD or "password" in str(error).lower()
        raise Unreadable(PASSWORD if locked else DAMAGED) from error
    return document


def read(path: Path, limits: Limits, progress: Progress) -> Contents:
    """Read the text of all pages."""
    document = open_pdf(path)
    count = len(document)
    if count > limits.pages:
        raise Unreadable(f"The file has {count:,} pages; at most {limits.pages:,} are read.")
    contents = Contents(limits, pages=count)
    pages: list[list[Line]] = []
    scans: list[int] = []
    characters = 0
    is_too_large = False
    above: Table | None = None
    places: frozenset[Place] = frozenset()
    for number in range(count):
        try:
            read, is_scan = _page(document, number, above, places)
        except Image.DecompressionBombError:
            read, is_scan, is_too_large = PageLines([]), False, True
        if above and read.completed:
            replace_last_row(pages[-1], above, read.completed)
        lines, above, places = read.lines, read.last, read.places
        pages.append(lines)
        characters += sum(len(line.text) for line in lines)
        contents.check(characters)
        if is_scan:
            scans.append(number)
        progress(number + 1 - len(scans), count)
    if scans:
        recognise_pages(document, pages, scans, limits, progress)
    elif is_too_large and not any(pages):
        raise Unreadable(f"The pages are images of more than {ocr.PIXELS // 1_000_000} million pixels.")
    kept = without_running_titles(pages)
    for section in sections_of(kept, _bookmarks(document), breaks_words(document)):
        contents.add(section.anchor, section.page, section.heading, section.text)
    beginning = contents.sections[0].heading if contents.sections and contents.sections[0].page == 1 else ""
    contents.title = first_title(
        document.get_metadata_dict().get("Title", ""), beginning.partition(SEPARATOR)[0]
    )
    return contents


def _bookmarks(document: pypdfium2.PdfDocument) -> Bookmarks:
    """The bookmarks that lead to a page, at most MAX_BOOKMARKS."""
    found: dict[int, list[Bookmark]] = {}
    try:
        for bookmark in itertools.islice(document.get_toc(), MAX_BOOKMARKS):
            title = one_line(bookmark.get_title(), HEADING_CHARACTERS)
            target = bookmark.get_dest()
            page = target.get_index() if target else None
            if page is not None and any(map(str.isalpha, title)):
                found.setdefault(page + 1, []).append(Bookmark(bookmark.level, title, _height(target)))
    except pypdfium2.PdfiumError:
        pass
    return found


def _height(target: pypdfium2.PdfDest) -> float | None:
    """The height of a bookmark's destination on its page; None if unknown, which PDFium returns as 0."""
    view, places = target.get_view()
    of_height = {pdfium.PDFDEST_VIEW_XYZ: 1, pdfium.PDFDEST_VIEW_FITH: 0, pdfium.PDFDEST_VIEW_FITR: 3}
    place = of_height.get(view, len(places))
    return places[place] if place < len(places) and places[place] > 0 else None


def render(path: Path, number: int) -> bytes:
    """Page `number` (from 1) as a PNG of about 110 dots per inch.

    Raises Unreadable if there is no such page.
    """
    document = open_pdf(path)
    if not 1 <= number <= len(document):
        raise Unreadable("The file has no such page.")
    page = document[number - 1]
    scale = min(IMAGE_SCALE, IMAGE_SIDE / max(*page.get_size(), 1))
    buffer = io.BytesIO()
    page.render(scale=scale).to_pil().save(buffer, "PNG")
    return buffer.getvalue()


def characters(path: Path, number: int) -> dict[str, Any]:
    """The characters of page `number` (from 1) as rendered, and the rows of its tables.

    Positions take the page's rotation and cropping into account. The result is `{"width", "height", "text",
    "boxes", "rows"}`. `boxes` has left, top, right and bottom of each character; a box is as wide as the
    character's advance, and extends from the top of its ink to the descender line. Each of `rows` has the
    row's text as it was read, and its cells as lists of words, each with its start and end in `text`. Raises
    Unreadable.
    """
    document = open_pdf(path)
    if not 1 <= number <= len(document):
        raise Unreadable("The file has no such page.")
    page = level_page(document, number - 1)
    scale = UNITS / max(*page.get_size(), 1)
    width, height = (round(side * scale) for side in page.get_size())
    textpage = page.get_textpage()
    place, x, y = pdfium.FS_RECTF(), ctypes.c_int(), ctypes.c_int()
    ink = tuple(ctypes.c_double() for _ in range(4))  # left, right, bottom, top
    text: list[str] = []
    boxes: list[list[int]] = []
    places: list[int] = []  # in `text`, by PDFium's index
    for index in range(min(pdfium.FPDFText_CountChars(textpage.raw), MAX_CHARACTERS)):
        places.append(len(text))
        code = pdfium.FPDFText_GetUnicode(textpage.raw, index)
        if not 0 < code <= 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            continue
        wide = pdfium.FPDFText_GetLooseCharBox(textpage.raw, index, place)
        high = pdfium.FPDFText_GetCharBox(textpage.raw, index, *ink)
        if not (wide and high):
            continue
        edges = ((place.left, ink[3].value), (place.right, place.bottom))
        corners = []
        for across, up in edges:
            pdfium.FPDF_PageToDevice(page.raw, 0, 0, width, height, 0, across, up, x, y)
            corners.append((x.value, y.value))
        (left, top), (right, bottom) = corners
        text.append(chr(code))
        boxes.append([min(left, right), min(top, bottom), max(left, right), max(top, bottom)])
    places.append(len(text))
    rows = []
    for row in rows_of(page):
        cells = [[word for word in cell if word.last + 1 < len(places)] for cell in row.cells]
        words = [[(each.text, places[each.first], places[each.last + 1]) for each in cell] for cell in cells]
        rows.append((row.text, words))
    return {"width": width, "height": height, "text": "".join(text), "boxes": boxes, "rows": rows}


def _page(
    document: pypdfium2.PdfDocument, number: int, above: Table | None, repeated: frozenset[Place]
) -> tuple[PageLines, bool]:
    """The page's lines, and whether it is a scan.

    Raises DecompressionBombError if the images of a scan are too large to render.
    """
    try:
        page = level_page(document, number)
        read = lines_of(page, above, repeated)
        read = replace(read, lines=with_fields(page, read.lines))
        is_scan = is_scanned(page, read.lines)
        page.close()
    except pypdfium2.PdfiumError:
        return PageLines([]), False  # one broken page must not make the others unreadable
    return read, is_scan
