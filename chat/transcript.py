"""The events of one answer, as messages of the portal's socket. No sockets, no database.

Each event becomes one frame `{"seq": …, "place": …, "messages": […]}`, so that a reader who
loses the connection has either all of an event or nothing of it. Messages are

- `{"type": "status", "state", "text"}`: what is being done;
- `{"type": "block", "html", "tail"}`: a finished block, and what stands behind it unfinished;
- `{"type": "tail", "text"}`: text to add behind; `{"type": "retail", "text"}`: to put in its place;
- `{"type": "title", "title"}`: of the conversation.
"""

from collections.abc import Sequence
from typing import Any

from .events import ContextReady, Event, MessageDone, Searching, Started, TextDelta, Thinking, TitleChanged
from .naming import name_of, reading, searching
from .rendering import BlockRenderer, Chip, Citations
from .sources import SourceView

Json = dict[str, Any]

MAX_CHARACTERS_AT_ONCE = 1_000  # that are rendered on the event loop: a hostile block of them takes some ms


class Transcript:
    """One answer as it is being followed; `place` is its position in the conversation."""

    def __init__(self, place: int) -> None:
        self.place = place
        self.seq = 0
        self.blocks: list[str] = []
        self.labels: Sequence[str] = ()  # of all the answer's sources, also of those that are gone
        self._renderer = BlockRenderer(Citations(place))
        self._shown = ""  # the tail as the reader has it
        self._status: Json | None = None
        self._before_thinking: Json | None = None  # the status that comes back with the first text
        self._title = ""

    def takes_long(self, event: Event | None = None) -> bool:
        """Whether adding this event, or finishing, renders so much text that a thread has to do it."""
        added = len(event.text) if isinstance(event, TextDelta) else 0
        return added + self._renderer.unfinished > MAX_CHARACTERS_AT_ONCE

    def add(self, seq: int, event: Event) -> list[Json]:
        """The messages that tell a reader who knows everything before about this event."""
        self.seq = seq
        match event:
            case Started():
                return self._tell("queued", "Starting")
            case Searching(readable):
                return self._tell("queued", searching(readable))
            case ContextReady(sources):
                self._name(sources)
                return self._tell("streaming", reading(len(sources), len({s.document_id for s in sources})))
            case Thinking():
                self._before_thinking = self._status
                return self._tell("streaming", "Thinking")
            case TextDelta(text):
                written = self._written(self._renderer.feed(text))
                if self._before_thinking is None:
                    return written
                self._status, self._before_thinking = self._before_thinking, None
                return [self._status, *written]
            case MessageDone():
                return self._written(self._renderer.finish())
            case TitleChanged(title):
                self._title = title
                return [{"type": "title", "title": title}]
            case _:
                return []

    def finish(self) -> list[Json]:
        """What is left when the text ended without an end: the tail becomes a block."""
        return self._written(self._renderer.finish())

    def reset(self) -> Json:
        """All so far, in one frame, for a reader who comes new."""
        messages: list[Json] = [{"type": "reset", "blocks": self.blocks, "tail": self._shown}]
        if self._status:
            messages.append(self._status)
        if self._title:
            messages.append({"type": "title", "title": self._title})
        return frame(self.seq, messages, self.place)

    def _name(self, sources: tuple[SourceView, ...]) -> None:
        named = {
            source.label: Chip(name_of(source.title, source.label, source.heading)) for source in sources
        }
        chips = dict.fromkeys(self.labels, Chip()) | named
        self._renderer = BlockRenderer(Citations(self.place, chips))

    def _tell(self, state: str, text: str) -> list[Json]:
        self._status = {"type": "status", "state": state, "text": text}
        return [self._status]

    def _written(self, blocks: list[str]) -> list[Json]:
        tail = self._renderer.tail
        shown, self._shown = self._shown, tail
        if blocks:
            self.blocks += blocks
            return [*({"type": "block", "html": html, "tail": ""} for html in blocks[:-1]),
                    {"type": "block", "html": blocks[-1], "tail": tail}]  # fmt: skip
        if tail == shown:
            return []
        if tail.startswith(shown):
            return [{"type": "tail", "text": tail[len(shown) :]}]
        return [{"type": "retail", "text": tail}]


def frame(seq: int, messages: list[Json], place: int) -> Json:
    return {"seq": seq, "place": place, "messages": messages}
