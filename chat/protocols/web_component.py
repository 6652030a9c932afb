"""Chat completions for the published web component, whose requests have `context.approach`.

The component shows `content` and `context.thoughts` as HTML, and guesses what the pieces of a stream mean:

- a piece with an ASCII digit is a step's number, and is not shown;
- a piece with “Next” or “<<” begins the follow-up questions, each of which ends with “>\\n”;
- text in square brackets is the name of a file, below /content;
- in a whole answer, the text after the first colon is a list of steps, and “s:” cuts the text off.

The site therefore sends HTML that triggers none of these by accident. Earlier messages that the component
sends back are converted to plain text again.
"""

import html
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from chat.events import (
    ContextReady,
    Event,
    Failed,
    Finished,
    FollowUps,
    Json,
    MessageDone,
    Rechecked,
    RunResult,
    TextDelta,
)
from chat.requests import EarlierMessage, RunRequest
from chat.sources import SourceView

from .answer_context import delta
from .chat_completions import (
    ChatCompletions,
    ChatCompletionsEncoder,
)
from .single_message import SingleMessageEncoder

MAX_BRACKET = 400  # longer text in brackets is not a citation
# HTML of a list, with the classes of the component's own lists.
LIST = '<ol class="items__list steps"><li class="items__listItem--step">'
NEXT_ITEM = '</li><li class="items__listItem--step">'
END_OF_LIST = "</li></ol>"
# Digits that the component does not interpret as the number of a step. They look like ASCII digits, to which
# NFKC converts them.
DIGITS = {ord("0") + number: chr(0x1D7E2 + number) for number in range(10)}
ASCII_DIGITS = {ord(digit): chr(number) for number, digit in DIGITS.items()}
TEXT = {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;", ord("["): "&lbrack;", ord("]"): "&rbrack;"}
MARKUP = {ord("<"): "&lt;", ord(">"): "&gt;", ord('"'): "&quot;"}
COLON = {ord(":"): "&colon;"}
# Replacements for question texts, which are not shown as HTML.
QUESTION = {ord("<"): "‹", ord(">"): "›", ord("["): "(", ord("]"): ")", ord("\n"): " "}
RATIO = {ord(":"): "∶"}  # a look-alike, because a colon would begin a list of steps
COLONS = {ord("∶"): ":"}

_ENTITY = re.compile(r"&(?=#?\w{1,32};)")
_BRACKET = re.compile(r"\[([^\[\]\n]{1,400})\]")
_OPEN_BRACKET = re.compile(r"\[[^\[\]\n]{0,400}\Z")
_ITEM = re.compile(r"(\d{1,3})[.)][ \t]+")
_MAYBE_ITEM = re.compile(r"[ \t]{0,3}(?:\d{0,3}|\d{1,3}[.)][ \t]{0,9})\Z")
# Positions at which to split words that the component would interpret.
_WORDS = re.compile(r"(?<=N)(?=ext)|(?<=Q)(?=uestion)")
_FILE = re.compile(r"<span hidden>(\[[^<>]*\])</span>")
_QUESTIONS = re.compile(r"<span hidden><<.*", re.S)
_NEW_LINE = re.compile(r"<(?:br|li)\b[^<>]*>")
_TAG = re.compile(r"</?[a-z][^<>]*>")


def is_web_component(body: Any) -> bool:
    """Whether a body was sent by the component."""
    context = body.get("context") if isinstance(body, dict) else None
    return isinstance(context, dict) and "approach" in context


class WebComponent(ChatCompletions):
    def parse(self, body: Any) -> RunRequest:
        request = super().parse(body)
        earlier = (
            EarlierMessage(turn.role, READERS[turn.role](turn.content).strip()) for turn in request.earlier
        )
        # Drop empty messages: the component stores one in place of each error.
        said = tuple(turn for turn in earlier if turn.content)
        return replace(request, question=plain_question(request.question), earlier=said)

    def encoder(self) -> "WebComponentStream":
        return WebComponentStream(WebComponentEncoder(self))

    def content(self, result: RunResult) -> str:
        markup = Markup(streamed=False)
        for message in result.messages:
            markup.cite(message.context.sources if message.context else ())
        shown = "".join([*markup.feed(result.text), *markup.end()])
        questions = "".join(f"<<{question.translate(QUESTION | RATIO)}>>" for question in result.followups)
        return f"{shown}<span hidden>{questions}" if questions else shown

    def message_context(self, context: Json) -> Json:
        return (
            context | {"thoughts": thoughts_as_html(context["thoughts"])}
            if "thoughts" in context
            else context
        )


class WebComponentStream(SingleMessageEncoder):
    """Merges a team's messages; each may also cite the sources of the messages before it."""

    def __init__(self, encoder: "WebComponentEncoder") -> None:
        super().__init__(encoder.encode)
        self._markup = encoder.markup

    def encode(self, event: Event) -> list[Json]:
        if isinstance(event, ContextReady):
            self._markup.cite(event.sources)
        return super().encode(event)


class WebComponentEncoder(ChatCompletionsEncoder):
    """Encodes the text as HTML, with the follow-up questions at its end.

    They come before the chunk with the finish reason.
    """

    def __init__(self, protocol: WebComponent) -> None:
        super().__init__(protocol)
        self.markup = Markup(streamed=True)
        self._ending: list[Event] = []  # MessageDone and later events, held back until after the questions

    def encode(self, event: Event) -> list[Json]:
        match event:
            case TextDelta(text):
                return self._pieces(self.markup.feed(text))
            case MessageDone():
                self._ending = [event]
                return self._pieces(self.markup.end())
            case Rechecked(verification) if self._ending:
                self._ending = [
                    replace(each, verification=verification) if isinstance(each, MessageDone) else each
                    for each in self._ending
                ]
                return []
            case FollowUps(questions):
                return [*self._pieces(question_pieces(questions)), *super().encode(event)]
            case Finished() | Failed() if self._ending:
                events, self._ending = [*self._ending, event], []
                return [chunk for each in events for chunk in super(WebComponentEncoder, self).encode(each)]
            case Failed() | Finished():  # Finished: the answer was stopped
                return [*self._pieces(self.markup.end()), *super().encode(event)]
            case _ if self._ending:
                self._ending.append(event)
                return []
        return super().encode(event)

    def _pieces(self, pieces: Iterator[str]) -> list[Json]:
        return [self._chunk(delta(content=piece)) for piece in pieces]


class Markup:
    """Converts text to HTML, in pieces that the component shows completely.

    `streamed` says which of the component's two parsers will read the text: the parser for complete answers
    accepts digits but no colons, and expects numbered citations.
    """

    def __init__(self, *, streamed: bool) -> None:
        self._files: dict[str, str] = {}  # names of files, by the label that cites them
        self._streamed = streamed
        self._table = TEXT | (DIGITS if streamed else COLON)
        self._held = ""  # text whose meaning depends on the next characters
        self._line_start = True
        self._item = 0  # number of the list item that is being written; 0 outside of lists
        self._breaks = 0  # line ends that have not been written yet
        self._cited: list[str] = []

    def cite(self, sources: Iterable[SourceView]) -> None:
        """Allow citations of these sources from now on."""
        self._files |= {source.label: source.sourcefile for source in sources}

    def feed(self, text: str) -> Iterator[str]:
        text = self._held + text
        self._held = ""
        *lines, last = text.split("\n")
        for line in lines:
            yield from self._line(line)
            self._breaks += 1
            self._line_start = True
        yield from self._beginning(last)

    def end(self) -> Iterator[str]:
        """Yield the text that is still held back, and the end of an open list."""
        held, self._held = self._held, ""
        yield from self._line(held)
        if self._item:
            self._item = 0
            yield END_OF_LIST
        self._breaks = 0

    def _beginning(self, line: str) -> Iterator[str]:
        """Write text of an unfinished line; hold back a possible list number or citation."""
        if self._line_start and _MAYBE_ITEM.match(line):
            self._held = line
            return
        found = _OPEN_BRACKET.search(line, max(0, len(line) - MAX_BRACKET - 1))
        start = found.start() if found else len(line)
        self._held = line[start:]
        yield from self._line(line[:start])

    def _line(self, line: str) -> Iterator[str]:
        if not line:
            return
        if self._line_start:
            found = _ITEM.match(line.lstrip(" \t") if len(line) - len(line.lstrip(" \t")) <= 3 else "")
            if found and int(found[1]) == self._item + 1:
                line = line.lstrip(" \t")[found.end() :]
                yield NEXT_ITEM if self._item else LIST
                self._item += 1
                self._breaks = 0
            elif self._item and self._breaks > 1 and not line[0].isspace():
                self._item = self._breaks = 0
                yield END_OF_LIST
            self._line_start = False
        if self._breaks:
            yield "<br>" * min(self._breaks, 2)
            self._breaks = 0
        yield from self._inline(line)

    def _inline(self, text: str) -> Iterator[str]:
        end = 0
        for found in _BRACKET.finditer(text):
            if found[1] in self._files:
                yield from self._plain(text[end : found.start()])
                yield self._citation(self._files[found[1]])
                end = found.end()
        yield from self._plain(text[end:])

    def _plain(self, text: str) -> Iterator[str]:
        pieces = _WORDS.split(text) if self._streamed else [text]
        yield from (piece.translate(self._table) for piece in pieces if piece)

    def _citation(self, file: str) -> str:
        # Leave a lone "&" unescaped: the component requests the file by the text in the brackets.
        shown = _ENTITY.sub("&amp;", file).translate(MARKUP)
        if self._streamed:
            return f"[{shown.translate(DIGITS)}]"
        if file not in self._cited:
            self._cited.append(file)
        return f'<span hidden>[{shown}]</span><sup class="citation">{self._cited.index(file) + 1}</sup>'


def question_pieces(questions: tuple[str, ...]) -> Iterator[str]:
    """Follow-up questions, in pieces of a stream."""
    for place, question in enumerate(questions, start=1):
        yield "<<"
        yield from _WORDS.split(question.translate(QUESTION | DIGITS))
        yield ">>" if place == len(questions) else ">>\n"


def plain_question(text: str) -> str:
    """The question as it was typed, or selected from the follow-up questions."""
    # The component sanitises a text with “<” as if it were HTML, and thereby escapes it.
    typed = html.unescape(text) if "&lt;" in text else text
    return typed.translate(ASCII_DIGITS | COLONS)


def plain_text(text: str) -> str:
    """The plain text of an earlier message that the component returned as HTML."""
    text = _QUESTIONS.sub("", _FILE.sub(r"\1", text))
    return html.unescape(_TAG.sub("", _NEW_LINE.sub("\n", text))).translate(ASCII_DIGITS).strip()


def thoughts_as_html(thoughts: list[Json]) -> str:
    steps: list[str] = []
    for step in thoughts:
        described = step["description"]
        lines = [
            f"{item['sourcepage']}: {item['content']}" if isinstance(item, dict) else str(item)
            for item in (described if isinstance(described, list) else [described])
        ]
        if step["props"]:
            lines.append(", ".join(f"{name}: {value}" for name, value in step["props"].items()))
        description = "<br>".join(html.escape(line).replace("\n", "<br>") for line in lines)
        steps.append(f"<b>{html.escape(step['title'])}</b><br>{description}<br><br>")
    return "".join(steps)


READERS: Mapping[str, Callable[[str], str]] = {"user": plain_question, "assistant": plain_text}
