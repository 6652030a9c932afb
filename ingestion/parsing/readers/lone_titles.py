"""Finds the headings of a plain text.

They are separate short lines above a paragraph, a list or a lower heading, or lines with the heading marks of
AsciiDoc or MediaWiki.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

TITLE_CHARACTERS = 80  # maximum length of a separate line that may be a heading
TITLE_WORDS = 10
PROSE_CHARACTERS = 60  # a block of at least this length is a paragraph, even without punctuation at its end
MIN_TITLES = 3  # fewer titles are not trusted
MAX_TITLE_SHARE = 0.5  # a text with a larger share of titles among its blocks is taken for a form or a list
# Minimum share of titles, which have text below, among the lines that have the form of a title.
MIN_FOLLOWED_SHARE = 0.7
UPPER, LOWER = 1, 2  # levels of titles in capitals, and of others
_ITEM = re.compile(r"[-*•–▪]\s|\(?\w{1,3}[.)]\s")
_MARKED = re.compile(r"(={2,6}) (\S[^\n]{0,100})")  # AsciiDoc and MediaWiki
_DATE_OR_VALUE = re.compile(r"\b\d{4}\b|[%€$£@|;\t\n]|://|: ")


def lone_titles(blocks: Sequence[str]) -> Mapping[int, tuple[int, str]]:
    """{index of a block: (level, heading)} for a text's blocks, which are separated by blank lines.

    Empty if the blocks that look like titles are probably something else, such as the lines of a form.
    """
    marked = {
        index: (len(found[1]) - 1, found[2].rstrip("= "))
        for index, block in enumerate(blocks)
        if block.startswith("=") and (found := _MARKED.fullmatch(block.strip()))
    }
    if len(marked) >= MIN_TITLES:
        return marked
    shaped = [has_title_form(block) for block in blocks]
    titles: dict[int, tuple[int, str]] = {}
    for index, block in enumerate(blocks[:-1]):
        if not shaped[index]:
            continue
        level = UPPER if block.isupper() else LOWER
        below = blocks[index + 1]
        if shaped[index + 1]:
            is_title = level == UPPER and not below.isupper() and _is_above_text(blocks, index + 1)
        else:
            is_title = _is_above_text(blocks, index)
        if is_title:
            titles[index] = (level, block.strip())
    often = Counter(text for _, text in titles.values()).most_common(1)
    is_plausible = (
        len(titles) >= MIN_TITLES
        and len(titles) <= MAX_TITLE_SHARE * len(blocks)
        and len(titles) >= MIN_FOLLOWED_SHARE * sum(shaped)
        and often[0][1] <= max(1, len(titles) / 4)
    )
    return titles if is_plausible else {}


def is_title(text: str) -> bool:
    """Whether a paragraph that bold type or a style sets apart looks like a heading."""
    line = text.strip()
    return (
        0 < len(line) <= TITLE_CHARACTERS
        and line[-1] not in ".,;:"
        and "\n" not in line
        and sum(map(str.isalpha, line)) > len(line) / 2
    )


def has_title_form(text: str) -> bool:
    """Whether a line looks like a heading without being bold: short, capitalised, and not a sentence."""
    line = text.strip()
    name = line.lstrip("§ ")  # “§ 4 Duties”
    return (
        bool(name)
        and is_title(line)
        and len(line.split()) <= TITLE_WORDS
        and (name[0].isupper() or (name[0].isdigit() and name[-1].isalpha()))
        and (line[-1].isalnum() or line[-1] in ")?\"'”’")
        and not _DATE_OR_VALUE.search(line)
    )


def _is_above_text(blocks: Sequence[str], index: int) -> bool:
    """Whether a paragraph or a list follows the block."""
    if index + 1 == len(blocks):
        return False
    below = blocks[index + 1].strip()
    is_numbered = bool(_ITEM.match(blocks[index].strip()))
    if _ITEM.match(below):
        return not is_numbered  # otherwise, both are items of one list
    return len(below) >= PROSE_CHARACTERS or below[-1:] in (".", "!", "?", ":")
