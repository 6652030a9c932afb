"""Completes the tables of found passages, which end after some 500 characters even within a table."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from chatsite.accounts.principal import Principal
from chatsite.db.sql_files import rows

from .extracts import continues, table_around
from .retrieval import FoundPassage
from .sentence_splitting import Span, split_sentences

REACH = 20  # passages before and after, among which the rest of a table is looked for
MAX_LENGTH = 2_500  # characters of a passage with the whole of its table
UNKNOWN = -1  # rows of a table that ends beyond that reach


def with_whole_tables(principal: Principal, passages: Sequence[FoundPassage]) -> tuple[FoundPassage, ...]:
    """The passages, each joined with its neighbours that have other rows of the same table.

    Of a longer table the passage stays alone, with the number of the table's rows.
    """
    spans = {passage.passage_id: split_sentences(passage.content) for passage in passages}
    at_edge = [key for key, found in spans.items() if found and (found[0].is_row or found[-1].is_row)]
    if not at_edge:
        return tuple(passages)
    wanted = {"user_id": principal.user_id, "passage_ids": at_edge, "reach": REACH}
    around: dict[int, dict[int, str]] = defaultdict(dict)
    for row in rows("passages_around", wanted):
        around[row["passage_id"]][row["distance"]] = row["content"]
    return tuple(
        _whole(passage, spans[passage.passage_id], around[passage.passage_id])
        if around[passage.passage_id]
        else passage
        for passage in passages
    )


def without_repeated(passages: Sequence[FoundPassage]) -> tuple[FoundPassage, ...]:
    """The passages without those that are part of a better one's table."""
    kept: list[FoundPassage] = []
    for passage in passages:
        places = (each.content for each in kept if each.label == passage.label)
        if not any(passage.content in content for content in places):
            kept.append(passage)
    return tuple(kept)


def cut_tables(passages: Sequence[FoundPassage]) -> dict[int, int]:
    """By passage id, the number of rows of a table of which the passage has only a part, or UNKNOWN."""
    return {passage.passage_id: passage.table_rows for passage in passages if passage.table_rows}


def _whole(passage: FoundPassage, own: Sequence[Span], around: Mapping[int, str]) -> FoundPassage:
    before, is_first = _following_table(own, around, -1) if own[0].is_row else ([], True)
    after, is_last = _following_table(own, around, 1) if own[-1].is_row else ([], True)
    if not (before or after):
        return passage
    content = "\n".join([*reversed(before), passage.content, *after])
    if is_first and is_last and len(content) <= MAX_LENGTH:
        return replace(passage, content=content)
    joined = split_sentences(content)
    texts = {span.text for span in own if span.is_row}
    tables = {
        table[0].start: len(table)
        for place, span in enumerate(joined)
        if span.is_row and span.text in texts and (table := table_around(joined, place))
    }
    is_known = is_first and is_last and len(tables) == 1
    return replace(passage, table_rows=next(iter(tables.values())) if is_known else UNKNOWN)


def _following_table(
    own: Sequence[Span], around: Mapping[int, str], direction: int
) -> tuple[list[str], bool]:
    """The neighbours in one direction that continue the table at that edge, and whether they are all."""
    contents: list[str] = []
    edge = own[-1] if direction > 0 else own[0]
    for distance in range(1, REACH + 1):
        content = around.get(direction * distance)
        spans = split_sentences(content) if content else []
        if not content or not spans:
            return contents, True
        near, far = (spans[0], spans[-1]) if direction > 0 else (spans[-1], spans[0])
        pair = (edge, near) if direction > 0 else (near, edge)
        if not (near.is_row and continues(pair[0].text, pair[1].text)):
            return contents, True
        contents.append(content)
        if not all(span.is_row for span in spans):
            return contents, True
        edge = far
    return contents, False
