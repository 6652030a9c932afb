"""The readers of the families of formats, imported on demand."""

from importlib import import_module
from pathlib import Path
from typing import Any

from ingestion.parsing.formats import FORMATS, check
from ingestion.parsing.sections import Contents, Limits, Parts, Progress

# Modules and functions by family of formats. The modules are imported on demand, because importing their
# libraries takes longer than reading most files.
READERS = {
    "pdf": ("pdf", "read"),
    "image": ("ocr", "read"),
    "word": ("office.word", "read"),
    "sheets": ("office.sheets", "read"),
    "slides": ("office.slides", "read"),
    "odt": ("office.odf", "read_text"),
    "ods": ("office.odf", "read_sheets"),
    "odp": ("office.odf", "read_slides"),
    "rtf": ("office.rtf", "read"),
    "epub": ("epub", "read"),
    "old": ("office.legacy", "read"),
    "mail": ("mail", "read"),
    "outlook": ("outlook", "read"),
    "calendar": ("icalendar", "read"),
    "archive": ("archive", "read"),
    "web": ("web", "read"),
    "markup": ("markup", "read"),
    "csv": ("plain", "read_csv"),
    "json": ("records", "read"),
    "text": ("plain", "read_text"),
}
# Families whose readers take a callback for their progress.
REPORTING = frozenset(["pdf", "image", "archive"])
WITH_PARTS = frozenset(["mail", "outlook", "archive"])  # families of files that contain files
BY_ENDING = frozenset(["old"])  # families whose reader takes the file extension


def read_file(path: Path, ending: str, limits: Limits, progress: Progress, parts: Parts) -> Contents:
    """Check the file and read it with the reader for the extension `ending`. Raises Unreadable."""
    kind = FORMATS[ending]
    check(path, kind, limits)
    module, function = READERS[kind.family]
    more: list[Any] = [progress] if kind.family in REPORTING else [ending] if kind.family in BY_ENDING else []
    more += [parts] if kind.family in WITH_PARTS else []
    contents: Contents = getattr(load(module), function)(path, limits, *more)
    return contents


def load(name: str) -> Any:
    """Import a module of this package by its name, such as `office.word`. Raises ImportError."""
    return import_module(f"{__package__}.{name}")
