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
# A page with fewer letters, such as a stamp or the name of the program that scanned it, is a scan if pictures
# cover COVERED of it.
STAMP_LETTERS, COVERED = 200, 0.8
DRAWN_SHAPES = 20  # a page without words is worth recognising if it has this many drawn shapes
IMAGES, TEXTS = [pdfium.FPDF_PAGEOBJ_IMAGE], [pdfium.FPDF_PAGEOBJ_TEXT]
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

    Raises DecompressionBombError if its pictures are too large to render, and it has hardly any letters.
    """
    letters = _letters(lines)
    if letters < SCAN_LETTERS:
        is_scan = _pictured(page, wordless=not letters)
    else:
        # A page that is wider than high may be a slide on a picture, whose words are the letters.
        may_be_scan = letters < STAMP_LETTERS and page.get_width() <= page.get_height()
        is_scan = may_be_scan and _covered(page) >= COVERED and not _has_invisible_text(page)
    pixels = 0  # total size of the pictures: large ones take a long time to render
    for picture in page.get_objects(filter=IMAGES, max_depth=DEPTH) if is_scan else ():
        columns, rows = picture.get_px_size()
        pixels += columns * rows
        if pixels > ocr.PIXELS:
            if letters >= SCAN_LETTERS:
                return False
            raise Image.DecompressionBombError
    return is_scan


def _letters(lines: Sequence[Line]) -> int:
    return sum(character.isalnum() for line in lines for character in line.text)


def _pictured(page: pypdfium2.PdfPage, wordless: bool) -> bool:
    """Whether pictures cover much of the page, or a wordless page has a picture or many shapes."""
    if not wordless:
        return _covered(page) >= SCAN_SHARE
    drawings = page.get_objects(filter=[*IMAGES, pdfium.FPDF_PAGEOBJ_PATH], max_depth=DEPTH)
    for shapes, drawn in enumerate(drawings, 1):
        if drawn.type == pdfium.FPDF_PAGEOBJ_IMAGE or shapes >= DRAWN_SHAPES:
            return True
    return False


def _covered(page: pypdfium2.PdfPage) -> float:
    """The share of the page that its pictures cover."""
    width, height = page.get_size()
    covered = 0.0
    for picture in page.get_objects(filter=IMAGES, max_depth=DEPTH):
        left, bottom, right, top = picture.get_bounds()
        covered += max(0, right - left) * max(0, top - bottom)
    return float(covered / max(width * height, 1))


def _has_invisible_text(page: pypdfium2.PdfPage) -> bool:
    """Whether some text of the page is invisible, as in a scan with recognised text."""
    return any(
        pdfium.FPDFTextObj_GetTextRenderMode(text.raw) == pdfium.FPDF_TEXTRENDERMODE_INVISIBLE
        for text in page.get_objects(filter=TEXTS, max_depth=DEPTH)
    )


def recognise_pages(
    document: pypdfium2.PdfDocument,
    pages: list[list[Line]],
    scans: list[int],
    limits: Limits,
    progress: Progress,
) -> None:
    """Replace the lines of scanned pages with recognised text.

    Lines of a stamp, or of text over the picture of a page, are kept: only the rest is recognised.
    """
    if reason := ocr.why_not(limits.ocr_languages, WHAT):
        if any(pages):
            return  # the other pages can still be read
        raise Unreadable(reason)
    progress.scans()
    characters = 0
    for done, number in enumerate(scans, 1):
        page = document[number]
        scale = min(ocr.DOTS_PER_INCH / 72, SCAN_SIDE / max(*page.get_size(), 1))
        kept = pages[number] if _letters(pages[number]) >= SCAN_LETTERS else []
        for text_object in page.get_objects(filter=TEXTS, max_depth=DEPTH) if kept else ():
            pdfium.FPDFTextObj_SetTextRenderMode(text_object.raw, pdfium.FPDF_TEXTRENDERMODE_INVISIBLE)
        picture = page.render(scale=scale, grayscale=True, may_draw_forms=not kept).to_pil()
        if text := ocr.recognise(picture, limits.ocr_languages):
            middle = page.get_height() / 2
            above = [line for line in kept if line.baseline is not None and line.baseline > middle]
            below = [line for line in kept if line not in above]
            pages[number] = [*above, Line(text, 0, whole=True), *below]
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
