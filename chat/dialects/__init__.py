"""The published protocols: one module each, all pure.

A dialect turns a body into a ChatRequest, and events into the objects that its document describes. A wire
field's name stands in its dialect's module and nowhere else.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from chat.events import Event, Json, Whole
from chat.requests import ChatRequest

from .rag_chat import RagChat


class Encoder(Protocol):
    """The state of one stream."""

    def encode(self, event: Event) -> list[Json]:
        """The chunks that this event causes: none, one or several."""
        ...


class Dialect(Protocol):
    """One protocol."""

    stream_type: str  # media type of a stream

    def parse(self, body: Any) -> ChatRequest:
        """Raises InvalidRequest."""
        ...

    def encoder(self) -> Encoder: ...

    def whole(self, whole: Whole) -> tuple[int, Json]:
        """HTTP status and body of an answer that is not streamed."""
        ...

    def error(self, message: str) -> Json:
        """The body of a refusal."""
        ...


def choose(headers: Mapping[str, str], body: Any) -> Dialect:
    """The dialect of a request to /chat."""
    decided = isinstance(body, dict) and "session_state" in body
    return RagChat(decided=decided)
