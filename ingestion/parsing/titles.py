"""Distinguishes titles that authors wrote from titles that programs filled in."""

import re
from pathlib import PurePath

from .formats import FORMATS
from .sections import TITLE_CHARACTERS, one_line

FILLED_IN = re.compile(
    # names of programs, and their default names for new files
    r"(microsoft (word|powerpoint|excel)|powerpoint|word document|untitled|unbenannt).*"
    r"|(document|dokument|slide|folie|book|mappe|presentation|präsentation)[ _-]?\d+"
    # URLs, such as “about:blank” of a page that was printed without a title
    r"|(about|blob|data|view-source|https?):\S+|file:/.*",
    re.IGNORECASE,
)


def first_title(*candidates: str) -> str:
    """The first candidate that an author seems to have written; empty if there is none."""
    for candidate in candidates:
        title = one_line(candidate, TITLE_CHARACTERS)
        is_file = PurePath(title).suffix.lower() in FORMATS
        if title and not is_file and not FILLED_IN.fullmatch(title):
            return title
    return ""
