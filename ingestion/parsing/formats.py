"""The formats that can be read, by the ending of the name."""

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

Family = Literal["pdf", "word", "slides", "sheets", "web", "markup", "csv", "json", "text", "image"]
OFFICE = "application/vnd.openxmlformats-officedocument"


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file: `name` is what people call it."""

    family: Family
    name: str
    media_type: str


PDF = Format("pdf", "PDF", "application/pdf")
WORD = Format("word", "Word", f"{OFFICE}.wordprocessingml.document")
SLIDES = Format("slides", "PowerPoint", f"{OFFICE}.presentationml.presentation")
SHEETS = Format("sheets", "Excel", f"{OFFICE}.spreadsheetml.sheet")
WEB = Format("web", "HTML", "text/html")
MARKUP = Format("markup", "Markdown", "text/markdown")
CSV = Format("csv", "CSV", "text/csv")
TABS = Format("csv", "TSV", "text/tab-separated-values")
JSON = Format("json", "JSON", "application/json")
RECORDS = Format("json", "JSON", "application/x-ndjson")
TEXT = Format("text", "plain text", "text/plain")
PNG = Format("image", "image", "image/png")
JPEG = Format("image", "image", "image/jpeg")
TIFF = Format("image", "image", "image/tiff")

FORMATS = {
    ".pdf": PDF,
    ".docx": WORD,
    ".pptx": SLIDES,
    ".xlsx": SHEETS,
    ".html": WEB,
    ".htm": WEB,
    ".md": MARKUP,
    ".markdown": MARKUP,
    ".csv": CSV,
    ".tsv": TABS,
    ".json": JSON,
    ".jsonl": RECORDS,
    ".ndjson": RECORDS,
    ".txt": TEXT,
    ".png": PNG,
    ".jpg": JPEG,
    ".jpeg": JPEG,
    ".tif": TIFF,
    ".tiff": TIFF,
}
PAGED = frozenset({PDF.media_type})  # formats whose pages can be shown as images


def format_of(name: str) -> Format | None:
    """The format that a file's name promises, or None where it is not one that can be read."""
    return FORMATS.get(PurePosixPath(name).suffix.lower())


def ending_of(name: str) -> str:
    return PurePosixPath(name).suffix.lower()
