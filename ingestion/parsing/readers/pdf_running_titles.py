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
# Like PAGE_NUMBER, but not a part of a date or of a price. Of a number such as 2.1, the last part counts: it
# may be the first page of chapter 2.
COUNTED = re.compile(r"(?<!\d)(?<!\d[.,])(?:\d{1,2}\.(?=[1-9]\d?(?![\d.])))?(\d{1,3})(?![.,]?\d)")
WORD = re.compile(r"[^\W\d_]+")
PAGE_WORDS = {"blatt", "of", "p", "page", "s", "seite", "von"}  # "Seite 1 von 5"
PRINTED_NUMBER = re.compile(r"\A\d{1,4}(?=\s|\Z)|(?<=\s)\d{1,4}\Z")  # at the beginning or end of a line
NUMBER_SCALE = 1.02  # a line that is larger than the text by this factor is not a printed page number
TITLE_SCALE = 1.3  # a line with a number that is larger than the text by this factor may be its page's title
# A line's text (with # for short numbers if one of them counts the pages), its font size, and the height of
# its baseline on the page (None if the line may be at any height).
Shape = tuple[str, int, int | None]


def without_running_titles(pages: list[list[Line]]) -> list[list[Line]]:
    """The pages without running titles, which are lines at the top or bottom of most pages.

    In books, left and right pages have different titles. Lines of the same size that differ only in short
    numbers count as equal if one of these numbers counts the pages (see :func:`_numberings`). A line that
    occurs at least as often inside pages as at their edges (in a list, for instance) is kept, unless it
    repeats at the same height. Lines beside the printed page number are running titles, too.
    """
    if len(pages) < 3:
        return pages
    places = [_edges(lines) for lines in pages]
    numberings = _numberings(pages, places)
    edges = [
        {place: [_shape(lines[place], numberings, height) for height in heights[place]] for place in heights}
        for lines, heights in zip(pages, places, strict=True)
    ]
    often: dict[Shape, int] = {}
    for first, step, least in ((0, 1, MIN_PAGES), (0, 2, MIN_SIDES), (1, 2, MIN_SIDES)):
        side = edges[first::step]
        counts = Counter(key for keys in side for key in set(itertools.chain(*keys.values())))
        often |= {key: count for key, count in counts.items() if count >= max(least, len(side) * EDGE_SHARE)}
    inside = Counter(_shape(line, numberings) for lines in pages for line in lines[EDGE_LINES:-EDGE_LINES])
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
    a chapter, which may also be bold, and different on each page. Everything else at that height is a running
    title, which may differ from chapter to chapter.
    """
    # For each page, the numbers at its top and bottom: how far each exceeds the page's index, and its height.
    places: list[set[tuple[int, int]]] = []
    outermost = [_outermost(lines) for lines in pages]
    titles = Counter(PRINTED_NUMBER.sub("", line.text) for lines in outermost for line in lines if line.bold)
    for number, lines in enumerate(outermost):
        ends = [
            (found, _height(line))
            for line in lines
            if not (line.bold and titles[PRINTED_NUMBER.sub("", line.text)] == 1)
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


def _outermost(lines: list[Line]) -> list[Line]:
    """The topmost and lowest lines, except those that are larger than the text."""
    heights = [round(line.baseline) for line in lines if line.baseline is not None]
    ends = {min(heights, default=None), max(heights, default=None)}
    body = median(line.size for line in lines) if lines else 0
    return [
        line
        for line in lines
        if not line.whole and _height(line) in ends and line.size <= body * NUMBER_SCALE
    ]


def _height(line: Line) -> int | None:
    return None if line.baseline is None else round(line.baseline)


def _sorted_heights(lines: list[Line]) -> list[int]:
    return sorted({round(line.baseline) for line in lines if line.baseline is not None})


def _extreme_heights(lines: list[Line]) -> set[int]:
    heights = _sorted_heights(lines)
    return {*heights[:BOTTOM_HEIGHTS], *heights[-TOP_HEIGHTS:]}


def _numberings(pages: list[list[Line]], edges: list[dict[int, list[int | None]]]) -> set[str]:
    """The texts, with # for short numbers, of lines that count the pages at their top or bottom.

    Numbers of other lines are content, for example prices and dates, and so are those of titles: large lines
    at the top of a page that have other words than *Page 1 of 5*.
    """
    body = median([line.size for lines in pages for line in lines if not line.whole] or [0])
    # By the text of a line, for each page with it: its index, and its numbers with their places in the line.
    found: dict[str, dict[int, set[tuple[int, int]]]] = {}
    for number, (lines, places) in enumerate(zip(pages, edges, strict=True)):
        top = _sorted_heights(lines)[-TOP_HEIGHTS:]
        for line in map(lines.__getitem__, places):
            is_large = line.size >= body * TITLE_SCALE and _height(line) in top
            if is_large and not PAGE_WORDS.issuperset(WORD.findall(line.text.lower())):
                continue
            counted = set(enumerate(map(int, COUNTED.findall(line.text))))
            if counted:
                of_page = found.setdefault(PAGE_NUMBER.sub("#", line.text), {})
                of_page.setdefault(number, set()).update(counted)
    return {text for text, of_page in found.items() if _counts(of_page)}


def _counts(numbers: dict[int, set[tuple[int, int]]]) -> bool:
    """Whether one of a line's numbers counts the pages.

    `numbers` are those of each page with the line, by index, with their places in the line. From most pages
    to the next one, the number increases by one for each page or begins at one again (in a new chapter), or
    it increases by two (with two pages on each sheet).
    """
    steps: Counter[tuple[int, float]] = Counter()  # by place and increase for each page
    restarts: Counter[int] = Counter()
    for (page, here), (next_page, there) in itertools.pairwise(numbers.items()):
        pairs = [(at, before, after) for at, before in here for place, after in there if at == place]
        steps.update({(at, (after - before) / (next_page - page)) for at, before, after in pairs})
        restarts.update({at for at, before, after in pairs if after == 1 < before})
    least = max(1, EDGE_SHARE * (len(numbers) - 1))
    return any(
        steps[at, 1] + min(steps[at, 1], restarts[at]) >= least or steps[at, 2] >= least for at, _ in steps
    )


def _edges(lines: list[Line]) -> dict[int, list[int | None]]:
    """The first and last lines and those at the top and bottom: their heights, by line index.

    The height is None for a first or last line. At the top or bottom, it distinguishes running titles from
    rows of a table, which may be there, too, but at other heights on each page.
    """
    found: dict[int, list[int | None]] = {}
    extreme = _extreme_heights(lines)
    for place, line in enumerate(lines):
        if line.whole:
            continue
        if not EDGE_LINES <= place < len(lines) - EDGE_LINES:
            found.setdefault(place, []).append(None)
        if line.baseline is not None and round(line.baseline) in extreme:
            found.setdefault(place, []).append(round(line.baseline))
    return found


def _shape(line: Line, numberings: set[str], height: int | None = None) -> Shape:
    text = PAGE_NUMBER.sub("#", line.text)
    return text if text in numberings else line.text, round(line.size), height
