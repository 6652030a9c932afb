"""Extracts a sentence with its paragraph, list or table as a quotation.

A lead-in is quoted with its list, an item with its lead-in, a paragraph with the table below it, a row with
its column names, and a sentence that refers back with the one before it.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from ingestion.search.sentence_splitting import INTRODUCES_LIST, Span, continues, spans_of
from ingestion.search.table_rows import cells_of, table_around

MAX_CHARACTERS = 420  # characters of a paragraph that is quoted in full, or of the extract from a longer one
MAX_LIST = 900  # characters of a list that is quoted in full
MIN_LEAD = 40  # a table whose lead-in has this many characters is understood without a heading
MAX_ROWS = 12
MAX_UNASKED_ROWS = 6  # of a table with more rows, only the rows asked for are quoted if these are few
FEW_ROWS = 3  # maximum number of rows asked for that counts as few
MAX_GROUPS = 1 / 3  # maximum share of the rows that can name groups of other rows
MAX_TABLE = 1_600  # characters of a table that is quoted in full
MAX_PASSAGE = 700  # characters of a passage that is quoted in full
MAX_FIRST_PASSAGE = 1_200  # the same for the first of several passages, which may be a whole short section
MAX_ITEM = 80  # characters of a list item that may end without a full stop

_POINTS_BACK = re.compile(
    r"(?:this|these|that|those|it|its|they|their|he|she|his|her|such|both|here|there"
    r"|however|otherwise|but|and|or|also|instead|then|thus|therefore|hence|moreover|furthermore|conversely"
    r"|in (?:this|these|that|such|other|addition)|for (?:this|these|example|instance)|if so|e\.g|i\.e"
    r"|dies\w{0,2}|sie|er|es|dabei|dann|daher|jedoch|dort|hierbei|hierfür|ferner)\b",
    re.IGNORECASE,
)
_ADDS = re.compile(r"\b(?:also|additionally|in addition|außerdem|zusätzlich|ebenfalls)\b", re.IGNORECASE)
_RUNNING_TITLE = re.compile(r"\d{1,4} (?:chapter|section|part|kapitel)\b", re.IGNORECASE)
NUMBERED = re.compile(r"\d{1,2}[.)]\s")
_COMPLETE = re.compile(r".*[.!?:;…。！？]['\"”’»)\]*_]{0,4}\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Extract:
    """A quotation: the text at start:end of a passage's content.

    `kind` is text (one paragraph, in `lead`), list (`lead` and `lines`), table (`columns`, rows in `lines`
    and as `cells`, and perhaps a `lead`) or passage (paragraphs and items as Markdown in `lines`).
    `needs_heading` says that the text cannot be understood without its heading. For a table, `rows` is the
    number of its rows in the content, and `matching` has those rows among `lines` that were asked for.
    """

    start: int
    end: int
    kind: str
    lead: str = ""
    lines: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    cells: tuple[tuple[str, ...], ...] = ()
    needs_heading: bool = False
    matching: tuple[str, ...] = ()
    rows: int = 0


def extract(
    content: str, start: int, wanted: Sequence[int] = (), *, has_part_of_table: bool = False
) -> Extract | None:
    """The extract around the sentence that begins at `start`; None if it cannot be quoted.

    `wanted` has the starts of other good sentences, best first; rows of the same table among these are also
    quoted. A short table is quoted in full, unless the content has only a part of it, or it has more than
    MAX_UNASKED_ROWS rows of which only a few were asked for.
    """
    spans = spans_of(content)
    at = next((number for number, span in enumerate(spans) if span.start == start), None)
    if at is None or spans[at].is_heading:
        return None
    if spans[at].is_row:
        return _table(spans, at, wanted, has_part_of_table)
    if spans[at].is_item:
        return _with_what_comes_before(content, _list(content, spans, at))
    if spans[at].text.endswith(":"):
        following = spans[at + 1] if at + 1 < len(spans) else None
        if following is None or not (following.is_item or following.is_row):
            return (
                None
                if following is None
                else _introduced(content, spans, at) or _paragraph(content, spans, at, has_part_of_table)
            )
        if following.is_row:
            return _table(spans, at + 1, [span.start for span in spans], has_part_of_table)
        return _with_what_comes_before(content, _list(content, spans, at + 1))
    return _paragraph(content, spans, at, has_part_of_table)


def _with_what_comes_before(content: str, listed: Extract) -> Extract:
    """The list, with the text around it if its lead-in continues that text: “You also need:”."""
    return with_surroundings(content, listed) if _ADDS.search(listed.lead) else listed


def as_item(text: str) -> str:
    """A list item as Markdown; a numbered item already contains its number."""
    return text if NUMBERED.match(text) else f"- {text}"


def with_surroundings(content: str, quoted: Extract, most: int = MAX_PASSAGE) -> Extract:
    """The whole passage if it has at most `most` characters, otherwise the extract with adjacent sentences.

    An extract with table rows is not changed; others are extended up to the next table.
    """
    spans = spans_of(content)
    start = next(number for number, span in enumerate(spans) if span.start == quoted.start)
    end = next(number for number, span in enumerate(spans) if span.end == quoted.end)
    if quoted.kind == "table" or any(span.is_row for span in spans[start : end + 1]):
        return quoted
    first, last = start, end

    def fits(first: int, last: int) -> bool:
        if first < 0 or last == len(spans) or spans[first].is_row or spans[last].is_row:
            return False
        return spans[last].end - spans[first].start <= most

    while fits(first - 1, last) and spans[first - 1].block == spans[first].block:
        first -= 1
    while fits(first, last + 1):
        last += 1
    while fits(first - 1, last):
        first -= 1
    # Drop headings and lead-ins at the end, because the text that they introduce does not fit.
    while last > end and (spans[last].is_heading or spans[last].text.endswith(":")):
        last -= 1
    while first < start and spans[first].is_heading:
        first += 1
    blocks: dict[int, list[Span]] = {}
    for span in spans[first : last + 1]:
        blocks.setdefault(span.block, []).append(span)
    lines = []
    for block in blocks.values():
        text = " ".join(span.text for span in block)
        lines.append(f"**{text}**" if block[0].is_heading else as_item(text) if block[0].is_item else text)
    if lines[0][:1].islower():
        lines[0] = f"… {lines[0]}"
    if last == len(spans) - 1 and not spans[last].is_item and not _COMPLETE.match(lines[-1]):
        lines[-1] += " …"
    return Extract(spans[first].start, spans[last].end, "passage", lines=tuple(lines), needs_heading=True)


def without_rows(quoted: Extract, shown: Collection[str]) -> Extract | None:
    """The table without rows that were already shown; None if no row is left."""
    kept = [place for place, line in enumerate(quoted.lines) if line not in shown]
    if quoted.kind != "table" or len(kept) == len(quoted.lines):
        return quoted
    if not kept:
        return None
    return replace(
        quoted,
        lines=tuple(quoted.lines[place] for place in kept),
        cells=tuple(quoted.cells[place] for place in kept),
        rows=quoted.rows - len(quoted.lines) + len(kept),
    )


def _paragraph(content: str, spans: Sequence[Span], at: int, has_part_of_table: bool) -> Extract:
    """The paragraph (or what fits of it) with the list it introduces or a short table below."""
    block = spans[at].block
    first = last = at
    while first > 0 and spans[first - 1].block == block:
        first -= 1
    while last + 1 < len(spans) and spans[last + 1].block == block:
        last += 1
    if spans[last].end - spans[first].start > MAX_CHARACTERS:
        first, last = _neighbours(spans, at, first, last)
    if (listed := _introduced_list(content, spans, at, first, last)) is not None:
        return listed
    if spans[last].text.endswith(":") and last > at:
        last -= 1  # a lead-in without its list
    # A sentence that is cut off at the passage's edge is left out, or marked with “…” if it must be quoted.
    if first < at and continues(spans, first):
        first += 1
    if last > at and last == len(spans) - 1 and not _COMPLETE.match(spans[last].text):
        last -= 1
    if first < at and _RUNNING_TITLE.match(spans[first].text):
        first += 1
    text = " ".join(span.text for span in spans[first : last + 1])
    if continues(spans, first):
        text = f"… {text}"
    rows = () if has_part_of_table else _rows_below(spans, last)
    if rows:
        columns, cells = _columns_and_cells(rows)
        return Extract(
            spans[first].start,
            rows[-1].end,
            "table",
            text,
            tuple(row.text for row in rows),
            columns,
            cells,
            needs_heading=bool(_POINTS_BACK.match(spans[first].text)),
            matching=tuple(row.text for row in rows),
            rows=len(rows),
        )
    if last == len(spans) - 1 and not _COMPLETE.match(text):
        text = f"{text} …"
    return Extract(
        spans[first].start,
        spans[last].end,
        "text",
        text,
        needs_heading=bool(_POINTS_BACK.match(spans[first].text)),
    )


def _introduced_list(content: str, spans: Sequence[Span], at: int, first: int, last: int) -> Extract | None:
    """The paragraph with the list that its end introduces; None if there is no list."""
    following = spans[last + 1] if last + 1 < len(spans) else None
    if spans[last].text.endswith(":"):
        if last > at:
            return _list_below(content, spans, first, last)
        return _list(content, spans, last + 1) if following and following.is_item else None
    said = " ".join(span.text for span in spans[at : last + 1])
    goes_on = following and following.is_item and INTRODUCES_LIST.search(said)
    return _list_below(content, spans, first, last) if goes_on else None


def _list_below(content: str, spans: Sequence[Span], first: int, last: int) -> Extract | None:
    """The paragraph with the list that it introduces; None if there is no list.

    Of a list that is too long, only the first item is quoted.
    """
    below = last + 1
    if below + 1 < len(spans) and spans[below].is_heading:  # the title of the list
        below += 1
    if below >= len(spans) or not spans[below].is_item:
        return None
    listed = _list(content, spans, below, first)
    return listed if listed.lead else None


def _introduced(content: str, spans: Sequence[Span], at: int) -> Extract | None:
    """A lead-in with the block below it, such as a formula; None if both together are too long."""
    block = [span for span in spans[at + 1 :] if span.block == spans[at + 1].block]
    if block[-1].end - spans[at].start > MAX_CHARACTERS:
        return None
    first = at - 1 if at and spans[at - 1].block == spans[at].block and not spans[at - 1].is_heading else at
    return Extract(
        spans[first].start,
        block[-1].end,
        "text",
        " ".join(span.text for span in (*spans[first : at + 1], *block)),
        needs_heading=bool(_POINTS_BACK.match(spans[first].text)),
    )


def _rows_below(spans: Sequence[Span], last: int) -> Sequence[Span]:
    """The rows of the table that follows directly; empty if it is too long to be quoted in full."""
    rows = table_around(spans, last + 1) if last + 1 < len(spans) and spans[last + 1].is_row else ()
    return rows if rows and _is_short(rows) else ()


def _neighbours(spans: Sequence[Span], at: int, first: int, last: int) -> tuple[int, int]:
    """The first and last index of the sentences to quote from a long paragraph.

    If everything up to the sentence fits, the quotation begins at the start of the paragraph, because a rule
    comes before its exceptions. Otherwise it begins with the sentence, or with the one before if the sentence
    refers back. After that, the following sentences are added as long as they fit, then the preceding ones.
    """
    if spans[at].end - spans[first].start <= MAX_CHARACTERS:
        start = first
    else:
        start = at - 1 if at > first and _POINTS_BACK.match(spans[at].text) else at
    end = at
    while end < last and spans[end + 1].end - spans[start].start <= MAX_CHARACTERS:
        end += 1
    while start > first and spans[end].end - spans[start - 1].start <= MAX_CHARACTERS:
        start -= 1
    return start, end


def _item_around(spans: Sequence[Span], at: int) -> tuple[int, int]:
    """The first and last index of the item's sentences, or of those that fit if the item is long."""
    first = last = at
    while first > 0 and spans[first - 1].block == spans[at].block:
        first -= 1
    while last + 1 < len(spans) and spans[last + 1].block == spans[at].block:
        last += 1
    if spans[last].end - spans[first].start > MAX_CHARACTERS:
        return _neighbours(spans, at, first, last)
    return first, last


def _list(content: str, spans: Sequence[Span], at: int, lead_from: int | None = None) -> Extract:
    """The list with its lead-in; if the list is long, only one item with the lead-in.

    `lead_from` is the index of the first sentence of a paragraph that introduces the whole list.
    """
    first = last = at
    while first > 0 and spans[first - 1].is_item:
        first -= 1
    while last + 1 < len(spans) and spans[last + 1].is_item:
        last += 1
    before = spans[first - 1] if first else None
    introduced = lead_from is not None
    if lead_from is None:
        lead_from = first
    if not introduced and before and not before.is_heading and not before.is_row:
        lead_from = first - 1
        # A lead-in such as “These include:” needs the sentence before it.
        if lead_from and spans[lead_from - 1].block == before.block and _POINTS_BACK.match(before.text):
            lead_from -= 1
    if spans[last].end - spans[lead_from].start > MAX_LIST:
        first, last = _item_around(spans, at)
    lines: dict[int, str] = {}
    for span in spans[first : last + 1]:
        lines[span.block] = f"{lines[span.block]} {span.text}" if span.block in lines else span.text
    if spans[last].text.endswith(":"):  # the last item introduces a command or a formula
        below = [span for span in spans[last + 1 :] if span.block == spans[last + 1].block]
        if below and not below[0].is_row and below[-1].end - below[0].start <= MAX_CHARACTERS // 2:
            lines[spans[last].block] += f" {' '.join(span.text for span in below)}"
            last += len(below)
            lines[spans[last].block] = lines.pop(spans[last - len(below)].block)
    lead = " ".join(
        span.text
        for span in spans[lead_from:first]
        if not span.is_item and not (introduced and span.is_heading)
    )
    block = spans[last].block
    if last == len(spans) - 1 and len(lines[block]) > MAX_ITEM and not _COMPLETE.match(lines[block]):
        lines[block] += " …"
    return Extract(
        spans[lead_from].start,
        spans[last].end,
        "list",
        lead,
        tuple(lines.values()),
        needs_heading=not lead or bool(_POINTS_BACK.match(lead)),
    )


def _table(spans: Sequence[Span], at: int, wanted: Sequence[int], is_part: bool) -> Extract:
    """The table of the row `spans[at]`: in full, or only the rows asked for (see `extract`)."""
    rows = table_around(spans, at)
    by_start = {span.start: span for span in rows}
    best = [spans[at].start, *(start for start in wanted if start in by_start)]
    matching = [by_start[start] for start in sorted(list(dict.fromkeys(best))[:MAX_ROWS])]
    is_asked_for_few = len(rows) > MAX_UNASKED_ROWS and len(matching) <= FEW_ROWS
    is_whole = not (is_part or is_asked_for_few) and _is_short(rows)
    own = rows if is_whole else _with_groups(rows, matching)
    columns, cells = _columns_and_cells(own)
    first = spans.index(rows[0])
    before = spans[first - 1] if first else None
    lead = before.text if before and before.text.endswith(":") else ""
    return Extract(
        own[0].start,
        own[-1].end,
        "table",
        lead,
        tuple(span.text for span in own),
        columns,
        cells,
        needs_heading=len(lead) < MIN_LEAD,
        matching=tuple(span.text for span in matching),
        rows=len(rows),
    )


def _with_groups(rows: Sequence[Span], chosen: Sequence[Span]) -> Sequence[Span]:
    """The selected rows, each below the row that names its group.

    A row that names a group has only one cell that is not empty. If many rows have only one, they do not
    name groups. A row may also continue a numbered row: “Double grave: 357 €” has no number, and the row
    “7.9 Borders of graves” above it has no price. Then the numbered row is included.
    """
    names = [row for row in rows if len(cells_of(row.text)) == 1]
    if len(names) > MAX_GROUPS * len(rows):
        names = []
    groups = [next((name for name in reversed(names) if name.start < row.start), row) for row in chosen]
    groups += [_numbered_above(rows, row) for row in chosen]
    return sorted({*groups, *chosen}, key=lambda row: row.start)


def _numbered_above(rows: Sequence[Span], row: Span) -> Span:
    """For a row without the table's first column, the nearest row above that has it.

    Returns `row` itself if it has the first column, or if the row found also has the last column of `row`.
    """
    number = next(iter(cells_of(rows[0].text)), "")
    columns = list(cells_of(row.text))
    if not columns or number in columns:
        return row
    above = next((each for each in reversed(rows[: rows.index(row)]) if number in cells_of(each.text)), row)
    return row if columns[-1] in cells_of(above.text) else above


def _is_short(rows: Sequence[Span]) -> bool:
    return len(rows) <= MAX_ROWS and rows[-1].end - rows[0].start <= MAX_TABLE


def _columns_and_cells(spans: Sequence[Span]) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    rows = [cells_of(span.text) for span in spans]
    columns = tuple(dict.fromkeys(name for row in rows for name in row))
    return columns, tuple(tuple(row.get(name, "") for name in columns) for row in rows)
