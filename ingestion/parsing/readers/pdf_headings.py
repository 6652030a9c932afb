"""Headings of a PDF: lines that bookmarks name, or whose size, weight, font or position sets them apart."""

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from chatsite.superscripts import without_note_marks
from ingestion.parsing.sections import HEADING_TEXT

from .lone_titles import has_title_form, is_title
from .pdf_page_text import BULLETS, Line

HEADING_SCALE = 1.12  # a heading is larger than the document's text by this factor
# Like HEADING_SCALE, for a long line above text that begins in lower case, and for any line of a table of
# contents.
CERTAIN_SCALE = 1.3
# A size is not that of headings if at least this share of the text, and this many lines, have it.
TEXT_SHARE = 0.2
TEXT_LINES = 10
BOLD_HEADING_SCALE = 1.02  # like HEADING_SCALE, for a bold line
BOLD_HEADING_LINES = 2  # bold lines of normal size are a heading if at most this many are adjacent
# A bold line of at least this many characters may begin a sentence whose rest is below it, at this many em.
BOLD_SENTENCE, NEXT_LINE = 20, 1.5
BOLD_SHARE = 0.3  # if more of a document is bold, bold does not mark headings
FONT_SHARE = 0.1  # a font with at most this share of the document's text may mark headings
MONOSPACED = re.compile(r"mono|courier|consol|typewriter|cmtt|code")
LONE_GAP = 3.5  # maximum distance of a line in another font from the text below it, in em
LONE_INDENT = 3  # how much further to the right the text below it may begin, in em
SPACE_ABOVE = 1.2  # minimum distance of such a line from the text above, relative to that from the text below
HEADING_LINE = 120
BOXES = "☐◻□❏❑❒☑✓✔"  # marks of choices in forms, which never begin a heading
LEADERS = (".....", ". . . . .", "……")  # these lead from an entry of a table of contents to its page
ITEM_INDENT = 3.0  # points by which the lines of a list item are indented, relative to its marker
SHORT_LINE = 40  # characters; a shorter line is assumed not to continue in the next
MAX_MARKS = 100  # bookmarks on a page
MARKED_LINES = 3  # lines over which the title of a bookmark may extend
NUMBERED = re.compile(r"^(?:chapter|section|part|appendix|annex)?[\d.ivx]+(?=[^\d.ivx])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Bookmark:
    """A bookmark; `height` is that of its destination on the page, in points, if known."""

    level: int
    title: str
    height: float | None = None


Bookmarks = Mapping[int, Sequence[Bookmark]]  # by page number (from 1)


@dataclass(frozen=True, slots=True)
class TextStyle:
    """How a document sets its text, from which headings differ.

    `body` is the median size of its text, and `large` the minimum size of a heading that is not bold.
    `some_bold` is true if so little text is bold that bold marks headings. `rare_fonts` may mark headings,
    too.
    """

    body: float
    large: float
    some_bold: bool
    rare_fonts: frozenset[str]


def text_style(lines: Sequence[Line]) -> TextStyle:
    """The style of a document with these lines, which must not include rows of tables."""
    sizes = [line.size for line in lines for _ in range(0, len(line.text), 20)]
    body = median(sizes) if sizes else 0
    bold = sum(len(line.text) for line in lines if line.bold)
    some_bold = bold <= BOLD_SHARE * sum(len(line.text) for line in lines)
    large = HEADING_SCALE * _largest_common(lines, body)
    return TextStyle(body, large, some_bold, _rare_fonts(lines))


def with_bookmarks(lines: list[Line], bookmarks: Sequence[Bookmark]) -> list[Line]:
    """The lines; those that a bookmark names are joined into one line with the bookmark's level.

    Bookmarks that name no line become lines below the line above their destination, or at the beginning if
    its height is unknown.
    """
    bookmarks = [bookmark for bookmark in bookmarks if not _is_text(bookmark.title)]
    if not bookmarks:
        return lines
    keys = ["" if line.whole else _key(line.text) for line in lines]
    rows = [_key(line.text) if line.whole else "" for line in lines]
    unseen: dict[int, list[Line]] = {}
    # By the first line of a bookmark's title: how many lines it has, and its level.
    marked: dict[int, tuple[int, int]] = {}
    for bookmark in bookmarks[:MAX_MARKS]:
        wanted = _key(bookmark.title)
        for start, first in enumerate(keys):
            key, count = first, 1
            while key and key != wanted and wanted.startswith(key) and count < MARKED_LINES:
                key += keys[start + count] if start + count < len(keys) and keys[start + count] else "?"
                count += 1
            if key and key == wanted and start not in marked:
                marked[start] = count, bookmark.level
                break
        else:
            # A heading may have been taken for a row of a table.
            row = next((row for row, key in enumerate(rows) if key and key == wanted), None)
            if row is not None and row not in marked:
                marked[row] = 1, bookmark.level
            else:
                line = Line(bookmark.title, 0, level=bookmark.level)
                unseen.setdefault(_place_at(lines, bookmark.height), []).append(line)
    found: list[Line] = []
    place = 0
    while place < len(lines):
        found += unseen.pop(place, ())
        count, at = marked.get(place, (1, None))
        text = " ".join(line.text for line in lines[place : place + count])
        found.append(lines[place] if at is None else replace(lines[place], text=text, level=at))
        for inside in range(place + 1, place + count):
            found += unseen.pop(inside, ())
        place += count
    return found + unseen.get(len(lines), [])


def _place_at(lines: Sequence[Line], height: float | None) -> int:
    """The index after the line closest above a height; 0 if there is none. Rows of tables have no height."""
    above = [
        (line.baseline, -place)
        for place, line in enumerate(lines)
        if height is not None and line.baseline is not None and line.baseline >= height
    ]
    return 1 - min(above, default=(0, 1))[1]


def _key(text: str) -> str:
    """The letters and digits of a heading, without its number and marks of notes: bookmarks omit these."""
    key = NUMBERED.sub("", "".join(without_note_marks(text).split()))
    return "".join(filter(str.isalnum, key)).casefold()


def heading_runs(lines: list[Line], style: TextStyle, full: float) -> Iterator[tuple[bool, list[Line]]]:
    """(is heading, lines) of each run of adjacent lines: text, or headings of one size.

    A bookmarked heading is a separate run. A line of at least `full` characters does not end its paragraph.
    """
    run: list[Line] = []
    run_heading = False
    for line, heading in zip(lines, _headings(lines, style, full), strict=True):
        marked = line.level is not None or (run and run[-1].level is not None)
        if run and (heading != run_heading or (heading and (marked or line.size != run[-1].size))):
            yield run_heading, run
            run = []
        run.append(line)
        run_heading = heading
    if run:
        yield run_heading, run


def _headings(lines: list[Line], style: TextStyle, full: float) -> list[bool]:
    """Whether each line is a heading: bookmarked, large, bold, or separate and in another font.

    Rotated lines, such as a diagonal watermark, are only headings if they have a bookmark.
    """
    found = []
    body = style.body
    for line in lines:
        is_large = line.size >= (body * BOLD_HEADING_SCALE if line.bold else style.large) and body > 0
        fits = len(line.text) <= HEADING_LINE and not line.whole and line.baseline is not None
        found.append(line.level is not None or (is_large and fits))
    for index, (line, following) in enumerate(itertools.pairwise(lines)):
        if found[index] and line.level is None and not found[index + 1]:
            has_letters = any(map(str.isalpha, line.text))
            is_long = len(line.text) > SHORT_LINE and line.size < CERTAIN_SCALE * body
            goes_on = is_long and following.text[0].islower() and not following.whole
            found[index] = not goes_on and (has_letters or (index > 0 and found[index - 1]))
    start = 0
    for bold, group in itertools.groupby(lines, key=lambda line: line.bold and not line.whole):
        end = start + len(list(group))
        before, after = lines[start - 1] if start else None, lines[end] if end < len(lines) else None
        ended = before is None or before.whole or len(before.text) < full or before.text[-1] in ".!?:"
        is_short = end - start <= BOLD_HEADING_LINES
        goes_on = after is not None and _goes_on(lines[end - 1], after)
        if bold and style.some_bold and ended and after and not (after.whole or goes_on) and is_short:
            for index in range(start, end):
                is_level = lines[index].baseline is not None
                is_large = body <= lines[index].size * BOLD_HEADING_SCALE
                found[index] = found[index] or (is_level and is_large and is_title(lines[index].text))
        start = end
    for index, line in enumerate(lines[:-1]):
        if line.font in style.rare_fonts and not found[index] and not line.whole and not line.bold:
            above = lines[index - 1] if index else None
            fits = body <= line.size * BOLD_HEADING_SCALE
            found[index] = fits and _is_lone(above, line, lines[index + 1])
    return _without_text(lines, found)


def _goes_on(line: Line, after: Line) -> bool:
    """Whether a bold line ends inside a sentence, of which the rest is on the next line in plain type."""
    if line.baseline is None or after.baseline is None or line.size != after.size:
        return False
    is_next = 0 < line.baseline - after.baseline < NEXT_LINE * line.size
    return (
        is_next and len(line.text) >= BOLD_SENTENCE and after.text[:2].isalpha() and after.text[0].islower()
    )


def _without_text(lines: Sequence[Line], found: Sequence[bool]) -> list[bool]:
    """The flags `found`, but false for list items, and for paragraphs in large or bold type.

    Lines that end in a number are not headings if adjacent ones have leaders, unless they are much larger: in
    a table of contents, bold entries of chapters often have no leaders.
    """
    kept = list(found)
    start = 0
    for is_numbered, adjacent in itertools.groupby(
        lines, key=lambda each: each.level is None and each.text[-1].isdigit()
    ):
        entries = list(adjacent)
        sizes = [each.size for each in entries if any(leaders in each.text for leaders in LEADERS)]
        if is_numbered and sizes:
            for index, entry in enumerate(entries, start):
                kept[index] = kept[index] and entry.size > CERTAIN_SCALE * max(sizes)
        start += len(entries)
    item: Line | None = None
    for index, line in enumerate(lines):
        if line.level is not None or line.whole:
            item = None
        elif _is_item(line, lines[index + 1 : index + 2]):
            item = line
            kept[index] = False
        elif item and _continues(line, item):
            kept[index] = False
        else:
            item = None
    start = 0
    for (is_heading, _, level), group in itertools.groupby(
        zip(kept, lines, strict=True), key=lambda pair: (pair[0], pair[1].size, pair[1].level)
    ):
        texts = [line.text for _, line in group]
        if is_heading and level is None and sum(map(len, texts)) > HEADING_TEXT:
            kept[start : start + len(texts)] = [False] * len(texts)
        start += len(texts)
    return kept


def _is_text(title: str) -> bool:
    """Whether the title of a bookmark is a paragraph or a list item, which an author styled as a heading."""
    is_marked = title[0] in BULLETS and not has_title_form(title[1:])
    return len(title) > HEADING_TEXT or is_marked or title[0] in BOXES


def _is_item(line: Line, following: Sequence[Line]) -> bool:
    """Whether a line is a list item.

    A line with a bullet may be a heading instead if it has the form of a title, and the next line (in
    `following`, if any) has another size or weight.
    """
    if line.text[0] in BOXES:
        return True
    if line.text[0] not in BULLETS:
        return False
    goes_on = any((line.size, line.bold) == (other.size, other.bold) for other in following)
    return goes_on or not has_title_form(line.text[1:])


def _continues(line: Line, item: Line) -> bool:
    """Whether a line belongs to the list item: same size and weight, and to the right of the marker."""
    is_right = line.left is not None and item.left is not None and line.left > item.left + ITEM_INDENT
    return is_right and (line.size, line.bold) == (item.size, item.bold)


def _is_lone(before: Line | None, line: Line, after: Line) -> bool:
    """Whether a line has the form of a title, more space above than below, and text in another font below."""
    if after.whole or after.font == line.font or after.text[0].islower() or not has_title_form(line.text):
        return False
    if line.baseline is None or after.baseline is None or line.left is None or after.left is None:
        return False
    below = line.baseline - after.baseline
    above = before.baseline - line.baseline if before and before.baseline is not None else math.inf
    is_above = 0 < below < LONE_GAP * line.size and after.left < line.left + LONE_INDENT * line.size
    return is_above and not 0 < above < below * SPACE_ABOVE


def _largest_common(lines: Sequence[Line], body: float) -> float:
    """The largest common size: most of the text may be code and tables in a smaller size."""
    characters: Counter[float] = Counter()
    count: Counter[float] = Counter()
    for line in lines:
        characters[line.size] += len(line.text)
        count[line.size] += 1
    least = TEXT_SHARE * characters.total()
    common = (size for size, many in characters.items() if many >= least and count[size] >= TEXT_LINES)
    return max(body, *common, 0)


def _rare_fonts(lines: Sequence[Line]) -> frozenset[str]:
    """The fonts that may mark headings, because little of the document is set in them."""
    often: Counter[str] = Counter()
    for line in lines:
        often[line.font] += len(line.text)
    most = FONT_SHARE * often.total()
    return frozenset(
        font for font, count in often.items() if font and count <= most and not MONOSPACED.search(font)
    )
