"""Turns the content of PDF pages whose text runs upwards or downwards, as in wide tables."""

import ctypes

import pypdfium2
import pypdfium2.raw as pdfium

SAMPLED = 60  # approximate number of objects of a page that are examined
TURNED_SHARE = 0.9  # more than this share of the examined texts must run upwards, or downwards


def level_page(document: pypdfium2.PdfDocument, number: int) -> pypdfium2.PdfPage:
    """Page `number` (from 0) with level text; the page looks the same as before.

    PDFium finds neither lines nor columns in text that runs upwards or downwards. The content of such a page
    is turned, and the page's rotation is changed to compensate for this. Raises PdfiumError.
    """
    page = document[number]
    quarters = _quarters(page)
    if not quarters:
        return page
    box = pdfium.FS_RECTF()
    pdfium.FPDF_GetPageBoundingBox(page.raw, box)
    # Clockwise, (x, y) becomes (y, -x).
    matrix = pdfium.FS_MATRIX(0, -quarters, quarters, 0, 0, 0)
    if not pdfium.FPDFPage_TransFormWithClip(page.raw, matrix, None):
        return page
    pdfium.FPDFPage_TransformAnnots(page.raw, *(getattr(matrix, name) for name in "abcdef"))
    left, right = sorted((box.bottom * quarters, box.top * quarters))
    bottom, top = sorted((-box.left * quarters, -box.right * quarters))
    for set_box in (pdfium.FPDFPage_SetMediaBox, pdfium.FPDFPage_SetCropBox):
        set_box(page.raw, left, bottom, right, top)
    page.set_rotation((page.get_rotation() - 90 * quarters) % 360)
    page.close()
    return document[number]  # PDFium reads the content again


def _quarters(page: pypdfium2.PdfPage) -> int:
    """How many clockwise quarter turns make the text level: 1, -1 or 0."""
    count = pdfium.FPDFPage_CountObjects(page.raw)
    matrix = pdfium.FS_MATRIX()
    directions = []
    for index in range(0, count, max(1, count // SAMPLED)):
        drawn = pdfium.FPDFPage_GetObject(page.raw, index)
        is_text = pdfium.FPDFPageObj_GetType(drawn) == pdfium.FPDF_PAGEOBJ_TEXT
        if is_text and pdfium.FPDFPageObj_GetMatrix(drawn, ctypes.byref(matrix)):
            is_turned = abs(matrix.b) > abs(matrix.a)
            directions.append((1 if matrix.b > 0 else -1) if is_turned else 0)
    for quarters in (1, -1):
        if directions.count(quarters) > TURNED_SHARE * len(directions):
            return quarters
    return 0
