"""Sections and paragraphs of a PDF: its lines under their headings, joined, without hyphenation."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ingestion.parsing.sections import Section, clean, heading_path, too_long_path

from .hyphenation import BREAK, without_breaks
from .pdf_headings import ITEM_INDENT, SHORT_LINE, Bookmarks, heading_runs, text_style, with_bookmarks
from .pdf_page_text import BULLETS, NOTE_GAP, Line

FULL_LINE = 0.72  # a line shorter than this share of the usual width ends its paragraph
HYPHENATED_SHARE = 0.03  # in a hyphenated document, more than this share of the lines end with a hyphen
COMPOUND = re.compile(r"\b\w++-\w++")
BULLET = re.compile(rf"^(?:[{BULLETS}–*-]|\(?\d{{1,2}}[.)]|[a-z]\))\s")
ITEM_NUMBER = re.compile(r"^\(?(\d{1,2})[.)]\s")
SENTENCE_ENDS = ".!?:;"


def sections_of(
    pages: list[list[Line]], bookmarks: Bookmarks | None = None, is_hyphenated: bool = True
) -> Iterator[Section]:
    """A section for each heading on each page; a heading also applies to the next page's start.

    `is_hyphenated` says whether the program that wrote the file may have broken words at the ends of lines;
    words are also joined if many lines end with a hyphen.
    """
    plain = [line for lines in pages for line in lines if not line.whole]
    style = text_style(plain)
    compounds = {word.lower() for line in plain for word in COMPOUND.findall(line.text)}
    broken = sum(BREAK in line.text for line in plain)
    is_hyphenated = is_hyphenated or broken > HYPHENATED_SHARE * len(plain)
    path: list[Line] = []
    for number, page in enumerate(pages, 1):
        lines = with_bookmarks(page, (bookmarks or {}).get(number, ()))
        pending: list[Line] = []
        widths = sorted(len(line.text) for line in lines if not line.whole)
        usual = widths[int(len(widths) * 0.9)] if widths else 0
        full = max(SHORT_LINE, usual * FULL_LINE)
        for is_heading, run in heading_runs(lines, style, full):
            if is_heading:
                parents = path[:-1]
                path = [line for line in path if line.outranks(run[0])]
                if pending and pending[0].size and pending[0] not in path:
                    yield Section(f"page={number}", number, _joined(parents), pending[0].text)
                title = " ".join(line.text for line in run).replace(f"{BREAK} ", BREAK)
                text = without_breaks(title, compounds, is_hyphenated=is_hyphenated)
                path.append(replace(run[0], text=text))
                pending = path[-1:]
                continue
            heading = _joined(path)
            text = without_breaks(_paragraphs(run, full), compounds, is_hyphenated=is_hyphenated)
            if pending and (too_long := too_long_path(line.text for line in path)):
                text = f"{too_long}\n\n{text}"
            yield Section(f"page={number}", number, heading, text)
            pending = []
        if pending and pending[0].size:  # a heading without text becomes text of this page
            yield Section(f"page={number}", number, _joined(path[:-1]), pending[0].text)


def _joined(path: Sequence[Line]) -> str:
    return heading_path([line.text for line in path])


def _paragraphs(lines: list[Line], full: float) -> str:
    """Join lines into paragraphs. After a line shorter than `full`, a new line begins."""
    text = ""
    previous: Line | None = None  # None at the beginning, and after a `whole` line
    item: Line | None = None  # the first line of the list item to which the previous line belongs
    for line in lines:
        joined = "\n" if text else ""
        begins = _begins_item(line, previous, item)
        if previous and not line.whole:
            after_list = item is not None and not begins and _is_after(line, previous, item)
            if previous.text.endswith(BREAK) and not _is_note(line, previous):
                joined, begins = "", False
            elif after_list:
                joined, item = "\n\n", None
            elif len(previous.text) >= full and line.size == previous.size and not begins:
                joined = " "
        text += joined + line.text
        if begins:
            item = line
        elif joined == "\n":
            item = None
        previous = None if line.whole else line
    return clean(text)


def _begins_item(line: Line, previous: Line | None, item: Line | None) -> bool:
    """Whether a line begins a list item; a number such as "40." may end a sentence instead."""
    found = BULLET.match(line.text)
    if found is None or line.whole:
        return False
    number = ITEM_NUMBER.match(line.text)
    if number is None or previous is None or previous.text[-1] in SENTENCE_ENDS:
        return True
    last = ITEM_NUMBER.match(item.text) if item else None
    return int(number[1]) in {1, int(last[1]) + 1 if last else 1}


def _is_note(line: Line, previous: Line) -> bool:
    """Whether a line is smaller and far below the previous one, as a note at the foot of the page."""
    if line.baseline is None or previous.baseline is None:
        return False
    return line.size < previous.size and previous.baseline - line.baseline > NOTE_GAP * previous.size


def _is_after(line: Line, previous: Line, item: Line) -> bool:
    """Whether a line is the first after a list: aligned with its markers, after a sentence's end."""
    if line.left is None or item.left is None or previous.text[-1] not in SENTENCE_ENDS:
        return False
    return line.left <= item.left + ITEM_INDENT
