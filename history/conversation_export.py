"""Exports a conversation as Markdown, in the reader's language, or JSON."""

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import cycle
from typing import Any, cast
from uuid import UUID

from django.utils.formats import date_format
from django.utils.timezone import localtime
from django.utils.translation import gettext
from markdown_it import MarkdownIt

from chatsite.accounts.principal import Principal

from . import conversation_lists
from .branches import Branches
from .citation_text import (
    CITATION,
    rewrite,
)
from .failures import failure_of
from .models import Conversation, Message, Source
from .recording import timestamp
from .serializers.response_serializers import (
    ConversationRowSerializer,
    StoredMessageSerializer,
    readable_text,
)
from .signatures import signed
from .tally import HEDGES, is_by_model, is_unclear, tally

# A source's URL that can be written as a Markdown link `<URL>`.
ADDRESS = re.compile(r"https?://[^\s<>]+")
# The bracket before the URL of a link (or link reference definition), if the URL's scheme may be other than
# http, https or mailto. This is possible if a colon, an entity or an escape (viewers decode the latter two)
# comes before any slash, “?” or “#”, or if the first 81 characters have none of these. Looking further would
# take minutes in a text that consists of nothing but beginnings of links. A URL in angle brackets may begin
# with a space, and a block quotation has its mark before a URL on a line of its own.
UNSAFE_LINK = re.compile(
    r"(?i)\](?=(?:\(|:)[\s>]*+(?!<?https?:|<?mailto:)(?:<|[^\s)/?#:&\\]{0,80}[:&\\]|[^\s)/?#:&\\]{81}))"
)
# What HTML can begin with, except a Markdown link `<URL>`.
HTML_START = re.compile(r"<(?=[a-zA-Z/!?])(?!(?:https?://|mailto:)[^\s<>`]++>)")
LINE_BREAK = re.compile(r"\r\n?")
BLANK_LINES = re.compile(r"(\n[ \t]*+\n)")
CODE_SPAN = re.compile(r"(`[^`]++`)")
CELL_END = re.compile(r"[|\n]")
# With these, viewers differ in whether a backtick begins code: escapes, links, formulas.
UNCLEAR = re.compile(r"``|\\`|\]\(|\]:|\[\[|\$")
# Some viewers read these as formulas in which nothing is code.
FORMULA_MARKS = ("$$", "\\[")
FENCE_MARKS = ("```", "~~~")
LIST_MARK = re.compile(r"[^>\s]")  # in what comes before a code block on its line


def as_json(principal: Principal, conversation: Conversation) -> dict[str, Any]:
    """The conversation with all messages.

    `messages` has the chosen branch. `otherBranches` has all other messages, if any, each with the id of its
    predecessor as `follows`; null if it has none.
    """
    messages, sources = conversation_lists.messages_shown(principal, conversation, aside=True)
    rows = StoredMessageSerializer(cast(Any, messages), many=True, context={"sources": sources}).data
    body = ConversationRowSerializer(conversation_lists.summaries([conversation])[0]).data | {
        "mode": conversation.mode,
        "createdAt": timestamp(conversation.created_at),
        "messages": [row for message, row in zip(messages, rows, strict=True) if message.chosen],
    }
    if len(body["messages"]) < len(rows):
        branches = Branches(conversation.pk)
        ids = {message.position: row["messageId"] for message, row in zip(messages, rows, strict=True)}
        body["otherBranches"] = [
            row | {"follows": ids.get(branches.before(message.position))}
            for message, row in zip(messages, rows, strict=True)
            if not message.chosen
        ]
    return body


def as_markdown(principal: Principal, conversation: Conversation) -> str:
    """Questions as headings, each followed by its answer and the sources that it cites."""
    return "\n".join(parts_as_markdown(principal, conversation))


def parts_as_markdown(principal: Principal, conversation: Conversation) -> list[str]:
    """The parts of `as_markdown`: the title, and each message."""
    messages, sources = conversation_lists.messages_shown(principal, conversation)
    return messages_as_markdown(conversation.title, conversation.created_at, messages, sources)


def messages_as_markdown(
    title: str, begun_at: datetime, messages: Sequence[Message], sources: Mapping[UUID, Sequence[Source]]
) -> list[str]:
    """The parts of an export, each ending with a line break: the title, and each of these messages.

    `sources` has the sources that the reader may open, by message id.
    """
    named = _line(title) or gettext("Conversation")
    keeps_code = not any(_has_formula(message) for message in messages)
    parts = [_joined([f"# {named}", date_format(localtime(begun_at), gettext("j M Y"))])]
    for message in messages:
        if message.role == Message.Role.USER:
            parts.append(_joined([f"## {_line(message.content)}"]))
        else:
            parts.append(_joined(_answer(message, sources.get(message.pk, ()), keeps_code=keeps_code)))
    return [part for part in parts if part.strip()]


def answer_as_markdown(principal: Principal, conversation: Conversation, position: int) -> str | None:
    """One answer with its sources; None if there is no answer at that position."""
    messages, sources = conversation_lists.messages_shown(principal, conversation, aside=True)
    for message in messages:
        if message.position == position and message.role == Message.Role.ASSISTANT:
            return message_as_markdown(message, sources.get(message.pk, ()))
    return None


def message_as_markdown(answer: Message, readable: Sequence[Source]) -> str:
    """An answer with its sources; `readable` are those that the reader may open."""
    return _joined(_answer(answer, readable, keeps_code=not _has_formula(answer)))


def _joined(blocks: Iterable[str]) -> str:
    return "\n\n".join(filter(None, blocks)) + "\n"


def _has_formula(message: Message) -> bool:
    return any(mark in message.content for mark in FORMULA_MARKS)


def _answer(message: Message, readable: Sequence[Source], *, keeps_code: bool) -> list[str]:
    """The blocks of an answer; with `keeps_code`, code is exported as it is."""
    text = readable_text(message, readable)
    titles = {source.label: source for source in reversed(readable) if source.label in message.citations}
    order = list(dict.fromkeys(match[2] for match in CITATION.finditer(text) if match[2] in titles))
    numbers = {label: number for number, label in enumerate(order, start=1)}
    parts = [f"**{_line(message.agent_name)}**"] if message.agent_name else []
    parts += [f"*{_line(signed(message.verified))}*"] if message.verified else []
    numbered = rewrite(text, numbers, lambda label: f"[{numbers[label]}]").strip()
    parts.append(_harmless(numbered) if keeps_code else _without_markup(numbered))
    failure = failure_of(message)
    if failure:
        parts.append(f"*{gettext(failure[1])}*")
    listed = []
    for label, number in numbers.items():
        source = titles[label]
        place = gettext("page %(place)s") % {"place": source.page} if source.page else source.heading
        name = f"{source.title}, {place}" if place and place != source.title else source.title
        listed.append(f"{number}. {_line(name)}{_address(source)}")
    if listed:
        heading = gettext("Sources")
        parts += [f"### {heading}", "\n".join(listed)]
    statements = message.verification or ()
    by_model, unclear = (sum(map(test, statements)) for test in (is_by_model, is_unclear))
    counted = tally((row["verdict"] for row in statements), by_model, unclear, message.verified)
    lines: list[str] = []
    if order and message.grade:
        lines.append(gettext("Quoted from the documents, without a language model"))
    # If a source was withdrawn, the line about citations would be wrong, and reveal too much.
    if not set(message.citations) - titles.keys() and not message.content.startswith(HEDGES):
        lines += [line for line in (counted.summary, counted.rest) if order]
    parts.append(" · ".join(f"*{line}*" for line in lines if line))
    return parts


def _address(source: Source) -> str:
    """A colon and the document's web address as Markdown; empty if it has no such address."""
    address = source.document.source_url
    return f": <{address}>" if ADDRESS.fullmatch(address) else ""


def _line(text: str) -> str:
    return _without_markup(" ".join(text.split()))


def _harmless(text: str) -> str:
    """Make Markdown safe, so that no viewer loads or runs anything; code is kept as it is.

    A code block that is not closed is closed. It would otherwise extend to the next code block of the export,
    whose code viewers would then take for text.
    """
    text = LINE_BREAK.sub("\n", text)
    if not any(mark in text for mark in FENCE_MARKS):
        return _with_code_spans(text)
    lines = [f"{line}\n" for line in text.split("\n")]
    parts: list[str] = []
    done = 0
    for token in _block_parser().parse("".join(lines)):
        if token.type != "fence" or token.map is None:
            continue
        start, end = token.map
        parts += [_with_code_spans("".join(lines[done:start])), _without_markup(lines[start])]
        parts += lines[start + 1 : end]
        done = end
        # The lines of a closed block are its content, the line that opens it, and the one that closes it.
        if end == len(lines) and token.content.count("\n") == end - start - 1:
            before = lines[start][: lines[start].index(token.markup)]
            parts.append(f"{LIST_MARK.sub(' ', before)}{token.markup}\n")
    parts.append(_with_code_spans("".join(lines[done:])))
    return "".join(parts)[:-1]


@functools.cache
def _block_parser() -> MarkdownIt:
    """A parser that finds blocks only; outside of code, HTML is replaced."""
    parser = MarkdownIt("commonmark").disable(["html_block"])
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def _with_code_spans(text: str) -> str:
    """Make text between code blocks safe, and keep code spans where every viewer finds the same.

    These are the code spans of paragraphs in which backticks are single, and each line, or cell of a table,
    has an even number of them. How a viewer divides such a paragraph into lists, cells or headings makes no
    difference.
    """
    if "`" not in text:
        return _without_markup(text)
    return "".join(map(_paragraph, BLANK_LINES.split(text)))


def _paragraph(text: str) -> str:
    if UNCLEAR.search(text) or any(cell.count("`") % 2 for cell in CELL_END.split(text)):
        return _without_markup(text)
    return "".join(
        part if is_code else _without_markup(part)
        for part, is_code in zip(CODE_SPAN.split(text), cycle((False, True)))
    )


def _without_markup(text: str) -> str:
    """Text without HTML, images, and links other than relative, http, https and mailto ones.

    Unsafe characters are replaced by entities, not escaped by backslashes: after another backslash, a
    backslash escapes nothing. Because viewers decode entities in URLs, an unsafe link is disabled by
    replacing the bracket before its URL; the link is then shown as text.
    """
    text = HTML_START.sub("&lt;", text).replace("![", "&#33;[")
    return UNSAFE_LINK.sub("&#93;", text)
