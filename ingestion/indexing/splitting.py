"""Splits sections into passages of a few sentences, small enough to be found and quoted."""

from collections.abc import Iterator, Sequence

from semantic_text_splitter import TextSplitter

from ingestion.parsing.sections import Section
from ingestion.search.sentence_splitting import full_stops_within

from .passages import NewPassage

# In measurements, search found passages of about 500 characters better than longer ones. A passage that has
# reached MIN_LENGTH ends with the current paragraph or row.
MIN_LENGTH, MAX_LENGTH = 300, 500
MAX_LEAD_IN = 250  # longest final paragraph ending in a colon that is moved to the next passage
SHORT_PIECE = 120  # a shorter piece is joined with its neighbour if the result is at most MAX_JOINED
MAX_JOINED = 600
SPLITTER = TextSplitter((MIN_LENGTH, MAX_LENGTH))
# Characters that the splitter gets at once: for a text without paragraphs, its time grows with the square of
# the length (40 s for a megabyte).
BLOCK = 4_000
BOUNDARIES = ("\n\n", "\n", ". ", " ")


def passages_of(sections: Sequence[Section]) -> Iterator[NewPassage]:
    """Passages in reading order, of at most 600 characters, none across sections."""
    for section in sections:
        for content in _pieces(section.text):
            yield NewPassage(section.anchor, section.page, section.heading, content)


def _pieces(text: str) -> Iterator[str]:
    start = end = 0
    for offset, chunk in _chunks(text):
        new_end = offset + len(chunk)
        is_short = min(len(chunk), end - start) < SHORT_PIECE
        if end and not (is_short and new_end - start <= MAX_JOINED):
            # If the last paragraph only introduces the following text, move it to the next piece.
            last = text[start:end].rpartition("\n\n")[2]
            is_lead_in = len(last) < end - start and len(last) <= MAX_LEAD_IN and last.endswith(":")
            if is_lead_in and new_end - end + len(last) <= MAX_JOINED:
                yield text[start : end - len(last)].rstrip()
                start = end - len(last)
            else:
                yield text[start:end]
                start = offset
        elif not end:
            start = offset
        end = new_end
    if end:
        yield text[start:end]


def _chunks(text: str) -> Iterator[tuple[int, str]]:
    """The splitter's chunks with their offsets.

    The splitter gets blocks, each of which ends at the first of BOUNDARIES that its second half has.
    """
    text = _without_full_stops_within(text)
    start = 0
    while start < len(text):
        end = start + BLOCK
        if end < len(text):
            ends = (text.rfind(mark, start + BLOCK // 2, end) + len(mark) for mark in BOUNDARIES)
            end = next((place for place in ends if place > start + BLOCK // 2), end)
        for offset, chunk in SPLITTER.chunk_indices(text[start:end]):
            yield start + offset, chunk
        start = end


def _without_full_stops_within(text: str) -> str:
    """The text, at the same length, with commas for the full stops that do not end sentences.

    The splitter would end a passage at them. Only its offsets are used.
    """
    parts, start = [], 0
    for place in full_stops_within(text):
        parts += [text[start:place], ","]
        start = place + 1
    return "".join([*parts, text[start:]])
