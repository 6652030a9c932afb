"""Plain text and CSV; long files are cited by line or by cell range."""

import csv
import itertools
import re
from collections import Counter
from pathlib import Path

from ingestion.parsing.encodings import decode, encoding_of_file
from ingestion.parsing.sections import Contents, Limits, Unreadable, heading_path, too_long_path

from .lone_titles import lone_titles
from .outline import PLACE_CHARACTERS
from .tables import CELL_CHARACTERS, add_rows

SAMPLE_LINES = 50
SAMPLE_CHARACTERS = 20_000
LONGEST_QUOTED = 200_000  # a longer quoted cell probably lacks its closing quotation mark
DELIMITERS = ",;\t|"
UNDERLINES = "=-*~^"
MIN_UNDERLINE = 3
# A comma that is neither decimal, as in “1,50” and “5,-”, nor followed by a space, as between words.
DIVIDING_COMMA = re.compile(r",(?![ \d-])|(?<!\d),(?! )")
HINT = "sep="  # start of an optional first line that names the delimiter, for Excel


def read_text(path: Path, limits: Limits) -> Contents:
    contents = Contents(limits)
    text = decode(path.read_bytes())
    contents.check(len(text))
    is_short = len(text) <= PLACE_CHARACTERS
    lines = text.splitlines(keepends=True)
    titles = _lone_titles(lines)
    levels: dict[str, int] = {}  # of underlined headings, by underlining character, in order of appearance
    headings: list[tuple[int, str]] = []  # headings with their levels
    part: list[str] = []
    first, size = 1, 0

    def add() -> None:
        heading = heading_path([title for _, title in headings])
        contents.add("" if is_short else f"line={first}", None, heading, "".join(part))

    is_bare = False  # whether the last heading has no text below it: without a subheading, it becomes text
    skipped = 0  # number of the last line of a heading, which is skipped
    for number, line in enumerate(lines, 1):
        underline = _underline(line, lines[number]) if number < len(lines) else ""
        level, title = titles.get(number, (None, line.strip()))
        if underline:
            level = levels.setdefault(underline, len(levels))
        ends = not line.strip() or size > 2 * PLACE_CHARACTERS
        if part and (level is not None or (ends and size > PLACE_CHARACTERS)):
            add()
            part, first, size = [], number, 0
            is_bare = False
        if level is not None:
            above = [each for each in headings if each[0] < level]
            if is_bare and len(above) < len(headings):
                part = [headings[-1][1]]
                add()
                part = []
            is_bare = True
            headings = [*above, (level, title)]
            skipped = number + bool(underline)
            if whole := too_long_path(each for _, each in headings):
                part, size = [f"{whole}\n"], len(whole)
        elif number != skipped and (part or line.strip()):
            part.append(line)
            size += len(line)
    if is_bare and not part:
        part = [headings[-1][1]]
    add()
    return contents


def _lone_titles(lines: list[str]) -> dict[int, tuple[int, str]]:
    """By line number, the (level, heading) of each heading; empty if headings are underlined."""
    if any(_underline(line, following) for line, following in itertools.pairwise(lines)):
        return {}
    blocks: list[str] = []
    starts: list[int] = []
    for is_blank, group in itertools.groupby(enumerate(lines, 1), key=lambda each: not each[1].strip()):
        if not is_blank:
            numbered = list(group)
            starts.append(numbered[0][0])
            blocks.append("".join(line for _, line in numbered).strip())
    return {starts[index]: title for index, title in lone_titles(blocks).items()}


def _underline(line: str, following: str) -> str:
    """The character with which `following` underlines the heading `line`; empty if it does not."""
    title, rule = line.strip(), following.strip()
    is_heading = (
        any(map(str.isalpha, title))
        and line[0] == title[0]
        and following[0] == rule[:1]
        and len(rule) >= MIN_UNDERLINE
        and rule == rule[0] * len(rule)
        and rule[0] in UNDERLINES
        and abs(len(title) - len(rule)) <= 2
    )
    return rule[0] if is_heading else ""


def read_csv(path: Path, limits: Limits) -> Contents:
    """Read rows with the names of their columns.

    If a quoted cell is longer than LONGEST_QUOTED, its closing mark is probably missing: all quotation marks
    are then read as ordinary characters.
    """
    encoding = encoding_of_file(path)
    with path.open(encoding=encoding, errors="replace", newline="") as file:
        sample = file.read(SAMPLE_CHARACTERS).replace("\x00", "").splitlines(keepends=True)[:SAMPLE_LINES]
    if sample and sample[0].lower().startswith(HINT) and len(sample[0].strip()) == len(HINT) + 1:
        delimiter, skipped = sample[0][len(HINT)], 1
    else:
        delimiter, skipped = _delimiter(sample), 0
    for quoted, longest in ((True, LONGEST_QUOTED), (False, CELL_CHARACTERS)):
        csv.field_size_limit(longest)
        contents = Contents(limits)
        with path.open(encoding=encoding, errors="replace", newline="") as file:
            lines = itertools.islice((line.replace("\x00", "") for line in file), skipped, None)
            try:
                rows = csv.reader(
                    lines, delimiter=delimiter, quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
                )
                add_rows(contents, "", enumerate(rows, 1), "")
            except csv.Error:
                continue
        return contents
    raise Unreadable(f"The table cannot be read: a cell is longer than {CELL_CHARACTERS:,} characters.")


def _delimiter(sample: list[str]) -> str:
    """The delimiter that splits the lines best.

    A table without column names, such as `52,5;13,4`, can be split evenly at its decimal commas, too.
    """
    best = max(DELIMITERS, key=lambda each: _fit(sample, each))
    is_even = _fit(sample, ";") >= 1
    return ";" if best == "," and is_even and not any(map(DIVIDING_COMMA.search, sample)) else best


def _fit(sample: list[str], delimiter: str) -> float:
    """How well a delimiter splits the lines into rows of equal length: 1 or more if all are, 0 if none."""
    widths: Counter[int] = Counter()
    rows = csv.reader(sample, delimiter=delimiter)
    while True:
        try:
            row = next(rows)
        except (StopIteration, csv.Error):
            break
        if row:
            widths[len(row)] += 1
    if not widths:
        return 0
    width, count = max(widths.items(), key=lambda item: (item[0] > 1, item[1], item[0]))
    return count / widths.total() + width / 1_000 if width > 1 else 0
