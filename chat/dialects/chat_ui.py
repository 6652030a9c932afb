"""The Chat UI's API: each event of a stream carries the whole text so far, ten times a second at the most."""

import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

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
from chat.requests import ChatRequest

from .asking import an_exchange, conversation, images, session

INTERVAL = 0.1  # seconds between two events of one message
SNIPPET = 300  # characters
CODES = {
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    406: "not_acceptable",
    413: "too_large",
    415: "unsupported_media_type",
    429: "rate_limited",
    500: "internal",
}


class ChatUi:
    """Stateless unless the body names a conversation: its client saves through /chat-history itself."""

    stream_type = "text/event-stream"
    gap = INTERVAL  # one client takes whatever arrives at once for one event

    def parse(self, body: Any) -> ChatRequest:
        members = an_exchange(body)
        earlier, question = conversation(members)
        images(members)  # refused: this protocol has none
        named = session(members.get("conversationId"), "conversationId")
        return ChatRequest(question, named, earlier=tuple(earlier), listed=named is not None)

    def encoder(self) -> "ChatUiEncoder":
        return ChatUiEncoder()

    def whole(self, whole: Whole) -> tuple[int, Any]:
        if failed_without_text(whole):
            return _failure(whole)
        encoder = ChatUiEncoder(clock=lambda: 0.0)
        last: Json = {}
        for event in (whole.started, whole.context, TextDelta(whole.text), whole.done, whole.end):
            for chunk in encoder.encode(event) if event else ():
                last = chunk
        return 200, last

    def error(self, message: str, code: str = "", *, status: int = 400, member: str = "") -> Json:
        return {"error": {"message": message, "code": code or CODES.get(status, "invalid_request")}}


def failed_without_text(whole: Whole) -> bool:
    return whole.end is None or (isinstance(whole.end, Failed) and not whole.text)


def _failure(whole: Whole) -> tuple[int, Json]:
    code = whole.end.code if isinstance(whole.end, Failed) else "internal"
    return errors.status(code), ChatUi().error(errors.words(code), code)


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
                self._told = self._clock()
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
                error = ChatUi().error(errors.words(event.code), event.code)
                return [self._message("failed", error["error"]) if self._started else error]
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
    """The "Minimal Response Format": whole an array of messages, streamed one message an event."""

    def encoder(self) -> "MinimalEncoder":  # type: ignore[override]
        return MinimalEncoder()

    def whole(self, whole: Whole) -> tuple[int, Any]:
        if failed_without_text(whole):
            return _failure(whole)
        assert whole.started is not None
        failed = whole.end if isinstance(whole.end, Failed) else None
        return 200, [_minimal(whole.started, whole.text, failed)]


class MinimalEncoder:
    """One event for the finished message: the client shows every event as a new one."""

    def __init__(self) -> None:
        self._started: Started | None = None
        self._text: list[str] = []

    def encode(self, event: Event) -> list[Json]:
        match event:
            case Started():
                self._started = event
            case TextDelta():
                self._text.append(event.text)
            case Finished():
                assert self._started is not None
                return [_minimal(self._started, "".join(self._text))]
            case Failed():
                if self._started is None:
                    return [ChatUi().error(errors.words(event.code), event.code)]
                return [_minimal(self._started, "".join(self._text), event)]
        return []


def _minimal(started: Started, text: str, failed: Failed | None = None) -> Json:
    """Also a failure is a message, with its words as the last item: the client knows nothing else."""
    texts = [text] if text or not failed else []
    told: Json = {}
    if failed:
        texts.append(errors.words(failed.code))
        told = ChatUi().error(errors.words(failed.code), failed.code)
    return {
        "Role": {"Label": "Assistant"},
        "Items": [{"$type": "TextContent", "Text": item} for item in texts],
        "ModelId": started.model,
        "Metadata": {"Id": started.answer_id, "CreatedAt": started.created_at},
        **told,
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
