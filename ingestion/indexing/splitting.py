"""Splits sections into passages: a few sentences each, small enough to be found and quoted."""

from collections.abc import Iterator, Sequence

from semantic_text_splitter import TextSplitter

from ingestion.parsing.sections import Section

from .passages import NewPassage

# Passages of about 500 characters were found better than longer ones (see docs/decisions/); above the lower
# number, a passage ends at the next paragraph or row.
MIN_LENGTH, MAX_LENGTH = 300, 500
SHORT_PIECE = 120  # a shorter piece is joined with its neighbour if both stay below MAX_JOINED
MAX_JOINED = 600
SPLITTER = TextSplitter((MIN_LENGTH, MAX_LENGTH))
# The splitter's time grows with the square of a text without paragraphs (a megabyte took 40 s), so it gets
# less.
BLOCK = 4_000
BOUNDARIES = ("\n\n", "\n", ". ", " ")


def passages_of(sections: Sequence[Section]) -> Iterator[NewPassage]:
    """Passages in reading order, of at most 600 characters, none across sections."""
    for section in sections:
        start = end = 0
        for offset, chunk in _chunks(section.text):
            new_end = offset + len(chunk)
            is_short = min(len(chunk), end - start) < SHORT_PIECE
            if end and not (is_short and new_end - start <= MAX_JOINED):
                yield NewPassage(section.anchor, section.page, section.heading, section.text[start:end])
                start = offset
            elif not end:
                start = offset
            end = new_end
        if end:
            yield NewPassage(section.anchor, section.page, section.heading, section.text[start:end])


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
