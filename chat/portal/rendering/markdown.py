"""Converts a model's Markdown to HTML that is safe on the site's pages.

There are three lines of defence: HTML in the Markdown is shown as text, links are checked while parsing, and
nh3 removes all elements that are not listed below. Images become their alternative text: a request for an
image could send words of a document to another site.
"""

import functools
import html
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import nh3
from django.utils.translation import get_language, gettext

from chat.llm.chat_model import NOTHING_FOUND
from chat.quoting.quoted_answer import NOTICES as QUOTING_NOTICES
from chat.quoting.table_rows.table_notices import translated

from .markdown_rules import BRACKETS, TASK, parser
from .open_block import closed

LONGEST_BLOCK = 30_000  # characters; hostile text of this length takes half a second to render (in a thread)
# Texts of the site in answers. They are stored untranslated, so that answers with them can be recognised and
# counted, and are displayed in the reader's language.
NOTICES = frozenset({*NOTHING_FOUND, *QUOTING_NOTICES})
# CPU time after which the rest of a page is plain text. 50 answers of 2,500 characters, each with a table of
# 30 rows, take one second; hostile blocks, each below LONGEST_BLOCK, could take minutes.
PAGE_SECONDS = 3.0
CACHED_BLOCKS = 256  # number of rendered blocks in the cache
FENCE_END = re.compile(r"\n[ \t]{0,20}[`~]{1,20}$")
DEEPEST = 18  # nesting level from which a block becomes plain text, because the parser omits deeper content
# Marks around text to underline. They are punctuation, so that emphasis beside them still begins and ends.
MARK_START, MARK_END = "\u2058", "\u2059"
PIECE = re.compile(r'<(?:[^<>"]++|"[^"]*+")*+>|[\u2058\u2059]|[^<\u2058\u2059]++|<')
LINE = re.compile(r"[^\n]+")
# The beginning of a line of a block quotation, table row, list item, heading or task.
LINE_PREFIX = re.compile(
    r"[ \t>|]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t]++)*+(?:#{1,6}[ \t]++)?+(?:\[[ xX]\][ \t]++)?+"
)
# Characters that change the text direction are replaced with zero-width spaces, because they could make one
# URL look like another.
DIRECTIONS = dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)], "\u200b")
CLASSES = frozenset(
    {
        "cite",
        "cite gone",
        "nowrap",
        "table",
        "table stacked",
        "block",
        "block wide",
        "block-head",
        "button quiet",
        "host",
        "to-end",
        "to-middle",
    }
    | {"task", "task done", "note-mark", "formula", "c", "f", "n", "s", "w"}
)
MATHML = frozenset(
    {"math", "mi", "mn", "mo", "mtext", "mspace", "mrow", "mfrac", "msqrt", "mroot", "mstyle", "mpadded"}
    | {"msub", "msup", "msubsup", "munder", "mover", "munderover", "mtable", "mtr", "mtd"}
)
TAGS = MATHML | frozenset(
    {"p", "h3", "h4", "h5", "strong", "em", "s", "code", "pre", "blockquote", "ul", "ol", "li", "hr", "br"}
    | {"table", "thead", "tbody", "tr", "th", "td", "a", "span", "div", "sup", "button"}  # without img
)
ATTRIBUTES = {
    "a": {"href", "class", "data-source", "aria-label", "title"},
    "span": {"class", "id", "tabindex", "role", "aria-label"},
    "div": {"class", "tabindex", "role", "aria-label"},
    "ol": {"start"},
    "pre": {"tabindex", "role", "aria-label"},
    "table": {"role"},
    "thead": {"role"},
    "tbody": {"role"},
    "tr": {"role"},
    "th": {"scope", "class", "role"},
    "td": {"class", "role", "data-label"},
    "button": {"class", "type", "data-copies", "hidden"},
    "math": {"display"},
    "mo": {"stretchy"},
    "mstyle": {"displaystyle"},
    "mi": {"mathvariant"},
}


@dataclass(frozen=True, slots=True)
class Chip:
    """A source's name in chips (displayed citations); empty if the reader may not open it."""

    name: str = ""  # such as “Working abroad policy, page 4”


class RenderingBudget:
    """The CPU time that is left for the Markdown of one page."""

    def __init__(self) -> None:
        self.left = PAGE_SECONDS

    def spend(self, text: str, rendered: Callable[[str], str]) -> str:
        """`rendered(text)`, or plain text if `text` is too long or the budget is used up."""
        if len(text) > LONGEST_BLOCK or self.left <= 0:
            return _as_plain_text(text)
        started = time.thread_time()
        try:
            return rendered(text)
        finally:
            self.left -= time.thread_time() - started


@dataclass
class Citations:
    """The sources that an answer may cite, and the numbers of its citations so far.

    `position` is the answer's position in its conversation. `chips` has all labels of the answer's sources,
    with an empty Chip if the reader may not open the source. `order` has the labels that already have
    numbers.
    """

    position: int = 0
    chips: Mapping[str, Chip] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    shown: int = 0  # number of chips in the blocks rendered so far
    budget: RenderingBudget = field(default_factory=RenderingBudget)  # of the page, for finished blocks

    def read(self, text: str) -> None:
        """Number the citations of the next piece of text, in order of first use."""
        for label in BRACKETS.findall(text):
            if label in self.chips and label not in self.order:
                self.order.append(label)

    def number(self, label: str) -> int | None:
        """The number of a citation, from 1; None if the label is not cited."""
        return self.order.index(label) + 1 if label in self.order else None

    def chip(self, number: int, *, is_open: bool = False) -> str:
        """The link to a source as HTML; in an unfinished block, only the number."""
        chip = self.chips.get(self.order[number - 1], Chip())
        name = chip.name or gettext("a source you can no longer open")
        place = f"{self.position}.{number}"
        gone = "" if chip.name else " gone"
        if is_open:
            return f'<span class="cite{gone}">{number}</span>'
        return (
            f'<a class="cite{gone}" href="?source={place}" data-source="{place}"'
            f' aria-label="{number}: {html.escape(name)}" title="{html.escape(name)}">{number}</a>'
        )


@functools.cache
def _cleaner() -> nh3.Cleaner:
    def kept(_tag: str, name: str, value: str) -> str | None:
        if (name == "class" and value not in CLASSES) or (name == "id" and not value.startswith("fn-")):
            return None
        return value

    return nh3.Cleaner(
        tags=set(TAGS),
        attributes=ATTRIBUTES,
        attribute_filter=kept,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )


def render_block(text: str, citations: Citations) -> str:
    """Render the next block as safe HTML, or as plain text if it is too long or the page's budget is used up.

    Citation numbers continue those of earlier blocks.
    """
    citations.read(text)
    html = citations.budget.spend(text, lambda text: _with_chips(text, citations, is_open=False))
    citations.shown += html.count('<a class="cite')
    return html


def render_open(text: str, citations: Citations, *, in_fence: bool = False) -> str:
    """Render the unfinished block as safe HTML, without visible Markdown syntax."""
    if not text.strip() or len(text) > LONGEST_BLOCK:
        return _as_plain_text(text) if text.strip() else ""
    text = FENCE_END.sub("", text) if in_fence else closed(text, frozenset(citations.chips))
    preview = Citations(citations.position, citations.chips, list(citations.order))
    preview.read(text)
    return _with_chips(text, preview, is_open=True) if text.strip() else ""


def _as_plain_text(text: str) -> str:
    return f"<p>{html.escape(text.strip())}</p>"


def _with_chips(text: str, citations: Citations, *, is_open: bool) -> str:
    if not is_open and text.strip() in NOTICES:
        text = gettext(text.strip())
    if (rows_shown := translated(text.strip())) is not None:
        return f'<p class="rows-shown">{html.escape(rows_shown)}</p>'
    numbers = {label: citations.number(label) for label in BRACKETS.findall(text)}
    chips = ((label, citations.chip(number, is_open=is_open)) for label, number in numbers.items() if number)
    first = citations.shown + 1 if "[" in text else 0
    return _rendered(get_language(), text, tuple(chips), citations.position, first, is_open)


@functools.lru_cache(CACHED_BLOCKS)
def _rendered(
    _language: str | None,  # language of the words around code and tables
    text: str,
    chips: tuple[tuple[str, str], ...],
    position: int,
    first: int,
    is_open: bool,
) -> str:
    """A rendered block. Cached, because all readers of an answer need it at about the same time."""
    env: dict[str, Any] = {"chips": dict(chips), "position": position, "first": first, "open": is_open}
    tokens = parser().parse(text.translate(DIRECTIONS), env)
    if any(token.level >= DEEPEST for token in tokens):
        rendered = _as_plain_text(text)
    else:
        rendered = _cleaner().clean(parser().renderer.render(tokens, parser().options, env)).strip()
    return _underlined(rendered) if MARK_START in text else rendered


def with_marks(text: str, ranges: Sequence[tuple[int, int]]) -> str:
    """The text with marks around unproven statements (`ranges`), which :func:`render` underlines.

    The ranges are in order. Each line gets its own marks, after the syntax of a list item, heading, quotation
    or row.
    """
    text = text.replace(MARK_START, "\ufffd").replace(MARK_END, "\ufffd")
    parts: list[str] = []
    done = 0
    for start, end in ranges:
        for line in LINE.finditer(text, start, end):
            begins = not text[text.rfind("\n", 0, line.start()) + 1 : line.start()].strip()
            first = (LINE_PREFIX if begins else TASK).match(text, line.start(), line.end())
            at = first.end() if first else line.start()
            # The bar that closes a row must remain the last character.
            said = text[at : line.end()].rstrip(" \t|")
            parts += [text[done:at], MARK_START, said, MARK_END]
            done = at + len(said)
    parts.append(text[done:])
    return "".join(parts)


def _underlined(rendered: str) -> str:
    """Safe HTML in which text between two marks is underlined.

    The marks may be in different elements, so each piece of text between them gets its own element.
    """
    parts: list[str] = []
    inside = False
    for match in PIECE.finditer(rendered):
        piece = match[0]
        if piece in (MARK_START, MARK_END):
            inside = piece == MARK_START
        elif piece.startswith("<"):
            parts.append(piece.replace(MARK_START, "").replace(MARK_END, ""))
        elif inside and piece.strip():
            parts.append(f'<span class="missing">{piece}</span>')
        else:
            parts.append(piece)
    return "".join(parts)


def render(text: str, citations: Citations) -> str:
    """Render a whole text as safe HTML, block by block."""
    return "\n".join(filter(None, (render_block(block, citations) for block in split(text))))


class BlockRenderer:
    """Renders an answer while it arrives. Joined blocks equal the result of :func:`render`."""

    def __init__(self, citations: Citations) -> None:
        self.citations = citations
        self._splitter = BlockSplitter()

    def feed(self, text: str) -> list[str]:
        """Add text; returns the blocks that it finishes, as safe HTML."""
        return self._rendered(self._splitter.feed(text))

    def finish(self) -> list[str]:
        return self._rendered(self._splitter.finish())

    @property
    def unfinished(self) -> int:
        """The number of characters in the unfinished block."""
        return self._splitter.unfinished

    @property
    def text(self) -> str:
        """The Markdown of the unfinished block."""
        return self._splitter.tail

    @property
    def in_fence(self) -> bool:
        return self._splitter.in_fence

    @property
    def open(self) -> str:
        """The unfinished block as safe HTML."""
        return render_open(self.text, self.citations, in_fence=self.in_fence)

    def _rendered(self, blocks: Iterable[str]) -> list[str]:
        return list(filter(None, (render_block(block, self.citations) for block in blocks)))


FENCE = re.compile(r"[ \t]*(`{3,}(?=[^`]*$)|~{3,})")
LIST_ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")


class BlockSplitter:
    """Splits text that arrives in pieces into blocks.

    Each block is returned as soon as no later text can change it. A block ends at a blank line outside of a
    code fence. A list may contain blank lines: it ends where a blank line is followed by a line that is
    neither an item nor indented.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []  # the complete lines of the current block
        self._line = ""  # the unfinished line
        self._fence = ""
        self._list = False
        self._blank = False  # whether the current block is a list whose last line is blank

    @property
    def tail(self) -> str:
        """The unfinished block."""
        return "".join(self._lines) + self._line

    @property
    def unfinished(self) -> int:
        """The number of characters in the unfinished block."""
        return sum(map(len, self._lines)) + len(self._line)

    @property
    def in_fence(self) -> bool:
        return bool(self._fence)

    def feed(self, text: str) -> list[str]:
        """Add text; returns the blocks that it finishes."""
        if "\n" not in text:
            self._line += text
            return []
        *lines, self._line = (self._line + text).split("\n")
        finished = (self._take(line + "\n") for line in lines)
        return [block for block in finished if block]

    def finish(self) -> list[str]:
        """Return the rest at the end of the text."""
        rest = [self._take(self._line), self._cut()]
        self._line = ""
        return [block for block in rest if block]

    def _take(self, line: str) -> str:
        """Add a line; returns the block that ends before it or with it, if any."""
        finished = ""
        if self._fence:
            self._lines.append(line)
            self._close_fence(line)
            return finished
        if not line.strip():
            if self._list:
                self._lines.append(line)
                self._blank = True
                return finished
            return self._cut()
        if self._blank and not (line[0] in " \t" or LIST_ITEM.match(line)):
            finished = self._cut()
        self._blank = False
        if not self._lines:
            self._list = bool(LIST_ITEM.match(line))
        self._lines.append(line)
        self._open_fence(line)
        return finished

    def _open_fence(self, line: str) -> None:
        match = FENCE.match(line.rstrip("\n"))
        if match and (self._list or len(line) - len(line.lstrip(" \t")) <= 3):
            self._fence = match[1]

    def _close_fence(self, line: str) -> None:
        mark = line.strip()
        if mark and not mark.strip(self._fence[0]) and len(mark) >= len(self._fence):
            self._fence = ""

    def _cut(self) -> str:
        block = "".join(self._lines)
        self._lines, self._fence, self._list, self._blank = [], "", False, False
        return block if block.strip() else ""


def split(text: str) -> list[str]:
    """All blocks of a complete text."""
    splitter = BlockSplitter()
    return splitter.feed(text) + splitter.finish()
