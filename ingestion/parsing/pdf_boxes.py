"""The position of each character of a PDF page on its image."""

import ctypes
from pathlib import Path
from typing import Any

import pypdfium2.raw as pdfium

from .pdf import open_pdf
from .sections import Unreadable

UNITS = 10_000  # of the page's longer side
MOST_CHARACTERS = 50_000


def characters(path: Path, number: int) -> dict[str, Any]:
    """`{"width", "height", "text", "boxes"}` of page `number` (from 1) as rendered: rotated and cropped.

    `boxes` has left, top, right and bottom of each character: as wide as its advance, from the top of its ink
    to the descender line. Raises Unreadable.
    """
    document = open_pdf(path)
    if not 1 <= number <= len(document):
        raise Unreadable("The file has no such page.")
    page = document[number - 1]
    scale = UNITS / max(*page.get_size(), 1)
    width, height = (round(side * scale) for side in page.get_size())
    textpage = page.get_textpage()
    place, x, y = pdfium.FS_RECTF(), ctypes.c_int(), ctypes.c_int()
    ink = tuple(ctypes.c_double() for _ in range(4))  # left, right, bottom, top
    text: list[str] = []
    boxes: list[list[int]] = []
    for index in range(min(pdfium.FPDFText_CountChars(textpage.raw), MOST_CHARACTERS)):
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
    return {"width": width, "height": height, "text": "".join(text), "boxes": boxes}
