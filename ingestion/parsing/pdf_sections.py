"""Lines of pages into sections by heading, without what stands at the edge of every page."""

import re
from collections import Counter
from collections.abc import Iterator
from statistics import median

from .pdf_lines import Line
from .sections import HEADING_CHARACTERS, Section, clean, one_line

EDGE_LINES = 2  # at the top and at the foot, where running titles and page numbers stand
EDGE_SHARE = 0.6  # of the pages on which a line must stand to be furniture
HEADING_SCALE = 1.12  # of the size of the text around
BOLD_HEADING_SCALE = 1.02  # the same for a bold line
HEADING_LINE = 120
FULL_LINE = 0.72  # of the widest usual line: a shorter one ends its paragraph
SHORT_LINE = 40  # never joined with the next
BULLET = re.compile(r"^(?:[•◦▪‣–*-]|\(?\d{1,2}[.)]|[a-z]\))\s")


def without_furniture(pages: list[list[Line]]) -> list[list[Line]]:
    """The pages without lines that stand at the edge of most of them, but for their numbers."""
    if len(pages) < 3:
        return pages
    seen = Counter(key for lines in pages for key in {_shape(line) for line in _edges(lines)})
    running = {key for key, count in seen.items() if count >= max(3, len(pages) * EDGE_SHARE)}
    kept = []
    for lines in pages:
        dropped = {id(line) for line in _edges(lines) if _shape(line) in running}
        kept.append([line for line in lines if id(line) not in dropped])
    return kept


def _edges(lines: list[Line]) -> list[Line]:
    return [line for line in lines[:EDGE_LINES] + lines[EDGE_LINES:][-EDGE_LINES:] if not line.whole]


def _shape(line: Line) -> str:
    return re.sub(r"\d+", "#", line.text)


def sections_of(pages: list[list[Line]]) -> Iterator[Section]:
    """One section for each heading on each page; a heading goes on over the page's end."""
    plain = [line for lines in pages for line in lines if not line.whole]
    sizes = [line.size for line in plain for _ in range(0, len(line.text), 20)]
    body = median(sizes) if sizes else 0
    path: list[Line] = []
    for number, lines in enumerate(pages, 1):
        pending: list[Line] = []
        full = max(SHORT_LINE, _widest(lines) * FULL_LINE)
        for is_heading, run in _runs(lines, body):
            if is_heading:
                path = [line for line in path if line.size > run[0].size * 1.02]
                path.append(Line(" ".join(line.text for line in run), run[0].size))
                pending = path[-1:]
                continue
            heading = one_line(" › ".join(line.text for line in path), HEADING_CHARACTERS)
            yield Section(f"page={number}", number, heading, _paragraphs(run, full))
            pending = []
        if pending:  # a heading without text under it is still text of this page
            yield Section(f"page={number}", number, "", pending[0].text)


def _runs(lines: list[Line], body: float) -> Iterator[tuple[bool, list[Line]]]:
    """Neighbouring lines that are headings of one size, or text."""
    run: list[Line] = []
    run_heading = False
    for line in lines:
        scale = BOLD_HEADING_SCALE if line.bold else HEADING_SCALE
        large = line.size >= body * scale and body > 0
        heading = large and len(line.text) <= HEADING_LINE and not line.whole
        if run and (heading != run_heading or (heading and line.size != run[-1].size)):
            yield run_heading, run
            run = []
        run.append(line)
        run_heading = heading
    if run:
        yield run_heading, run


def _widest(lines: list[Line]) -> int:
    """The usual width of a full line, in characters."""
    widths = sorted(len(line.text) for line in lines if not line.whole)
    return widths[int(len(widths) * 0.9)] if widths else 0


def _paragraphs(lines: list[Line], full: float) -> str:
    """Lines joined to paragraphs; those shorter than `full` (rows, ends of paragraphs) stay alone."""
    text = ""
    previous, size = "", 0.0
    for line in lines:
        goes_on = len(previous) >= full and line.size == size and not BULLET.match(line.text)
        if line.whole:
            text += f"\n{line.text}" if text else line.text
            previous, size = "", 0.0
            continue
        if previous.endswith("\u2010"):
            text = text[:-1] + line.text
        elif goes_on:
            text += f" {line.text}"
        else:
            text += f"\n{line.text}" if text else line.text
        previous, size = line.text, line.size
    return clean(text.replace("\u2010", "-"))
