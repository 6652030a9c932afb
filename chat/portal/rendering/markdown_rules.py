"""The Markdown parser of answers: CommonMark with tables, citations, footnotes, tasks and formulas.

Links are checked during parsing, and images become their alternative text. TeX formulas between \\( \\),
\\[ \\], $ $ or $$ $$ become MathML.
"""

import functools
import html
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from urllib.parse import urlsplit

from django.utils.translation import gettext
from latex2mathml.converter import convert
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from chat.portal.citing.passage_parts import MAX_STACKED_ROWS, fits_phone, is_wide

from .code_blocks import code_block
from .open_block import close_last_inline, close_pairs

LINK = re.compile(r"(?:https?|mailto):", re.IGNORECASE)
LAST_WORD = re.compile(r"(\S{1,30}+)([ \t\n]*+)$")
CLOSING = re.compile(r"^[.,;:!?)\]’”»…]+")
BRACKETS = re.compile(r"\[([^\[\]\n]+)\](?!\()")
FOOTNOTE = re.compile(r"\[\^([\w-]{1,40})\](:[ \t]*+)?")
TASK = re.compile(r"\[([ xX])\][ \t]+")
LONGEST_FORMULA = 2_000  # characters; longer or invalid formulas are shown as text
LATEST_FORMULAS = 256  # converted formulas in the cache
FORMULA_PAIRS = (("$$", "$$"), ("\\[", "\\]"), ("\\(", "\\)"), ("$", "$"))

CHIP_WIDTH = 3  # width of a citation in a cell, in characters
ROLES = {
    "table_open": "table",
    "thead_open": "rowgroup",
    "tbody_open": "rowgroup",
    "tr_open": "row",
    "th_open": "columnheader",
    "td_open": "cell",
}


@functools.cache
def parser() -> MarkdownIt:
    """The parser, which renders with `Renderer`.

    Its environment contains `chips` (citations as HTML, by label), `position` (of the answer), `first` (the
    number of the first chip in the text) and `open` (whether the text is unfinished).
    """
    found = MarkdownIt("commonmark", {"html": False, "linkify": False}, renderer_cls=Renderer)
    found.enable(["table", "strikethrough"])
    # Disabled: link reference definitions, because they could turn brackets in other blocks into links;
    # indented code, because it is nearly always a mistake; HTML.
    found.disable(["reference", "code", "html_block", "html_inline"])
    found.validateLink = lambda url: bool(LINK.match(url.strip()))  # type: ignore[method-assign]
    found.inline.ruler.before("escape", "formula", _formula)
    found.inline.ruler.before("link", "footnote", _footnote)
    found.inline.ruler.before("link", "cite", _cite)
    found.inline.ruler2.after("balance_pairs", "close_pairs", close_pairs)
    found.core.ruler.before("inline", "close_last_inline", close_last_inline)
    found.core.ruler.push("finish", _finish)
    return found


class Renderer(RendererHTML):
    """Renders certain types of tokens differently from CommonMark."""

    def html(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return str(tokens[idx].meta["html"])

    cite = html
    formula = html

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return html.escape(self.renderInlineAsText(tokens[idx].children or [], options, env))

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return code_block(tokens[idx].info, tokens[idx].content, coloured=not env.get("open"))

    def table_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Put a table into a scrollable region that can be focused with the keyboard."""
        head: list[str] = []
        for token, content in zip(tokens[idx:], tokens[idx + 1 :], strict=False):
            if token.type == "thead_close":
                break
            if token.type == "th_open":
                head.append(content.content.strip())
        label = html.escape((gettext("Table: %(head)s") % {"head": ", ".join(filter(None, head))})[:120])
        is_stacked = "role" in tokens[idx].attrs
        kind, role = ("table stacked", ' role="table"') if is_stacked else ("table", "")
        block, name = "block", gettext("Table")
        if is_wide(len(head)):
            block, name = "block wide", gettext("Table with %(count)s columns") % {"count": len(head)}
        return (
            f'<div class="{block}"><div class="block-head"><span>{name}'
            '</span><button class="button quiet" type="button" data-copies="table" hidden>'
            + gettext("Copy as CSV")
            + "</button></div>"
            f'<div class="{kind}" tabindex="0" role="group" aria-label="{label}"><table{role}>\n'
        )

    def table_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return "</table></div></div>\n"

    def th_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return f'<th scope="col"{self.renderAttrs(tokens[idx])}>'


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


def _footnote(state: StateInline, silent: bool) -> bool:
    """Inline rule: `[^1]` becomes a link to the note that begins with `[^1]:`."""
    match = FOOTNOTE.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    begins_line = state.pos == 0 or state.src[state.pos - 1] == "\n"
    is_note = bool(match[2]) and begins_line
    if not silent:
        if is_note and state.pos:
            state.push("hardbreak", "br", 0)
        name = html.escape(match[1])
        place = f"fn-{state.env['position']}-{name}"
        mark = f'<span class="note-mark" id="{place}">{name}</span> '
        link = f'<sup><a href="#{place}">{name}</a></sup>'
        state.push("html", "", 0).meta = {"html": mark if is_note else link}
    state.pos = match.end() if is_note else match.end(1) + 1
    return True


def _formula(state: StateInline, silent: bool) -> bool:
    """Inline rule: a complete formula."""
    src, start = state.src, state.pos
    if src[start] not in "$\\":
        return False
    for opening, closing in FORMULA_PAIRS:
        if not src.startswith(opening, start):
            continue
        first = start + len(opening)
        end = _end_of_formula(state, first, closing)
        tex = src[first:end] if end > first else ""
        if not tex.strip():
            continue
        # A single dollar sign may also precede an amount of money.
        is_money = src[first].isspace() or src[end - 1].isspace() or src[end + 1 : end + 2].isdigit()
        if opening == "$" and (is_money or "\n\n" in tex):
            continue
        if not silent:
            display = opening in ("$$", "\\[")
            found = mathml(tex.strip(), display=display)
            if display and found.startswith("<math"):
                # A wide formula is scrolled; the attributes let the keyboard do so, too.
                name = html.escape(gettext("Formula"))
                opened = f'<span class="formula" tabindex="0" role="group" aria-label="{name}">'
                found = f"{opened}{found}</span>"
            state.push("formula", "", 0).meta = {"html": found}
        state.pos = end + len(closing)
        return True
    return False


def _end_of_formula(state: StateInline, first: int, closing: str) -> int:
    """The position of `closing`, or -1 if it is absent or too far. Absence is remembered."""
    absent: set[tuple[str, str]] = state.env.setdefault("unclosed", set())
    key = (closing, state.src)
    if key in absent:
        return -1
    end = state.src.find(closing, first, first + LONGEST_FORMULA)
    if end < 0 and state.src.find(closing, first) < 0:
        absent.add(key)
    return end


@functools.lru_cache(LATEST_FORMULAS)
def mathml(tex: str, *, display: bool = False) -> str:
    """A formula as MathML.

    Callers must sanitize the result, because the converter escapes nothing.
    """
    if len(tex) > LONGEST_FORMULA:
        return f"<code>{html.escape(tex)}</code>"
    try:
        # Add a space after `<`, so that it opens no element; spaces have no meaning in a formula.
        return str(convert(tex.replace("<", "< "), display="block" if display else "inline"))
    except Exception:  # an incomplete or invalid formula: the library raises many kinds of exceptions
        return f"<code>{html.escape(tex)}</code>"


def _finish(state: StateCore) -> None:
    """Core rule: changes that need all tokens."""
    cites = (child for token in state.tokens for child in token.children or () if child.type == "cite")
    for number, cite in enumerate(cites, start=state.env["first"]):
        # Each chip belongs to one statement, so its link differs from those of the source's other chips.
        cite.meta["html"] = cite.meta["html"].replace(
            '" data-source', f'&amp;s={number}#marked" data-source', 1
        )
    _move_chips(state.tokens)
    for place, token in enumerate(state.tokens):
        if token.children:
            if any(child.type == "cite" for child in token.children):
                token.children = _joined(token.children)
            if any(child.type == "link_close" for child in token.children):
                token.children = list(_with_hosts(token.children))
            if place > 1 and state.tokens[place - 2].type == "list_item_open":
                _mark_task(token.children)
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(max(int(token.tag[1]) + 1, 3), 5)}"
        if token.type in ("th_open", "td_open"):
            align = str(token.attrs.pop("style", "")).rpartition(":")[2]
            if align in ("right", "center"):
                token.attrs["class"] = "to-end" if align == "right" else "to-middle"
    _label_cells(state.tokens)


def _move_chips(tokens: Sequence[Token]) -> None:
    """In a wide table, move a row's chips to the first cell, which stays visible on scrolling.

    Rows with chips in several cells, or with an empty first cell, do not change.
    """
    columns = 0
    cells: list[list[Token]] = []
    for token, after in pairwise(tokens):
        if token.type == "table_open":
            columns = 0
        elif token.type == "th_open":
            columns += 1
        elif token.type == "tr_open":
            cells = []
        elif token.type == "td_open":
            cells.append(after.children if after.children is not None else [])
        elif token.type == "tr_close" and is_wide(columns):
            cited = [cell for cell in cells if any(child.type == "cite" for child in cell)]
            if len(cited) == 1 and cited[0] is not cells[0] and cells[0]:
                chips = [child for child in cited[0] if child.type == "cite"]
                cited[0][:] = [child for child in cited[0] if child.type != "cite"]
                cells[0] += [Token("text", "", 0, content=" "), *chips]


def _cell_widths(table: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """The column of each cell, and its width in characters."""
    column = 0
    for cell, after in pairwise(table):
        if cell.type == "tr_open":
            column = 0
        elif cell.type in ("th_open", "td_open"):
            children = after.children or ()
            yield column, sum(CHIP_WIDTH if each.type == "cite" else len(each.content) for each in children)
            column += 1


def _label_cells(tokens: Sequence[Token]) -> None:
    """Label the cells of tables that become “column: value” lines on narrow pages.

    These are tables that do not fit on a phone, except long ones with so many columns that they scroll. On
    narrow pages, the stylesheet removes their table layout. Some browsers then no longer expose the table to
    screen readers; explicit roles prevent that.
    """
    for place, token in enumerate(tokens):
        if token.type != "table_open":
            continue
        end = next(at for at in range(place, len(tokens)) if tokens[at].type == "table_close")
        table = tokens[place:end]
        names = [
            "".join(child.content for child in after.children or () if child.type in ("text", "code_inline"))
            for cell, after in pairwise(table)
            if cell.type == "th_open"
        ]
        rows = sum(each.type == "tr_open" for each in table) - 1
        scrolls = is_wide(len(names)) and rows > MAX_STACKED_ROWS
        if not rows or scrolls or fits_phone(_cell_widths(table)):
            continue
        column = 0
        for each in table:
            if role := ROLES.get(each.type):
                each.attrs["role"] = role
            if each.type == "tr_open":
                column = 0
            elif each.type == "td_open":
                each.attrs["data-label"] = names[column].strip()
                column += 1


def _with_hosts(children: Sequence[Token]) -> Iterator[Token]:
    """Add the host or e-mail address after each link, unless the link's text is its URL."""
    opened: list[tuple[Token, str]] = []
    text = ""
    for token in children:
        yield token
        if token.type == "link_open":
            token.attrs.pop("title", None)
            opened.append((token, text))
        elif token.type == "link_close" and opened:
            link, before = opened.pop()
            address = str(link.attrs["href"])
            if text[len(before) :] in (address, address.removeprefix("mailto:")):
                continue
            host = address
            with suppress(ValueError):
                parts = urlsplit(address)  # its host is in ASCII (Punycode)
                host = parts.path if parts.scheme == "mailto" else parts.hostname or address
            shown = f' <span class="host">({html.escape(host)})</span>'
            yield Token("html", "", 0, meta={"html": shown})
        elif token.type == "text":
            text += token.content


def _mark_task(children: list[Token]) -> None:
    first = children[0]
    match = TASK.match(first.content) if first.type == "text" else None
    if match:
        done = match[1] != " "
        first.content = first.content[match.end() :]
        name = gettext("Done") if done else gettext("To do")
        box = f'<span class="task{" done" if done else ""}" role="img" aria-label="{name}"></span> '
        children.insert(0, Token("html", "", 0, meta={"html": box}))


def _joined(children: Sequence[Token]) -> list[Token]:
    """The tokens, with each chip joined to the word before and the punctuation after it.

    No line break can separate them.
    """
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
        inner = "".join(chip.meta["html"] for chip in chips if chip.type == "cite")
        following = children[index] if index < len(children) else None
        after = ""
        if following and following.type == "text" and (match := CLOSING.match(following.content)):
            after = html.escape(match[0])
            following.content = following.content[match.end() :]
        result.append(
            Token("cite", "", 0, meta={"html": f'<span class="nowrap">{before}{inner}{after}</span>'})
        )
    return result


def _between(children: Sequence[Token], index: int) -> bool:
    """Whether the token at `index` is white space between two chips."""
    follows = index + 1 < len(children) and children[index + 1].type == "cite"
    return children[index].type == "text" and not children[index].content.strip() and follows


def _take_word(result: list[Token]) -> str:
    """Remove the last word before a chip, with the space after it, from the text; return it as HTML."""
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
