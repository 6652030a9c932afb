"""Markdown, and formats that are turned into Markdown first."""

import re
from collections.abc import Sequence
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from .outline import Outline
from .plain import decode
from .sections import Contents, Limits, one_line

FRONT_MATTER = re.compile(r"\A---\r?\n(.*?)\r?\n(?:---|\.\.\.)\r?\n", re.DOTALL)
FRONT_TITLE = re.compile(r"^title:\s*[\"']?(.+?)[\"']?\s*$", re.MULTILINE | re.IGNORECASE)
TAG = re.compile(r"<!--.*?-->|<[^<>]{0,1000}>", re.DOTALL)


def read(path: Path, limits: Limits) -> Contents:
    text = decode(path.read_bytes())
    title = ""
    if front := FRONT_MATTER.match(text):
        text = text[front.end() :]
        found = FRONT_TITLE.search(front[1])
        title = found[1] if found else ""
    outline = outline_of(text)
    return Contents(outline.close(), title or outline.first_heading)


def outline_of(text: str) -> Outline:
    """Headings, paragraphs and tables of a Markdown text, without its marks."""
    outline = Outline()
    tokens = MarkdownIt("commonmark").enable("table").parse(text.replace("\x00", ""))
    prefix = ""
    skip_until = 0
    for index, token in enumerate(tokens):
        if index < skip_until:
            continue
        if token.type == "heading_open":
            outline.heading(int(token.tag[1:]), _plain(tokens[index + 1]))
            skip_until = index + 2
        elif token.type == "table_open":
            rows, skip_until = _table(tokens, index)
            outline.table(rows)
        elif token.type == "list_item_open":
            prefix = f"{token.info}. " if token.info else "- "
        elif token.type == "inline":
            outline.paragraph(prefix + _plain(token))
            prefix = ""
        elif token.type in ("fence", "code_block"):
            outline.paragraph(token.content)
        elif token.type == "html_block":
            outline.paragraph(TAG.sub(" ", token.content))
    return outline


def _table(tokens: Sequence[Token], start: int) -> tuple[list[list[str]], int]:
    """The cells of the table that opens at `start`, and the index of what follows it."""
    rows: list[list[str]] = []
    for index in range(start, len(tokens)):
        token = tokens[index]
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline" and rows:
            rows[-1].append(one_line(_plain(token), 20_000))
        elif token.type == "table_close":
            return rows, index + 1
    return rows, len(tokens)


def _plain(token: Token) -> str:
    words = []
    for child in token.children or []:
        if child.type in ("text", "code_inline", "image"):
            words.append(child.content)
        elif child.type in ("softbreak", "hardbreak", "html_inline"):
            words.append(" ")
    return "".join(words)
