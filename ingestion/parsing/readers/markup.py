"""Markdown texts by heading."""

import html
import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from ingestion.parsing.encodings import decode
from ingestion.parsing.sections import Contents, Limits, one_line, space_for

from . import web
from .outline import Outline
from .tables import CELL_CHARACTERS

FRONT_MATTER = re.compile(r"\A---\r?\n(.*?)\r?\n(?:---|\.\.\.)\r?\n", re.DOTALL)
FRONT_TITLE = re.compile(r"^title:(.*)$", re.MULTILINE | re.IGNORECASE)
TAG = re.compile(r"<!--.{0,1000}?-->|<[^<>]{0,1000}>", re.DOTALL)
STRUCK = re.compile(r"<(/?)(?:del|s|strike)(?:\s[^<>]{0,200})?>", re.IGNORECASE)
STRUCK_TEXT = re.compile(STRUCK.pattern + r"[^<]{0,10000}</(?:del|s|strike)>", re.IGNORECASE)
MARK = re.compile(r"[\\`*_\[\]<&!]|~~")
INLINE_CHARACTERS = 1_500
# A text of more than DENSE_CHARACTERS, with more than the share DENSE of markup characters, is not parsed.
DENSE_CHARACTERS, DENSE = 200, 0.4
BLOCKS = MarkdownIt("commonmark").enable("table").disable("inline")
INLINES = MarkdownIt("commonmark").enable("strikethrough")
Environment = dict[str, Any]  # the link targets that the document defines


def read(path: Path, limits: Limits) -> Contents:
    """Read headings, paragraphs and tables of a Markdown text, without markup."""
    text = decode(path.read_bytes())
    title = ""
    if front := FRONT_MATTER.match(text):
        text = text[front.end() :]
        found = FRONT_TITLE.search(front[1])
        title = found[1].strip().strip("\"'").strip() if found else ""

    outline = Outline(limits)
    environment: Environment = {}
    tokens = BLOCKS.parse(text.replace("\x00", ""), environment)
    last_end = max((index for index, token in enumerate(tokens) if _is_html(token, "</table")), default=-1)
    labels = _item_labels(tokens)
    prefix = ""
    skip_until = 0
    for index, token in enumerate(tokens):
        if index < skip_until:
            continue
        if token.type == "heading_open":
            outline.heading(int(token.tag[1:]), _plain(tokens[index + 1].content, environment))
            skip_until = index + 2
        elif token.type == "table_open":
            rows, skip_until = _table(tokens, index, environment)
            outline.table(rows)
        elif token.type == "list_item_open":
            prefix = labels[index]
        elif token.type == "inline":
            outline.paragraph(prefix + _plain(token.content, environment))
            prefix = ""
        elif token.type in ("fence", "code_block"):
            outline.paragraph(token.content)
        elif index <= last_end and _is_html(token, "<table"):
            skip_until = _end_of_html_table(tokens, index, last_end)
            web.fragment(_html(tokens[index:skip_until], environment), outline)
        elif token.type == "html_block":
            outline.paragraph(html.unescape(TAG.sub(" ", STRUCK_TEXT.sub(" ", token.content))))
    outline.find_lone_titles()
    return outline.titled(title)


def _item_labels(tokens: Sequence[Token]) -> dict[int, str]:
    """The label of each list item, by its index among the tokens.

    Only the first number of a list counts, as in all renderers: many lists are written as “1. 1. 1.”.
    """
    labels = {}
    lists: list[Iterator[int] | None] = []  # the open lists, with the numbers that follow
    for index, token in enumerate(tokens):
        if token.type == "ordered_list_open":
            lists.append(itertools.count(int(token.attrs.get("start", 1))))
        elif token.type == "bullet_list_open":
            lists.append(None)
        elif token.type in ("ordered_list_close", "bullet_list_close"):
            lists.pop()
        elif token.type == "list_item_open":
            numbers = lists[-1]
            labels[index] = "- " if numbers is None else f"{next(numbers)}. "
    return labels


def _is_html(token: Token, tag: str) -> bool:
    return token.type == "html_block" and tag in token.content.lower()


def _end_of_html_table(tokens: Sequence[Token], start: int, last_end: int) -> int:
    """The index after the table in HTML that opens at `start`; blank lines divide it into several tokens."""
    depth = 0
    for index in range(start, last_end + 1):
        if tokens[index].type == "html_block":
            content = tokens[index].content.lower()
            depth += content.count("<table") - content.count("</table")
        if depth <= 0:
            return index + 1
    return last_end + 1


def _html(tokens: Sequence[Token], environment: Environment) -> str:
    """The tokens as HTML."""
    for token in tokens:
        if token.type == "inline":
            token.children = [Token("text", "", 0, content=_plain(token.content, environment))]
    return str(BLOCKS.renderer.render(tokens, BLOCKS.options, environment))


def _table(tokens: Sequence[Token], start: int, environment: Environment) -> tuple[list[list[str]], int]:
    """The cells of the table that opens at `start`, and the index after it."""
    rows: list[list[str]] = []
    for index in range(start, len(tokens)):
        token = tokens[index]
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline" and rows:
            rows[-1].append(one_line(_plain(token.content, environment), CELL_CHARACTERS))
        elif token.type == "table_close":
            return rows, index + 1
    return rows, len(tokens)


def _plain(content: str, environment: Environment) -> str:
    """The text of a paragraph, without struck text and the markup of emphasis, links and code."""
    words = []
    struck = 0  # nesting depth of elements whose text is struck
    for part in _parts(content):
        if not MARK.search(part):
            words.append(part.replace("\n", " "))
            continue
        if len(part) > DENSE_CHARACTERS and len(MARK.findall(part)) > len(part) * DENSE:
            words.append(MARK.sub("", part))
            continue
        for child in INLINES.parseInline(part, environment)[0].children or []:
            if child.type in ("s_open", "s_close"):
                struck = max(0, struck + child.nesting)
            elif tag := STRUCK.fullmatch(child.content) if child.type == "html_inline" else None:
                struck = max(0, struck + (-1 if tag[1] else 1))
                words.append(" ")
            elif struck:
                words.append(space_for(child.content))
            elif child.type in ("text", "code_inline", "image"):
                words.append(child.content)
            elif child.type in ("softbreak", "hardbreak", "html_inline"):
                words.append(" ")
    return "".join(words)


def _parts(content: str) -> Iterator[str]:
    """The text in parts, because parsing time grows with the square of a paragraph's length."""
    start = 0
    while len(content) - start > INLINE_CHARACTERS:
        half = start + INLINE_CHARACTERS // 2
        space = content.rfind(" ", half, start + INLINE_CHARACTERS)
        end = space if space > 0 else start + INLINE_CHARACTERS
        yield content[start:end]
        start = end
    yield content[start:]
