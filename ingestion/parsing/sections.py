"""The result of every file reader, and the exception for unreadable files."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from chatsite.normal_form import normal_form
from chatsite.superscripts import with_minutes_and_cents

ANCHOR_CHARACTERS = 200
HEADING_CHARACTERS = 300
HEADING_TEXT = 200  # characters; a longer text that is styled as a heading counts as a paragraph
PARENT_CHARACTERS = 60  # maximum length of each heading above another, if the whole path is too long
TOO_MUCH_MEMORY = "The file needs more memory to read than is allowed ({megabytes:g} MB)."
TITLE_CHARACTERS = 200
SEPARATOR = " › "  # between the headings of a path
# Control characters except tab and newline, lone surrogates, noncharacters, marks that change the writing
# direction, byte order marks, and soft hyphens.
UNWANTED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u202a-\u202e\u2066-\u2069\ufeff\u00ad]"
)


# Characters of the fonts Symbol and Wingdings, which Word stores as private-use characters, mostly for
# bullets.
PRIVATE = re.compile("[\uf020-\uf0ff]")
SYMBOLS = str.maketrans({
    "\uf020": " ", "\uf02d": "–", "\uf06e": "■", "\uf06f": "☐", "\uf071": "❑", "\uf076": "❖", "\uf0a3": "≤",
    "\uf0a7": "▪", "\uf0a8": "☐", "\uf0ae": "→", "\uf0b0": "°", "\uf0b1": "±", "\uf0b3": "≥", "\uf0b7": "•",
    "\uf0d8": "➢", "\uf0e0": "→", "\uf0e8": "➔", "\uf0fb": "✗", "\uf0fc": "✓", "\uf0fd": "☒", "\uf0fe": "☑",
})  # fmt: skip
LINE_END = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")


class Unreadable(Exception):
    """The file cannot be read; the text is the reason, for its owner."""


@dataclass(frozen=True, slots=True)
class Section:
    """Text that belongs together: of a page, slide or sheet, or below a heading.

    Paragraphs are separated by a blank line; a row of a table is a line that names its columns.
    """

    anchor: str
    page: int | None
    heading: str
    text: str


class Progress(Protocol):
    """Receives the progress of reading."""

    def __call__(self, done: int, total: int) -> None:
        """Report the number of finished pages out of all."""

    def scans(self) -> None:
        """Report that the reader now recognises text in images, which may take much longer."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes beyond which a file is refused, and options of reading."""

    pages: int
    characters: int
    unpacked_bytes: int
    ocr_languages: str = ""
    # Whether files within the file are extracted; false at the deepest allowed level.
    with_parts: bool = False


class Parts(Protocol):
    """Receives the files in an archive or a message."""

    @property
    def left_out(self) -> list[str]:
        """Names of the files that were not added, with reasons."""

    def add(self, name: str, chunks: Iterable[bytes]) -> None:
        """Add a file; if it cannot be read, leave it out with the reason."""

    def leave_out(self, name: str, reason: str) -> None:
        """Record why a file was not added."""


class Contents:
    """The result of a reader; `pages` is None for formats without pages or slides."""

    def __init__(self, limits: Limits, title: str = "", pages: int | None = None) -> None:
        self.title = title
        self.pages = pages
        self.sections: list[Section] = []
        self.characters = 0
        self._most = limits.characters

    def add(self, section_anchor: str, page: int | None, heading: str, text: str) -> None:
        """Add a section if it has text. Raises Unreadable if the file has too much text."""
        if text := clean(text).strip():
            self.check(len(text))
            self.characters += len(text)
            self.sections.append(Section(section_anchor, page, one_line(heading, HEADING_CHARACTERS), text))

    def check(self, more: int) -> None:
        """Raise Unreadable if this many additional characters would exceed the limit."""
        if self.characters + more > self._most:
            raise Unreadable(f"The file holds more text than is read ({self._most:,} characters).")


def clean(text: str) -> str:
    """Clean a text: NFC, plain newlines, SYMBOLS replaced, and UNWANTED characters removed.

    Raised minutes and cents become part of their times and prices.
    """
    if not text.isascii() and PRIVATE.search(text):
        text = text.translate(SYMBOLS)
    text = with_minutes_and_cents(UNWANTED.sub("", LINE_END.sub("\n", text)))
    return normal_form("NFC", text)


def one_line(text: str, limit: int) -> str:
    return " ".join(clean(text).split())[:limit].strip()


def space_for(text: str) -> str:
    """What remains of a text that is left out, such as struck text: a space if it begins or ends with one."""
    return " " if text != text.strip() else ""


def too_long_path(headings: Iterable[str]) -> str:
    """The whole path, to be added to the text, if `heading_path` shortens it; otherwise empty."""
    path = SEPARATOR.join(headings)
    return path if len(path) > HEADING_CHARACTERS else ""


def heading_path(headings: Sequence[str]) -> str:
    """The headings above a text, from the outermost to its own, in one line of up to HEADING_CHARACTERS.

    If the line is longer, headings above the last are shortened to PARENT_CHARACTERS, and the outermost that
    still do not fit are left out.
    """
    path = [one_line(heading, HEADING_CHARACTERS) for heading in headings]
    if not too_long_path(path):
        return SEPARATOR.join(path)
    kept = path[-1:]
    left = HEADING_CHARACTERS - len(path[-1])
    for heading in reversed(path[:-1]):
        is_long = len(heading) > PARENT_CHARACTERS
        short = f"{heading[: PARENT_CHARACTERS - 1].rstrip()}…" if is_long else heading
        left -= len(SEPARATOR) + len(short)
        if left < 0:
            break
        kept.append(short)
    return SEPARATOR.join(reversed(kept))


def anchor(text: str) -> str:
    """A text as part of a citation, without the characters of the citation syntax ([ ] and ": ")."""
    plain = one_line(text, ANCHOR_CHARACTERS).replace("[", "(").replace("]", ")")
    return re.sub(r":(?=\s|$)", "", plain)
