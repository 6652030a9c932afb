"""The Chat UI's API: each event of a stream carries the whole text so far, ten times a second at the most."""

import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote
from uuid import UUID

from chat import errors
from chat.events import (
    ContextReady,
    Event,
    Failed,
    Finished,
    Json,
    MessageDone,
    SourceView,
    Started,
    TextDelta,
    Whole,
)
from chat.requests import ChatRequest, InvalidRequest

from . import reading
from .asking import turns

INTERVAL = 0.1  # seconds between two events of one message
SNIPPET = 300  # characters


class ChatUi:
    """Stateless unless the body names a conversation: its client saves through /chat-history itself."""

    stream_type = "text/event-stream"

    def parse(self, body: Any) -> ChatRequest:
        if not isinstance(body, dict):
            raise InvalidRequest("The body must be a JSON object.")
        *earlier, last = turns(body.get("messages"))
        if last.role != "user":
            raise InvalidRequest("The last message must be the user’s.", "messages")
        conversation = _conversation(body.get("conversationId"))
        return ChatRequest(
            last.content, conversation, earlier=tuple(earlier), listed=conversation is not None
        )

    def encoder(self) -> "ChatUiEncoder":
        return ChatUiEncoder()

    def whole(self, whole: Whole) -> tuple[int, Any]:
        encoder = ChatUiEncoder(clock=lambda: 0.0)
        if isinstance(whole.end, Failed) and not whole.text:
            return errors.status(whole.end.code), self.error(errors.words(whole.end.code), whole.end.code)
        last: Json = {}
        for event in (whole.started, whole.context, TextDelta(whole.text), whole.done, whole.end):
            for chunk in encoder.encode(event) if event else ():
                last = chunk
        return 200, last

    def error(self, message: str, code: str = "") -> Json:
        return {"error": {"message": message, "code": code or "invalid_request"}}


class ChatUiEncoder:
    """One message; `clock` gives seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._started: Started | None = None
        self._sources: tuple[SourceView, ...] = ()
        self._cited: tuple[str, ...] = ()
        self._text: list[str] = []
        self._told = float("-inf")

    def encode(self, event: Event) -> list[Json]:
        match event:
            case Started():
                self._started = event
                return [self._message("processing")]
            case ContextReady():
                self._sources = event.sources
            case TextDelta():
                self._text.append(event.text)
                if self._clock() - self._told >= INTERVAL:
                    self._told = self._clock()
                    return [self._message("processing")]
            case MessageDone():
                self._cited = event.citations
            case Finished():
                return [self._message("completed")]
            case Failed():
                error = {"message": errors.words(event.code), "code": event.code}
                return [self._message("failed", error)]
        return []

    def _message(self, status: str, error: Json | None = None) -> Json:
        assert self._started is not None
        return {
            "messageId": self._started.answer_id,
            "conversationId": self._started.conversation_id,
            "status": status,
            "role": "assistant",
            "content": "".join(self._text),
            "contentType": "markdown",
            "sources": [_source(source) for source in self._sources if source.label in self._cited],
            "error": error,
            "createdAt": self._started.created_at,
        }


class ChatUiMinimal(ChatUi):
    """The "Minimal Response Format": an array of finished messages."""

    def encoder(self) -> "MinimalEncoder":  # type: ignore[override]
        return MinimalEncoder()

    def whole(self, whole: Whole) -> tuple[int, Any]:
        if whole.end is None or (isinstance(whole.end, Failed) and not whole.text):
            return super().whole(whole)
        assert whole.started is not None
        return 200, [_minimal(whole.started, whole.text)]


class MinimalEncoder:
    """One event for the finished message: the client shows every event as a new one."""

    def __init__(self) -> None:
        self._started: Started | None = None
        self._text: list[str] = []

    def encode(self, event: Event) -> list[Any]:
        match event:
            case Started():
                self._started = event
            case TextDelta():
                self._text.append(event.text)
            case Finished():
                assert self._started is not None
                return [[_minimal(self._started, "".join(self._text))]]
            case Failed():
                return [ChatUi().error(errors.words(event.code), event.code)]
        return []


def _minimal(started: Started, text: str) -> Json:
    return {
        "Role": {"Label": "Assistant"},
        "Items": [{"$type": "TextContent", "Text": text}],
        "ModelId": started.model,
        "Metadata": {"Id": started.answer_id, "CreatedAt": started.created_at},
    }


def _source(source: SourceView) -> Json:
    return {
        "id": f"{source.document_id}-{source.passage_id}",
        "title": source.title,
        "url": f"/content/{quote(source.sourcefile)}{_fragment(source)}",
        "snippet": " ".join(source.content.split())[:SNIPPET],
    }


def _fragment(source: SourceView) -> str:
    return f"#page={source.page}" if source.page else ""


def _conversation(value: Any) -> UUID | None:
    if value is None:
        return None
    try:
        return UUID(reading.a_text(value, "conversationId"))
    except ValueError:
        raise InvalidRequest(errors.words("not_found"), "conversationId", status=404) from None
