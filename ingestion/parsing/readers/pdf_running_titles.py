"""Running titles of a PDF: lines that repeat at the top or bottom of its pages, and printed page numbers."""

import itertools
import re
from collections import Counter
from statistics import median

from .pdf_page_text import Line

EDGE_LINES = 2  # number of lines at the beginning and end of a page's text that may be running titles
# Number of heights at the top and at the bottom that may have running titles, wherever these are in the text.
TOP_HEIGHTS, BOTTOM_HEIGHTS = 2, 3
MIN_PAGES, MIN_SIDES = 3, 4  # minimum number of pages, or of left or right pages, with a running title
EDGE_SHARE = 0.6  # share of the pages on which a line must appear to be a running title
PAGE_NUMBER = re.compile(r"(?<!\d)\d{1,3}(?!\d)")  # longer numbers are years or invoice numbers
PRINTED_NUMBER = re.compile(r"\A\d{1,4}(?=\s|\Z)|(?<=\s)\d{1,4}\Z")  # at the beginning or end of a line
NUMBER_SCALE = 1.02  # a line that is larger than the text by this factor is not a printed page number
# A line's text with # for short numbers, its font size, and the height of its baseline on the page (None if
# the line may be at any height).
Shape = tuple[str, int, int | None]


def without_running_titles(pages: list[list[Line]]) -> list[list[Line]]:
    """The pages without running titles, which are lines at the top or bottom of most pages.

    In books, left and right pages have different titles. Lines of the same size that differ only in short
    numbers count as equal. A line that occurs at least as often inside pages as at their edges (in a list,
    for instance) is kept, unless it repeats at the same height. Lines beside the printed page number are
    running titles, too.
    """
    if len(pages) < 3:
        return pages
    edges = [_edges(lines) for lines in pages]
    often: dict[Shape, int] = {}
    for first, step, least in ((0, 1, MIN_PAGES), (0, 2, MIN_SIDES), (1, 2, MIN_SIDES)):
        side = edges[first::step]
        counts = Counter(key for keys in side for key in set(itertools.chain(*keys.values())))
        often |= {key: count for key, count in counts.items() if count >= max(least, len(side) * EDGE_SHARE)}
    inside = Counter(_shape(line) for lines in pages for line in lines[EDGE_LINES:-EDGE_LINES])
    running = {key for key, count in often.items() if key[2] is not None or inside.get(key, 0) < count}
    numbered = _numbered_heights(pages)
    return [
        [
            line
            for place, line in enumerate(lines)
            if running.isdisjoint(keys.get(place, ())) and _height(line) not in heights
        ]
        for lines, keys, heights in zip(pages, edges, numbered, strict=True)
    ]


def _numbered_heights(pages: list[list[Line]]) -> list[set[int]]:
    """For each page, the height of the line with its printed page number, if it was found on most pages.

    Only the topmost and lowest lines count, and no large ones: a page may begin with the number and title of
    a chapter. Everything else at that height is a running title, which may differ from chapter to chapter.
    """
    # For each page, the numbers at its top and bottom: how far each exceeds the page's index, and its height.
    places: list[set[tuple[int, int]]] = []
    for number, lines in enumerate(pages):
        heights = [round(line.baseline) for line in lines if line.baseline is not None]
        outermost = {min(heights, default=None), max(heights, default=None)}
        body = median(line.size for line in lines) if lines else 0
        ends = [
            (found, _height(line))
            for line in lines
            if not line.whole and _height(line) in outermost and line.size <= body * NUMBER_SCALE
            for found in PRINTED_NUMBER.findall(line.text)
        ]
        places.append({(int(found) - number, height) for found, height in ends if height is not None})
    ahead = Counter(each for page in places for each in {distance for distance, _ in page})
    best, count = max(ahead.items(), key=lambda item: item[1], default=(0, 0))
    if count < max(MIN_PAGES, len(pages) * EDGE_SHARE):
        return [set() for _ in pages]
    usual = Counter(height for page in places for distance, height in page if distance == best)
    least = max(MIN_PAGES, len(pages) * EDGE_SHARE / 2)  # left and right pages may have different heights
    often = {height for height, times in usual.items() if times >= least}
    return [{height for distance, height in page if distance == best and height in often} for page in places]


def _height(line: Line) -> int | None:
    return None if line.baseline is None else round(line.baseline)


def _extreme_heights(lines: list[Line]) -> set[int]:
    heights = sorted({round(line.baseline) for line in lines if line.baseline is not None})
    return {*heights[:BOTTOM_HEIGHTS], *heights[-TOP_HEIGHTS:]}


def _edges(lines: list[Line]) -> dict[int, list[Shape]]:
    """The shapes of the first and last lines and of those at the top and bottom, by line index.

    The shapes of lines at the top or bottom include their heights: rows of a table may be there, too, but at
    other heights on each page.
    """
    found: dict[int, list[Shape]] = {}
    extreme = _extreme_heights(lines)
    for place, line in enumerate(lines):
        if line.whole:
            continue
        if not EDGE_LINES <= place < len(lines) - EDGE_LINES:
            found.setdefault(place, []).append(_shape(line))
        if line.baseline is not None and round(line.baseline) in extreme:
            found.setdefault(place, []).append((*_shape(line)[:2], round(line.baseline)))
    return found


def _shape(line: Line) -> Shape:
    return PAGE_NUMBER.sub("#", line.text), round(line.size), None
