"""Markdown of a model to HTML that may stand on our page.

Three walls, one behind the other: HTML in the markdown is text, links and images are judged while
parsing, and nh3 lets through only the elements below. There is no image among them: the address of
an image is enough to carry words of a document out of the house.
"""

import functools
import html
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

LINK = re.compile(r"(?:https?|mailto):", re.IGNORECASE)
LONGEST_BLOCK = 30_000  # characters; a hostile one of this length takes half a second, in a thread
LATEST_BLOCKS = 256  # that are kept
LAST_WORD = re.compile(r"(\S{1,30}+)([ \t\n]*+)$")
CLOSING = re.compile(r"^[.,;:!?)\]’”»…]+")
BRACKETS = re.compile(r"\[([^\[\]\n]+)\](?!\()")
OPEN_BRACKET = re.compile(r"(?<!\s)\s*\[[^\[\]]{0,800}$")
MARKS = re.compile(r"\*\*|^#{1,6} |^> ?", re.MULTILINE)
# Of the kind of punctuation, so that emphasis beside them begins and ends as it does without them.
MARK_START, MARK_END = "\u2058", "\u2059"
PIECE = re.compile(r'<(?:[^<>"]++|"[^"]*+")*+>|[\u2058\u2059]|[^<\u2058\u2059]++|<')
TASK = re.compile(r"\[[ xX]\][ \t]")
CLASSES = frozenset({"cite", "cite gone", "nowrap", "table"})
TAGS = frozenset(
    {"p", "h3", "h4", "strong", "em", "s", "code", "pre", "blockquote", "ul", "ol", "li", "hr", "br"}
    | {"table", "thead", "tbody", "tr", "th", "td", "a", "span", "div"}  # no img
)
ATTRIBUTES = {
    "a": {"href", "class", "data-source", "aria-label", "title"},
    "span": {"class"},
    "div": {"class", "tabindex", "role", "aria-label"},
    "ol": {"start"},
    "pre": {"tabindex"},
    "th": {"scope"},
}


@dataclass(frozen=True, slots=True)
class Chip:
    """What a citation of one source is called; without a name the reader may not open it (any more)."""

    name: str = ""  # Working abroad policy, page 4


@dataclass
class Citations:
    """The sources that an answer may cite, and the numbers its citations have so far.

    `position` is the answer's in its conversation; `chips` has every label of the answer's sources, with an
    empty Chip where the source is gone; `order` has the labels that are numbered already.
    """

    position: int = 0
    chips: Mapping[str, Chip] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)

    def read(self, text: str) -> None:
        """Number the citations of the next piece of text, in order of first use."""
        for label in BRACKETS.findall(text):
            if label in self.chips and label not in self.order:
                self.order.append(label)

    def number(self, label: str) -> int | None:
        """From 1; None for what is no citation."""
        return self.order.index(label) + 1 if label in self.order else None

    def chip(self, number: int) -> str:
        """The link to a source, as HTML."""
        chip = self.chips.get(self.order[number - 1], Chip())
        name = chip.name or "a source you can no longer open"
        place = f"{self.position}.{number}"
        gone = "" if chip.name else " gone"
        return (
            f'<a class="cite{gone}" href="?source={place}" data-source="{place}"'
            f' aria-label="{number}: {html.escape(name)}" title="{html.escape(name)}">{number}</a>'
        )


def _cite(state: StateInline, silent: bool) -> bool:
    """Inline rule: `[label]` of a source of this answer."""
    match = BRACKETS.match(state.src, state.pos, state.posMax)
    chip = state.env["chips"].get(match[1]) if match else None
    if match is None or chip is None:
        return False
    if not silent:
        state.push("cite", "", 0).meta = {"html": chip}
    state.pos = match.end()
    return True


def _keep_together(state: StateCore) -> None:
    """Core rule: the last word before a citation, the chip and the punctuation after it stay on one line."""
    for token in state.tokens:
        if token.children and any(child.type == "cite" for child in token.children):
            token.children = _joined(token.children)
        if token.type in ("heading_open", "heading_close"):
            token.tag = "h3" if int(token.tag[1]) <= 3 else "h4"


def _joined(children: Sequence[Token]) -> list[Token]:
    result: list[Token] = []
    index = 0
    while index < len(children):
        if children[index].type != "cite":
            result.append(children[index])
            index += 1
            continue
        chips = []
        while index < len(children) and (children[index].type == "cite" or _between(children, index)):
            chips.append(children[index])
            index += 1
        before = _take_word(result)
        after = _take_punctuation(children[index]) if index < len(children) else ""
        inner = "".join(chip.meta["html"] for chip in chips if chip.type == "cite")
        result.append(
            Token("cite", "", 0, meta={"html": f'<span class="nowrap">{before}{inner}{after}</span>'})
        )
    return result


def _between(children: Sequence[Token], index: int) -> bool:
    """White space between two chips."""
    follows = index + 1 < len(children) and children[index + 1].type == "cite"
    return children[index].type == "text" and not children[index].content.strip() and follows


def _take_word(result: list[Token]) -> str:
    """Cut the last word, with the space after it, off the text before a chip; as HTML."""
    while result and result[-1].type == "text" and not result[-1].content:
        result.pop()
    if not result or result[-1].type != "text":
        return ""
    text = result[-1].content
    match = LAST_WORD.search(text)
    if match is None:
        result[-1].content = text.rstrip() + "\u00a0" if text[-1].isspace() else text
        return ""
    result[-1].content = text[: match.start()]
    return html.escape(match[1]) + (" " if match[2] else "")


def _take_punctuation(token: Token) -> str:
    match = CLOSING.match(token.content) if token.type == "text" else None
    if match is None:
        return ""
    token.content = token.content[match.end() :]
    return html.escape(match[0])


def _render_cite(_: RendererHTML, tokens: Sequence[Token], index: int, __: OptionsDict, ___: EnvType) -> str:
    return str(tokens[index].meta["html"])


def _render_image(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    return html.escape(renderer.renderInlineAsText(tokens[index].children or [], options, env))


def _render_table(_: RendererHTML, tokens: Sequence[Token], index: int, __: OptionsDict, ___: EnvType) -> str:
    """Wide tables scroll in a region of their own, which the keyboard reaches."""
    head: list[str] = []
    for token, content in zip(tokens[index:], tokens[index + 1 :], strict=False):
        if token.type == "thead_close":
            break
        if token.type == "th_open":
            head.append(content.content.strip())
    label = html.escape(f"Table: {', '.join(filter(None, head))}"[:120])
    return f'<div class="table" tabindex="0" role="group" aria-label="{label}"><table>\n'


def _render_table_close(*_: Any) -> str:
    return "</table></div>\n"


def _render_fence(_: RendererHTML, tokens: Sequence[Token], index: int, *__: Any) -> str:
    """Long lines scroll; the keyboard can reach them."""
    return f'<pre tabindex="0"><code>{html.escape(tokens[index].content)}</code></pre>\n'


def _render_th(*_: Any) -> str:
    return '<th scope="col">'


@functools.cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])
    # Definitions would let one block change another's brackets; indented code is nearly always a mistake.
    parser.disable(["reference", "code", "html_block", "html_inline"])
    parser.validateLink = lambda url: bool(LINK.match(url.strip()))  # type: ignore[method-assign]
    parser.inline.ruler.before("link", "cite", _cite)
    parser.core.ruler.push("keep_together", _keep_together)
    for name, rule in {
        "cite": _render_cite,
        "image": _render_image,
        "table_open": _render_table,
        "table_close": _render_table_close,
        "th_open": _render_th,
        "fence": _render_fence,
    }.items():
        parser.add_render_rule(name, rule)
    return parser


def _attribute(_: str, name: str, value: str) -> str | None:
    if name == "class" and value not in CLASSES:
        return None
    return value


@functools.cache
def _cleaner() -> nh3.Cleaner:
    return nh3.Cleaner(
        tags=set(TAGS),
        attributes=ATTRIBUTES,
        attribute_filter=_attribute,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )


def render_block(text: str, citations: Citations) -> str:
    """One block as safe HTML, one too long as it is; its citations are numbered on from those before."""
    citations.read(text)
    if len(text) > LONGEST_BLOCK:
        return f"<p>{html.escape(text.strip())}</p>"
    numbers = {label: citations.number(label) for label in BRACKETS.findall(text)}
    chips = ((label, citations.chip(number)) for label, number in numbers.items() if number)
    return _rendered(text, tuple(chips))


@functools.lru_cache(LATEST_BLOCKS)
def _rendered(text: str, chips: tuple[tuple[str, str], ...]) -> str:
    """Those of one answer are wanted by all of its readers, at about the same time."""
    rendered = _cleaner().clean(_parser().render(text, {"chips": dict(chips)})).strip()
    return _underlined(rendered) if MARK_START in text else rendered


def with_marks(text: str, ranges: Sequence[tuple[int, int]]) -> str:
    """The text with marks around these ranges, which :func:`render` underlines: statements without proof.

    The ranges are in order and each lies within one block, behind the mark of a list, a quotation or a row.
    """
    text = text.replace(MARK_START, "\ufffd").replace(MARK_END, "\ufffd")
    parts: list[str] = []
    done = 0
    for start, end in ranges:
        task = TASK.match(text, start, end)
        first = task.end() if task else start
        parts += [text[done:first], MARK_START, text[first:end], MARK_END]
        done = end
    parts.append(text[done:])
    return "".join(parts)


def _underlined(rendered: str) -> str:
    """Safe HTML with an element around each piece of text between two marks, which cross other elements."""
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
    """A whole text as safe HTML, block by block."""
    return "\n".join(filter(None, (render_block(block, citations) for block in split(text))))


class BlockRenderer:
    """Renders an answer while it arrives; the blocks joined are what :func:`render` makes of the whole."""

    def __init__(self, citations: Citations) -> None:
        self.citations = citations
        self._splitter = BlockSplitter()

    def feed(self, text: str) -> list[str]:
        """The blocks that this text finished, as safe HTML."""
        return self._rendered(self._splitter.feed(text))

    def finish(self) -> list[str]:
        return self._rendered(self._splitter.finish())

    @property
    def unfinished(self) -> int:
        """How many characters the unfinished block has."""
        return self._splitter.unfinished

    @property
    def tail(self) -> str:
        """The unfinished block as plain text, without the marks that will become something else."""
        return plain(self._splitter.tail, self.citations)

    def _rendered(self, blocks: Iterable[str]) -> list[str]:
        return list(filter(None, (render_block(block, self.citations) for block in blocks)))


def plain(text: str, citations: Citations) -> str:
    """Unfinished markdown as it may be shown: citations by number, a half-written one not at all.

    What has become too long for a block is shown as it is, now as later.
    """
    if len(text) > LONGEST_BLOCK:
        return text
    preview = Citations(citations.position, citations.chips, list(citations.order))
    preview.read(text)

    def numbered(match: re.Match[str]) -> str:
        number = preview.number(match[1])
        return match[0] if number is None else f"[{number}]"

    return MARKS.sub("", BRACKETS.sub(numbered, OPEN_BRACKET.sub("", text))).rstrip("*#")


FENCE = re.compile(r"[ \t]*(`{3,}(?=[^`]*$)|~{3,})")
LIST_ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")


class BlockSplitter:
    """Fed pieces of text, it gives back each block as soon as no later text can change it.

    A block ends at a blank line outside a fence; a list goes on for as long as further items or indented
    lines follow, so it ends only with the first line after it.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []  # of the current block, complete ones
        self._line = ""  # the one that is being written
        self._fence = ""
        self._list = False
        self._blank = False  # the current block, a list, has been followed by a blank line

    @property
    def tail(self) -> str:
        """The unfinished block."""
        return "".join(self._lines) + self._line

    @property
    def unfinished(self) -> int:
        """How many characters the unfinished block has."""
        return sum(map(len, self._lines)) + len(self._line)

    def feed(self, text: str) -> list[str]:
        """The blocks that this text finished."""
        if "\n" not in text:
            self._line += text
            return []
        *lines, self._line = (self._line + text).split("\n")
        finished = (self._take(line + "\n") for line in lines)
        return [block for block in finished if block]

    def finish(self) -> list[str]:
        """The rest, at the end of the text."""
        rest = [self._take(self._line), self._cut()]
        self._line = ""
        return [block for block in rest if block]

    def _take(self, line: str) -> str:
        """Add a line; the block that ends before it or with it, if any."""
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
    """All blocks of a text that is whole."""
    splitter = BlockSplitter()
    return splitter.feed(text) + splitter.finish()
