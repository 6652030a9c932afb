"""What was filled into the form fields of a PDF page, and texts that were typed onto it."""

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium

from ingestion.parsing.sections import one_line

from .pdf_page_text import Line

MAX_ANNOTATIONS = 2_000
TEXT_BYTES = 20_000
LABEL_CHARACTERS = 100
BASELINE_TOLERANCE = 2.0  # points by which the baseline of the words before a field may be outside the field
PASSWORD = 1 << 13
BUTTONS = {
    pdfium.FPDF_FORMFIELD_PUSHBUTTON,
    pdfium.FPDF_FORMFIELD_CHECKBOX,
    pdfium.FPDF_FORMFIELD_RADIOBUTTON,
}
INVISIBLE = pdfium.FPDF_ANNOT_FLAG_HIDDEN | pdfium.FPDF_ANNOT_FLAG_NOVIEW


@dataclass(frozen=True, slots=True)
class Field:
    """A text that was filled in or typed, the description of its field (if any), and the field's place."""

    text: str
    label: str
    left: float
    bottom: float
    top: float


def with_fields(page: pypdfium2.PdfPage, lines: list[Line]) -> list[Line]:
    """The lines with texts that were filled into fields or typed onto the page; no passwords.

    A text is placed after the words to the left of its field; without such words, it becomes a line after
    the others. The state of check boxes is not read.
    """
    fields = sorted(_fields(page), key=lambda field: -field.left)
    if not fields:
        return lines
    lines, added = list(lines), []
    textpage = page.get_textpage()
    for field in fields:
        low, high = field.bottom - BASELINE_TOLERANCE, field.top + BASELINE_TOLERANCE
        place = max(
            (place for place, line in enumerate(lines) if _is_left_of(line, field.left, low, high)),
            key=lambda place: lines[place].left or 0,
            default=None,
        )
        if place is None:
            text = f"{field.label}: {field.text}" if field.label else field.text
            added.append((-field.top, field.left, Line(text, 0, whole=True)))
            continue
        whole = lines[place].text
        before = one_line(textpage.get_text_bounded(bottom=low, top=high, right=field.left), TEXT_BYTES)
        # A field that begins inside a word covers the line, or is below it: append its text.
        is_between = whole.startswith(before) and whole[len(before) : len(before) + 1] in ("", " ")
        end = len(before) if is_between else len(whole)
        text = " ".join(filter(None, (whole[:end].strip(), field.text, whole[end:].strip())))
        lines[place] = replace(lines[place], text=text)
    textpage.close()
    return lines + [line for _, _, line in sorted(added, key=lambda each: each[:2])]


def _is_left_of(line: Line, left: float, low: float, high: float) -> bool:
    is_placed = line.left is not None and line.baseline is not None
    return is_placed and (line.left or 0) < left and low <= (line.baseline or 0) <= high


def _fields(page: pypdfium2.PdfPage) -> Iterator[Field]:
    place = pdfium.FS_RECTF()
    for index in range(min(pdfium.FPDFPage_GetAnnotCount(page.raw), MAX_ANNOTATIONS)):
        annotation = pdfium.FPDFPage_GetAnnot(page.raw, index)
        if not annotation:
            continue
        try:
            kind = pdfium.FPDFAnnot_GetSubtype(annotation)
            if kind == pdfium.FPDF_ANNOT_WIDGET:
                # Only buttons have a state (AS).
                text = "" if _text(annotation, b"AS") else _value(page, annotation)
            elif kind == pdfium.FPDF_ANNOT_FREETEXT:
                text = _text(annotation, b"Contents")
            else:
                continue
            is_shown = not pdfium.FPDFAnnot_GetFlags(annotation) & INVISIBLE
            has_place = pdfium.FPDFAnnot_GetRect(annotation, place) and place.right > place.left
            if text and is_shown and has_place:
                label = _text(annotation, b"TU")[:LABEL_CHARACTERS].rstrip(": ")
                yield Field(text, label, place.left, place.bottom, place.top)
        finally:
            pdfium.FPDFPage_CloseAnnot(annotation)


def _value(page: pypdfium2.PdfPage, annotation: object) -> str:
    """The value of a field, which may be that of its parent field; empty for buttons and passwords."""
    form: Any = page.formenv
    if form and pdfium.FPDFAnnot_GetFormFieldType(form, annotation) in BUTTONS:
        return ""
    flags = ctypes.c_float()
    pdfium.FPDFAnnot_GetNumberValue(annotation, b"Ff", flags)
    inherited = pdfium.FPDFAnnot_GetFormFieldFlags(form, annotation) if form else 0
    if (int(flags.value) | inherited) & PASSWORD:
        return ""
    text = _text(annotation, b"V")
    if text or not form:
        return text
    return _read(lambda *buffer: pdfium.FPDFAnnot_GetFormFieldValue(form, annotation, *buffer))


def _text(annotation: object, key: bytes) -> str:
    return _read(lambda *buffer: pdfium.FPDFAnnot_GetStringValue(annotation, key, *buffer))


def _read(get: Callable[..., int]) -> str:
    """The UTF-16 text that the function of PDFium writes into a buffer, in one line."""
    size = min(get(None, 0), TEXT_BYTES)
    if size <= len("\0".encode("utf-16-le")):
        return ""
    buffer = ctypes.create_string_buffer(TEXT_BYTES)
    written = get(ctypes.cast(buffer, ctypes.POINTER(pdfium.FPDF_WCHAR)), TEXT_BYTES)
    data = buffer.raw[: min(written, TEXT_BYTES)]
    return one_line(data.decode("utf-16-le", "replace").rstrip("\0"), TEXT_BYTES)
