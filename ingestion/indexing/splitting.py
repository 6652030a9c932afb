"""Splits sections into passages: a few sentences each, small enough to be found and quoted."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from semantic_text_splitter import TextSplitter

from ingestion.parsing.sections import Section
from ingestion.search.sentence_splitting import is_table_row

from .passages import NewPassage

# Passages of about 500 characters were found better than longer ones (see docs/decisions/); above the lower
# number, a passage ends at the next paragraph or row.
MIN_LENGTH, MAX_LENGTH = 300, 500
SHORT_PIECE = 120  # a shorter piece is joined with its neighbour if both stay below MAX_JOINED
MAX_JOINED = 600
MAX_WHOLE_TABLE = 700  # characters of a table whose rows stay together, with MAX_WITH_TABLE around it
MAX_WITH_TABLE = 1_000
SPLITTER = TextSplitter((MIN_LENGTH, MAX_LENGTH))
# The splitter's time grows with the square of a text without paragraphs (a megabyte took 40 s), so it gets
# less.
BLOCK = 4_000
BOUNDARIES = ("\n\n", "\n", ". ", " ")


def passages_of(sections: Sequence[Section]) -> Iterator[NewPassage]:
    """Passages in reading order, of at most 600 characters (1,000 around a short table), none across
    sections."""
    for section in sections:
        for start, end in _with_whole_tables(section.text, _pieces(section.text)):
            yield NewPassage(section.anchor, section.page, section.heading, section.text[start:end])


def _with_whole_tables(text: str, pieces: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The pieces, joined where one would end between the rows of a short table: its other rows would be
    missing from what is quoted and shown."""
    tables = [(start, end) for start, end in _tables(text) if end - start <= MAX_WHOLE_TABLE]
    ends = [end for _, end in tables]
    waiting = next(pieces, None)
    for start, end in pieces:
        assert waiting is not None
        table = bisect_right(ends, start)  # the first that ends behind the cut
        is_cut = table < len(tables) and tables[table][0] < start
        if is_cut and end - waiting[0] <= MAX_WITH_TABLE:
            waiting = waiting[0], end
        else:
            yield waiting
            waiting = start, end
    if waiting is not None:
        yield waiting


def _tables(text: str) -> Iterator[tuple[int, int]]:
    """The span of each run of two or more table rows."""
    begin, rows, place = 0, 0, 0
    for line in [*text.splitlines(keepends=True), ""]:
        if len(line) <= MAX_WHOLE_TABLE and is_table_row(line):
            begin, rows = (begin, rows + 1) if rows else (place, 1)
        else:
            if rows > 1:
                yield begin, place
            rows = 0
        place += len(line)


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    start = end = 0
    for offset, chunk in _chunks(text):
        new_end = offset + len(chunk)
        is_short = min(len(chunk), end - start) < SHORT_PIECE
        if end and not (is_short and new_end - start <= MAX_JOINED):
            yield start, end
            start = offset
        elif not end:
            start = offset
        end = new_end
    if end:
        yield start, end


def _chunks(text: str) -> Iterator[tuple[int, str]]:
    """The splitter's chunks with their offsets, from blocks that end at the best boundary."""
    start = 0
    while start < len(text):
        end = start + BLOCK
        if end < len(text):
            ends = (text.rfind(mark, start + BLOCK // 2, end) + len(mark) for mark in BOUNDARIES)
            end = next((place for place in ends if place > start + BLOCK // 2), end)
        for offset, chunk in SPLITTER.chunk_indices(text[start:end]):
            yield start + offset, chunk
        start = end
