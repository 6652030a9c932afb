"""Completes passages that were found.

A passage ends after some 500 characters, even within a section, a table or a list, and at the end of a page,
even within a sentence.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from chatsite.accounts.principal import Principal
from chatsite.db.sql_files import prepared, rows_of_each

from .retrieval import FoundPassage
from .sentence_splitting import INTRODUCES_LIST, Span, spans_of
from .table_rows import continues, has_time, table_around

REACH = 20  # how many passages before and after a passage are searched for the rest of its table or section
MAX_ALONE = 600  # longest passage before completion (MAX_JOINED in indexing/splitting.py)
MAX_LENGTH = 4_000  # longest passage after adding its whole table
MAX_TIMETABLE = 8_000  # the same for a timetable, because the last departure may be in any row
MAX_SECTION = 1_200  # longest passage after adding its whole section
MAX_ITEMS = 800  # maximum number of characters added at each end to complete a list or a sentence
RUNNING_TITLE = 80  # longest text that may interrupt a table between two pages
COMMON_COLUMNS = 2  # columns that rows on two pages must have in common to belong to one table
UNKNOWN = -1  # number of rows if it is not known, for example if a table continues beyond REACH
_COMPLETE = re.compile(r"[.!:…]['\"”’»)\]]*\s*\Z")


@dataclass(frozen=True)
class _Neighbour:
    anchor: str
    content: str

    @property
    def spans(self) -> tuple[Span, ...]:
        return spans_of(self.content)


def complete_passages(principal: Principal, passages: Sequence[FoundPassage]) -> tuple[FoundPassage, ...]:
    """The passages, each joined with the rest of its section, table, list or sentence, if that is short.

    The rest of a longer table is not added; instead, `table_rows` has the table's number of rows, or UNKNOWN.
    """
    completed = [passage.passage_id for passage in passages if _may_be_part(passage)]
    if not completed:
        return tuple(passages)
    wanted = {"user_id": principal.user_id, "passage_ids": completed, "reach": REACH}
    around: dict[int, dict[int, _Neighbour]] = defaultdict(dict)
    for row in rows_of_each([prepared("passages_around")], wanted)[0]:
        around[row["passage_id"]][row["distance"]] = _Neighbour(row["anchor"], row["content"])
    return tuple(
        _whole(passage, around[passage.passage_id]) if around[passage.passage_id] else passage
        for passage in passages
    )


def without_repeated(passages: Sequence[FoundPassage]) -> tuple[FoundPassage, ...]:
    """The passages, without those whose text an earlier (better) passage of the same document contains."""
    kept: list[FoundPassage] = []
    for passage in passages:
        places = (each.content for each in kept if each.document_id == passage.document_id)
        if not any(passage.content in content for content in places):
            kept.append(passage)
    return tuple(kept)


def cut_tables(passages: Sequence[FoundPassage]) -> dict[int, int]:
    """{passage id: rows of the whole table, or UNKNOWN} for passages that have only a part of a table."""
    return {passage.passage_id: passage.table_rows for passage in passages if passage.table_rows}


def _may_be_part(passage: FoundPassage) -> bool:
    """Whether the passage may be only a part of a short section, a table, a list or a sentence."""
    if passage.heading and len(passage.content) < MAX_SECTION:
        return True
    if not _COMPLETE.search(passage.content) or passage.content[:1].islower():
        return True
    spans = spans_of(passage.content)
    ends_in_list = bool(spans) and _is_in_list(spans[-1])
    return ends_in_list or any(span.is_row or span.is_item for span in (*spans[:2], *spans[-2:]))


def _whole(passage: FoundPassage, around: Mapping[int, _Neighbour]) -> FoundPassage:
    before, is_first = _following_table(around, -1)
    after, is_last = _following_table(around, 1)
    section = _section(around) if passage.heading and is_first and is_last else {}
    if section and min(section) <= -len(before) and len(after) <= max(section):
        return replace(passage, content=_joined(section))
    if not (before or after) and is_first and is_last:
        return replace(passage, content=_with_list(around))
    content = "\n".join([*reversed(before), passage.content, *after])
    is_timetable = all(has_time(span.text) for span in around[0].spans if span.is_row)
    if is_first and is_last and len(content) <= (MAX_TIMETABLE if is_timetable else MAX_LENGTH):
        return replace(passage, content=content)
    joined = spans_of(content)
    texts = {span.text for span in around[0].spans if span.is_row}
    tables = {
        table[0].start: len(table)
        for place, span in enumerate(joined)
        if span.is_row and span.text in texts and (table := table_around(joined, place))
    }
    is_known = is_first and is_last and len(tables) == 1
    return replace(passage, table_rows=next(iter(tables.values())) if is_known else UNKNOWN)


def _section(around: Mapping[int, _Neighbour]) -> dict[int, str]:
    """The texts of the section, by distance from the passage; empty if the section is too long."""
    anchor = around[0].anchor
    contents = {place: each.content for place, each in around.items() if each.anchor == anchor}
    is_whole = -REACH not in contents and REACH not in contents
    return contents if is_whole and sum(map(len, contents.values())) <= MAX_SECTION else {}


def _with_list(around: Mapping[int, _Neighbour]) -> str:
    """The passage's content, with the rest of the lists or sentences with which it begins and ends.

    The rest of a list consists of the items in the neighbouring passages, and the sentence that introduces
    them. A rest that is too long is not added.
    """
    here = around[0]
    before = after = ""
    if here.spans and (near := around.get(-1)):
        if here.spans[0].is_item:
            before = _items_at_end(near)
        elif _goes_on(near, here):
            before = near.spans[-1].text
    if here.spans and (near := around.get(1)):
        if _is_in_list(here.spans[-1]):
            after = _items_at_start(near)
        if not after and _goes_on(here, near):
            after = near.spans[0].text
    return "\n".join(filter(None, (before, here.content, after)))


def _goes_on(first: _Neighbour, second: _Neighbour) -> bool:
    """Whether the last sentence of `first` continues in `second`, or is a question answered there."""
    if not (first.spans and second.spans) or first.spans[-1].is_row or _COMPLETE.search(first.content):
        return False
    rest = second.spans[0]
    goes_on = rest.text[:1].islower() or first.spans[-1].text.endswith("?")
    return goes_on and not rest.is_item and rest.end <= MAX_ITEMS


def _is_in_list(span: Span) -> bool:
    """Whether list items may follow this span: it is itself an item, or introduces a list."""
    return span.is_item or span.text.endswith(":") or bool(INTRODUCES_LIST.search(span.text))


def _items_at_start(passage: _Neighbour) -> str:
    """The items at the beginning of a passage; empty if there are none, or if they are too long."""
    items = list(takewhile(lambda span: span.is_item, passage.spans))
    if not items or items[-1].end > MAX_ITEMS:
        return ""
    return passage.content[: items[-1].end].strip("\n")


def _items_at_end(passage: _Neighbour) -> str:
    """The items at the end of a passage and the text that introduces them; empty if they are too long."""
    spans = passage.spans
    items = list(takewhile(lambda span: span.is_item, reversed(spans)))
    others = spans[: len(spans) - len(items)]
    if others and others[-1].text.endswith(":"):
        items.append(others[-1])
    if not items:
        return ""
    start = passage.content.rfind("\n", 0, items[-1].start) + 1
    return passage.content[start:].strip("\n") if len(passage.content) - start <= MAX_ITEMS else ""


def _joined(contents: Mapping[int, str]) -> str:
    """Join contents in order: by a blank line after a complete sentence, otherwise by a line break."""
    whole = ""
    for place in sorted(contents):
        border = "\n\n" if _COMPLETE.search(whole) else "\n"
        whole = f"{whole}{border}{contents[place]}" if whole else contents[place]
    return whole


def _following_table(around: Mapping[int, _Neighbour], direction: int) -> tuple[list[str], bool]:
    """The texts of the neighbours that continue the table in one direction, nearest first.

    Also returns whether the end of the table was found.
    """
    contents: list[str] = []
    for distance in range(REACH):
        here, near = around[direction * distance], around.get(direction * (distance + 1))
        if distance and not all(span.is_row for span in _without_edge(here, direction)):
            return contents, True
        edge, is_clear = _edge(here, direction)
        if near is None or edge is None:
            return contents, True
        near_edge, is_near_clear = _edge(near, -direction)
        if near_edge is None:
            return contents, True
        first, second = (edge, near_edge) if direction > 0 else (near_edge, edge)
        if not continues(first.text, second.text, least=1 if here.anchor == near.anchor else COMMON_COLUMNS):
            return contents, True
        if not (is_clear and is_near_clear):
            # A text between the rows ends the table, except between pages: there it may be a page number or
            # a running title, so the table may continue.
            return contents, here.anchor == near.anchor
        contents.append(near.content)
    return contents, False


def _edge(passage: _Neighbour, direction: int) -> tuple[Span | None, bool]:
    """The row at an edge of the passage, or None; and whether it is the very first or last span.

    A short text, such as a running title, may separate the row from the edge.
    """
    spans = passage.spans[::-direction]
    if spans and spans[0].is_row:
        return spans[0], True
    is_covered = len(spans) > 1 and spans[1].is_row and len(spans[0].text) <= RUNNING_TITLE
    return (spans[1], False) if is_covered else (None, False)


def _without_edge(passage: _Neighbour, direction: int) -> Sequence[Span]:
    """The spans of the passage, without a short text at the edge in this direction."""
    _, is_clear = _edge(passage, direction)
    return passage.spans if is_clear else passage.spans[::direction][:-1]
