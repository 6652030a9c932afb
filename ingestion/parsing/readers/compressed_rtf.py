"""Converts the rich text in Outlook messages and winmail.dat (MS-OXRTFCP) to plain text."""

from ingestion.parsing.sections import SEPARATOR, Limits, Unreadable

from .office.rtf import contents_of

HEADER_BYTES = 16
COMPRESSED, UNCOMPRESSED = b"LZFu", b"MELA"
MAX_BYTES = 5_000_000  # of the uncompressed text; the rest is left out
WINDOW = 4_096
# What the window contains at first: frequent words of rich text.
BEGINNING = (
    rb"{\rtf1\ansi\mac\deff0\deftab720{\fonttbl;}{\f0\fnil \froman \fswiss \fmodern \fscript \fdecor "
    rb"MS Sans SerifSymbolArialTimes New RomanCourier{\colortbl\red0\green0\blue0"
    b"\r\n"
    rb"\par \pard\plain\f0\fs20\b\i\u\tab\tx"
)


def compressed_text(data: bytes) -> str:
    """The text, with a blank line between paragraphs; empty if `data` is not in this format."""
    try:
        sections = contents_of(_uncompressed(data), Limits(0, MAX_BYTES, 0)).sections
    except Unreadable:
        return ""
    texts: list[str] = []
    for section in sections:  # if a heading has no text, the text of its section repeats it
        title = section.heading.rpartition(SEPARATOR)[2]
        texts += [text for text in dict.fromkeys((title, section.text)) if text not in ("", *texts[-2:])]
    return "\n\n".join(texts)


def _uncompressed(data: bytes) -> bytes:
    """The rich text, as far as it is intact."""
    kind, content = data[8:12], data[HEADER_BYTES:]
    if kind == UNCOMPRESSED:
        return content[: min(int.from_bytes(data[4:8], "little"), MAX_BYTES)]
    if kind != COMPRESSED:
        return b""
    found = bytearray(BEGINNING)
    start = len(BEGINNING)
    place = 0
    while place < len(content) and len(found) < MAX_BYTES:
        flags = content[place]
        place += 1
        for bit in range(8):
            if not flags >> bit & 1:
                found += content[place : place + 1]
                place += 1
                continue
            if place + 2 > len(content):
                return bytes(found[start:])
            token = int.from_bytes(content[place : place + 2], "big")
            place += 2
            # A token begins with a position in the window. If this is where the next byte would be written,
            # the text ends.
            distance = (len(found) - (token >> 4)) % WINDOW
            if distance == 0 or distance > len(found):
                return bytes(found[start:])
            for _ in range((token & 0xF) + 2):
                found.append(found[-distance])
    return bytes(found[start:])
