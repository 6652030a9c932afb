"""What every reader hands back, and the words in which it refuses."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

ANCHOR_CHARACTERS = 200
HEADING_CHARACTERS = 300
TOO_MUCH_MEMORY = "The file needs more memory to read than is allowed ({megabytes:g} MB)."
TITLE_CHARACTERS = 200
# Control characters but tab and newline, lone surrogates, and marks that turn the writing direction.
UNWANTED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u202a-\u202e\u2066-\u2069\ufeff\u00ad]"
)


class Unreadable(Exception):
    """The file cannot be read; the text is one sentence for its owner."""


@dataclass(frozen=True, slots=True)
class Section:
    """Text that belongs together: (a part of) a page, slide, sheet, or what stands under a heading.

    Paragraphs are separated by a blank line; a row of a table is a line that names its columns.
    """

    anchor: str
    page: int | None
    heading: str
    text: str


class Progress(Protocol):
    """Tells how far reading has come."""

    def __call__(self, done: int, total: int) -> None:
        """So many pages of all are done."""

    def scans(self) -> None:
        """Pictures are read from here on, which may take much longer."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes beyond which a file is refused, and the languages in which pictures of text are read."""

    pages: int
    characters: int
    unpacked_bytes: int
    ocr_languages: str = ""
    nested: int = 2  # how deep files within files are read


class Contents:
    """All that a reader found; `pages` is None for formats without pages or slides."""

    def __init__(self, limits: Limits, title: str = "", pages: int | None = None) -> None:
        self.title = title
        self.pages = pages
        self.sections: list[Section] = []
        self.characters = 0
        self._most = limits.characters

    def add(self, section_anchor: str, page: int | None, heading: str, text: str) -> None:
        """Keep a section, where there is text in it. Raises Unreadable where the file holds too much."""
        if text := clean(text).strip():
            self.check(len(text))
            self.characters += len(text)
            self.sections.append(Section(section_anchor, page, one_line(heading, HEADING_CHARACTERS), text))

    def add_lines(self, section_anchor: str, heading: str, lines: Iterable[str]) -> None:
        """The same for lines that may be many: they are counted while they come."""
        kept, size = [], 0
        for line in lines:
            kept.append(line)
            size += len(line) + 1
            self.check(size)
        self.add(section_anchor, None, heading, "\n".join(kept))

    def check(self, more: int) -> None:
        """Raise Unreadable where that many characters more are too many."""
        if self.characters + more > self._most:
            raise Unreadable(f"The file holds more text than is read ({self._most:,} characters).")


def clean(text: str) -> str:
    """Text that PostgreSQL can store and a person can read: composed, plain newlines, no controls."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", "\n").replace("\u2028", "\n")
    return unicodedata.normalize("NFC", UNWANTED.sub("", text))


def one_line(text: str, limit: int) -> str:
    return " ".join(clean(text).split())[:limit].strip()


def anchor(text: str) -> str:
    """A text as part of a citation, whose own signs ([ ] and ": ") must not occur in it."""
    plain = one_line(text, ANCHOR_CHARACTERS).replace("[", "(").replace("]", ")")
    return re.sub(r":(?=\s|$)", "", plain)
