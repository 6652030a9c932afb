"""What every reader hands back, and the words in which it refuses."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

ROW_CHARACTERS = 450  # a longer row of a table becomes several lines, each naming the row again
ANCHOR_CHARACTERS = 200
HEADING_CHARACTERS = 300
TOO_MUCH_MEMORY = "The file needs more memory to read than is allowed."
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


@dataclass(slots=True)
class Contents:
    """All that a reader found; `pages` is None for formats without pages or slides."""

    sections: list[Section] = field(default_factory=list)
    title: str = ""
    pages: int | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes beyond which a file is refused."""

    pages: int
    characters: int
    unpacked_bytes: int


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


def row_lines(names: Sequence[str], cells: Sequence[str]) -> Iterator[str]:
    """A row as "Column: value; …", in several lines where it is long, each with its first value."""
    pairs = [
        f"{name}: {value}" if name else value
        for name, value in zip([*names, *[""] * len(cells)], cells, strict=False)
        if value
    ]
    line = ""
    for pair in pairs:
        if line and len(line) + len(pair) > ROW_CHARACTERS:
            yield line
            line = f"{pairs[0]}; {pair}" if len(pairs[0]) < ROW_CHARACTERS // 4 else pair
        else:
            line = f"{line}; {pair}" if line else pair
    if line:
        yield line


def table_text(rows: Iterable[Sequence[str]]) -> str:
    """A table as lines: what stands above it in single cells, then rows with the names of columns."""
    names: list[str] | None = None
    lines: list[str] = []
    for raw in rows:
        cells = [one_line(cell, 20_000) for cell in raw]
        filled = [cell for cell in cells if cell]
        if not filled:
            continue
        if names is None and len(filled) > 1:
            names = cells if not any(map(_numeric, filled)) else []
            if names:
                continue
        if len(filled) == 1 and len(cells) > 1:
            lines.append(filled[0])
        else:
            lines.extend(row_lines(names or [], cells))
    if not lines and names:
        lines = [" ".join(name for name in names if name)]
    return "\n".join(lines)


def _numeric(text: str) -> bool:
    return not any(character.isalpha() for character in text)
