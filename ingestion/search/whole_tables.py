"""Completes the tables of found passages, which end after some 500 characters even within a table."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from chatsite.accounts.principal import Principal
from chatsite.db.sql_files import rows

from .extracts import continues, table_around
from .retrieval import FoundPassage
from .sentence_splitting import Span, split_sentences

REACH = 20  # passages before and after, among which the rest of a table is looked for
MAX_ALONE = (
    600  # characters of a passage that is not joined with others (MAX_JOINED in indexing/splitting.py)
)
MAX_LENGTH = 2_500  # characters of a passage with the whole of its table
RUNNING_TITLE = 80  # characters of text that may be between the rows of a table that two pages have
COMMON_COLUMNS = 2  # of the rows of a table on two pages
UNKNOWN = -1  # rows of a table that ends beyond that reach


@dataclass(frozen=True)
class _Neighbour:
    anchor: str
    content: str

    @cached_property
    def spans(self) -> list[Span]:
        return split_sentences(self.content)


def with_whole_tables(principal: Principal, passages: Sequence[FoundPassage]) -> tuple[FoundPassage, ...]:
    """The passages, each joined with its neighbours that have other rows of the same table.

    Of a longer table the passage stays alone, with the number of the table's rows.
    """
    spans = {passage.passage_id: split_sentences(passage.content) for passage in passages}
    at_edge = [key for key, found in spans.items() if any(span.is_row for span in (*found[:2], *found[-2:]))]
    if not at_edge:
        return tuple(passages)
    wanted = {"user_id": principal.user_id, "passage_ids": at_edge, "reach": REACH}
    around: dict[int, dict[int, _Neighbour]] = defaultdict(dict)
    for row in rows("passages_around", wanted):
        around[row["passage_id"]][row["distance"]] = _Neighbour(row["anchor"], row["content"])
    return tuple(
        _whole(passage, around[passage.passage_id]) if around[passage.passage_id] else passage
        for passage in passages
    )


def without_repeated(passages: Sequence[FoundPassage]) -> tuple[FoundPassage, ...]:
    """The passages without those that are part of a better one's table."""
    kept: list[FoundPassage] = []
    for passage in passages:
        places = (each.content for each in kept if each.document_id == passage.document_id)
        if not any(passage.content in content for content in places):
            kept.append(passage)
    return tuple(kept)


def cut_tables(passages: Sequence[FoundPassage]) -> dict[int, int]:
    """By passage id, the number of rows of a table of which the passage has only a part, or UNKNOWN."""
    return {passage.passage_id: passage.table_rows for passage in passages if passage.table_rows}


def _whole(passage: FoundPassage, around: Mapping[int, _Neighbour]) -> FoundPassage:
    before, is_first = _following_table(around, -1)
    after, is_last = _following_table(around, 1)
    if not (before or after) and is_first and is_last:
        return passage
    content = "\n".join([*reversed(before), passage.content, *after])
    if is_first and is_last and len(content) <= MAX_LENGTH:
        return replace(passage, content=content)
    joined = split_sentences(content)
    texts = {span.text for span in around[0].spans if span.is_row}
    tables = {
        table[0].start: len(table)
        for place, span in enumerate(joined)
        if span.is_row and span.text in texts and (table := table_around(joined, place))
    }
    is_known = is_first and is_last and len(tables) == 1
    return replace(passage, table_rows=next(iter(tables.values())) if is_known else UNKNOWN)


def _following_table(around: Mapping[int, _Neighbour], direction: int) -> tuple[list[str], bool]:
    """The neighbours in one direction that continue the table at that edge, and whether they are all."""
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
            # A number of a page or a running title is within the table.
            return contents, here.anchor == near.anchor
        contents.append(near.content)
    return contents, False


def _edge(passage: _Neighbour, direction: int) -> tuple[Span | None, bool]:
    """The row at an edge of the passage, and whether nothing but rows is there."""
    spans = passage.spans[::-direction]
    if spans and spans[0].is_row:
        return spans[0], True
    is_covered = len(spans) > 1 and spans[1].is_row and len(spans[0].text) <= RUNNING_TITLE
    return (spans[1], False) if is_covered else (None, False)


def _without_edge(passage: _Neighbour, direction: int) -> Sequence[Span]:
    """The spans but a short text at that edge."""
    _, is_clear = _edge(passage, direction)
    return passage.spans if is_clear else passage.spans[::direction][:-1]
