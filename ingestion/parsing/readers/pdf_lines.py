"""The lines of a PDF page; rows of tables are lines that name their columns."""

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pypdfium2

from .pdf_order import Place, places_of, reading_order
from .pdf_page_text import (
    BULLETS,
    Line,
    breaks_words,
    drawn_rules,
    lines_with_starts,
    text_units,
    wide_gaps,
    words_with_boxes,
)
from .pdf_running_titles import EDGE_LINES
from .pdf_scans import SCAN_HEIGHT, is_behind_scan, with_plain_sizes
from .pdf_tables import ROWS, Table, tables
from .pdf_tags import has_tags, tagged_tables, words_in_cells
from .pdf_words import Word

MAX_WORDS = 5_000  # pages with more words are not searched for tables
MIN_RULES = 3  # a page with fewer drawn lines has no table with lines between rows
MARKER = re.compile(rf"(?:[{BULLETS}]|\(?\d{{1,2}}[.)]|[a-z][.)])\Z")  # the marker of a list item
MARKER_DISTANCE = 5  # greatest distance of a marker from its text, in em


@dataclass(frozen=True, slots=True)
class PageLines:
    """The lines of a page in the order in which they are read.

    A table is at the position of its first line. `last` is the table at the end of the page, if any.
    `completed` is the table at the end of the previous page, if its last row continues on this page.
    `completed` then contains the complete row, which is not among these lines. `places` has the places of
    all lines.
    """

    lines: list[Line]
    last: Table | None = None
    completed: Table | None = None
    places: frozenset[Place] = frozenset()


def lines_of(
    page: pypdfium2.PdfPage, above: Table | None = None, repeated: frozenset[Place] = frozenset()
) -> PageLines:
    """The lines of a page.

    `above` and `repeated` are `last` and `places` of the previous page.
    """
    textpage = page.get_textpage()
    try:
        text = text_units(textpage)
        is_scan = is_behind_scan(textpage)
        lines = list(lines_with_starts(textpage, text, with_right=is_scan))
        found, outside = _tables(page, textpage, text, lines, above)
    finally:
        textpage.close()

    table_of = {number: table for table in found for number in table.lines}
    read: dict[int, Table] = {}  # by the id() of a table: the table, perhaps as the continuation of `above`
    last: Table | None = None
    completed: Table | None = None
    with_tables: list[Line] = []
    written = [line for _, line in lines]
    is_upright = not is_scan and not page.get_rotation()
    for number in reading_order(written, table_of, repeated) if is_upright else range(len(written)):
        line, table = written[number], table_of.get(number)
        beside = outside.get(number)
        if beside:
            with_tables.append(replace(line, text=beside))
        elif table is None:
            with_tables.append(line)
        if table is not None and id(table) not in read:
            is_first = not read and (table.numbers or len(with_tables) <= EDGE_LINES)
            if above and len(with_tables) > EDGE_LINES:
                above = replace(above, ends_page=False)  # text precedes this table
            last = above.continued_by(table) if above and is_first else table
            if above and is_first and (parts := above.completed_by(last)):
                completed, last = parts
            read[id(table)] = last
            with_tables += [Line(row, line.size, whole=True) for _, row in last.numbered_lines()]
    with_tables = _with_markers(with_tables, SCAN_HEIGHT if is_scan else 0)
    if is_scan:
        with_tables = with_plain_sizes(with_tables)
    ends_with_it = (
        last and last.cells and (last.numbers or any(line.whole for line in with_tables[-EDGE_LINES - 1 :]))
    )
    if last and any(line.whole for line in with_tables[-EDGE_LINES - 1 :]):
        last = replace(last, ends_page=True)
    return PageLines(with_tables, last if ends_with_it else None, completed, places_of(written))


def replace_last_row(lines: list[Line], table: Table, completed: Table) -> None:
    """Replace the last row of the table at the end of a page with the completed row."""
    row = len(table.cells) - 1
    old = [text for number, text in table.numbered_lines() if number == row]
    new = [text for number, text in completed.numbered_lines() if number == row]
    end = next((place for place in range(len(lines), 0, -1) if lines[place - 1].whole), 0)
    start = end - len(old)
    if start < 0 or [line.text for line in lines[start:end]] != old:
        start = end = len(lines)
    lines[start:end] = [Line(text, 0, whole=True) for text in new]


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a table row as in :func:`lines_of`, and the words of the row's non-empty cells."""

    text: str
    cells: list[list[Word]]


def rows_of(page: pypdfium2.PdfPage) -> Iterator[Row]:
    """The rows of the page's tables: one for each line that a row was split into."""
    textpage = page.get_textpage()
    try:
        text = text_units(textpage)
        found, _ = _tables(page, textpage, text, list(lines_with_starts(textpage, text)))
    finally:
        textpage.close()
    for table in found:
        of_row: dict[int, list[str]] = {}
        for number, line in table.numbered_lines():
            of_row.setdefault(number, []).append(line)
        for number, (texts, cells) in enumerate(zip(table.rows, table.cells, strict=True)):
            # A header row has no lines here, but `lines_of` may have read it as a row of a continued table.
            for line in of_row.get(number, ["; ".join(filter(None, texts))]):
                yield Row(line, list(filter(None, cells)))


def _tables(
    page: pypdfium2.PdfPage,
    textpage: pypdfium2.PdfTextPage,
    text: str,
    lines: list[tuple[int, Line]],
    above: Table | None = None,
) -> tuple[list[Table], dict[int, str]]:
    """The tables of the page, and the other text on their lines, by line number."""
    rules, borders = drawn_rules(page)
    has_rules, tags = len(rules) >= MIN_RULES, has_tags(page)
    gaps = (
        0 if has_rules and not tags else sum(itertools.islice(filter(None, wide_gaps(textpage, lines)), ROWS))
    )
    goes_on = above is not None and bool(above.numbers)
    tagged = tagged_tables(page) if tags and (gaps or goes_on) else []
    if not tagged and not has_rules and gaps < ROWS:
        return [], {}
    words = list(
        itertools.islice(words_with_boxes(textpage, text, lines, breaks_words(page.pdf)), MAX_WORDS + 1)
    )
    if len(words) > MAX_WORDS:
        return [], {}
    if not tagged:
        return tables(words, rules, borders), {}
    found, others = words_in_cells(page, textpage, words, tagged, above)
    taken = {number for table in found for number in table.lines}
    beside: dict[int, list[str]] = {}
    for word in others:
        if word.line in taken:
            beside.setdefault(word.line, []).append(word.text)
    found += tables([word for word in others if word.line not in taken], rules, borders)
    return found, {number: " ".join(texts) for number, texts in beside.items()}


def _with_markers(lines: list[Line], tolerance: float = 0) -> list[Line]:
    """The lines, with each list marker that is a line of its own joined to its item.

    Some programs draw the markers of a page after its text. The heights of marker and item may differ by
    1 point, or by `tolerance` em if that is more.
    """
    markers = {place for place, line in enumerate(lines) if not line.whole and MARKER.match(line.text)}
    if not markers:
        return lines
    at_height: dict[int, list[tuple[float, int]]] = {}  # left edges and indexes of lines
    for place, line in enumerate(lines):
        if line.left is not None and line.baseline is not None and not line.whole:
            at_height.setdefault(round(line.baseline), []).append((line.left, place))
    marked: dict[int, Line] = {}
    joined = set()
    for place in sorted(markers):
        left, baseline = lines[place].left, lines[place].baseline
        if left is None or baseline is None:
            continue
        most = max(1, round(tolerance * lines[place].size))
        near = range(round(baseline) - most, round(baseline) + most + 1)
        beside = [each for height in near for each in at_height.get(height, ()) if each[0] > left]
        start, item = min(beside, default=(0.0, place))
        if item not in marked and item not in markers and start - left < MARKER_DISTANCE * lines[item].size:
            marked[item] = replace(lines[item], text=f"{lines[place].text} {lines[item].text}", left=left)
            joined.add(place)
    return [marked.get(place, line) for place, line in enumerate(lines) if place not in joined]
