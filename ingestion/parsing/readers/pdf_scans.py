"""Scanned pages of a PDF: which pages are scans, their recognition, and text behind a scan (an OCR layer)."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

import pypdfium2
import pypdfium2.raw as pdfium
from PIL import Image

from ingestion.parsing.sections import Contents, Limits, Progress, Unreadable

from . import ocr
from .lone_titles import TITLE_WORDS
from .pdf_page_text import Line

SCAN_SIDE = 4_000  # longest side of a picture for text recognition, in pixels
SCAN_LETTERS = 20  # a page with fewer letters and large pictures is a scan
SCAN_SHARE = 0.3  # share of the page that its pictures must cover
DRAWN_SHAPES = 20  # a page without words is worth recognising if it has this many drawn shapes
IMAGES = [pdfium.FPDF_PAGEOBJ_IMAGE]
DEPTH = 3  # nesting depth of form objects in which pictures are searched for
NOTHING_READ = "No text was found on the scanned pages, or it is too faint or blurred to be read."
WHAT = "The pages are scanned images"
SCAN_HEIGHT = 0.3  # how much the heights of recognised words on one line may differ, in em
PLAIN_SIZE, CENTRED_SIZE = 10.0, 12.0  # sizes that recognised lines get
LARGE_SCALE = 1.3  # a recognised line larger than the others by this factor is a heading
# Minimum distance of a centred line from both edges, and maximum difference of these two distances, as shares
# of the width.
CENTRED = 0.12


def is_scanned(page: pypdfium2.PdfPage, lines: Sequence[Line]) -> bool:
    """Whether the page has too few letters for its pictures, so that its text should be recognised.

    Raises DecompressionBombError if its pictures are too large to render.
    """
    letters = sum(character.isalnum() for line in lines for character in line.text)
    is_scan = letters < SCAN_LETTERS and _pictured(page, wordless=not letters)
    pixels = 0  # total size of the pictures: large ones take a long time to render
    for picture in page.get_objects(filter=IMAGES, max_depth=DEPTH) if is_scan else ():
        columns, rows = picture.get_px_size()
        pixels += columns * rows
        if pixels > ocr.PIXELS:
            raise Image.DecompressionBombError
    return is_scan


def _pictured(page: pypdfium2.PdfPage, wordless: bool) -> bool:
    """Whether pictures cover much of the page, or a wordless page has a picture or many shapes."""
    width, height = page.get_size()
    covered = 0.0
    shapes = 0
    kinds = [pdfium.FPDF_PAGEOBJ_IMAGE, pdfium.FPDF_PAGEOBJ_PATH]
    for drawn in page.get_objects(filter=kinds if wordless else kinds[:1], max_depth=DEPTH):
        if drawn.type == pdfium.FPDF_PAGEOBJ_PATH:
            shapes += 1
            if shapes >= DRAWN_SHAPES:
                return True
            continue
        if wordless:
            return True
        left, bottom, right, top = drawn.get_bounds()
        covered += max(0, right - left) * max(0, top - bottom)
    return bool(covered >= width * height * SCAN_SHARE)


def recognise_pages(
    document: pypdfium2.PdfDocument,
    pages: list[list[Line]],
    scans: list[int],
    limits: Limits,
    progress: Progress,
) -> None:
    """Replace the lines of scanned pages with recognised text."""
    if reason := ocr.why_not(limits.ocr_languages, WHAT):
        if any(pages):
            return  # the other pages can still be read
        raise Unreadable(reason)
    progress.scans()
    characters = 0
    for done, number in enumerate(scans, 1):
        page = document[number]
        scale = min(ocr.DOTS_PER_INCH / 72, SCAN_SIDE / max(*page.get_size(), 1))
        picture = page.render(scale=scale, grayscale=True).to_pil()
        if text := ocr.recognise(picture, limits.ocr_languages):
            pages[number] = [Line(text, 0, whole=True)]
        page.close()
        characters += len(text)
        Contents(limits).check(characters)
        progress(len(pages) - len(scans) + done, len(pages))
    if not any(pages):
        raise Unreadable(NOTHING_READ)


def is_behind_scan(textpage: pypdfium2.PdfTextPage) -> bool:
    """Whether the first text of the page is invisible, as in a scan with recognised text."""
    if textpage.count_chars() == 0:
        return False
    first = pdfium.FPDFText_GetTextObject(textpage.raw, 0)
    return bool(first) and pdfium.FPDFTextObj_GetTextRenderMode(first) == pdfium.FPDF_TEXTRENDERMODE_INVISIBLE


def with_plain_sizes(lines: list[Line]) -> list[Line]:
    """The lines of a scan, with sizes by which headings can be recognised.

    Text recognition only estimates the size of a line. A line gets the size of a heading if it is much larger
    than the others, or if it is short and centred; all others get the same size.
    """
    placed = [line for line in lines if line.left is not None and line.right is not None]
    if not placed:
        return lines
    usual = median(line.size for line in placed)
    # Ignore marks at the edge of the paper.
    right = sorted(line.right or 0 for line in placed)[-2:][0]
    left = min((line.left or 0 for line in placed if len(line.text) > 3), default=0)
    width = max(right - left, 1)

    def plain(line: Line) -> Line:
        if line.left is None or line.right is None or line.whole:
            return line
        if line.size > LARGE_SCALE * usual:
            return replace(line, size=round(PLAIN_SIZE * line.size / usual, 1))
        indent, rest = (line.left - left) / width, (right - line.right) / width
        is_centred = min(indent, rest) > CENTRED and abs(indent - rest) < CENTRED
        is_short = len(line.text.split()) <= TITLE_WORDS and line.text[-1] not in ".,;:"
        return replace(line, size=CENTRED_SIZE if is_centred and is_short else PLAIN_SIZE)

    return [plain(line) for line in lines]
