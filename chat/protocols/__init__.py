"""The published protocols: one module each, without I/O.

A protocol turns a request body into a RunRequest, and events into the values that its specification
describes. The name of a wire field occurs only in the module of its protocol, or in a module that several
protocols share.
"""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from chat.events import Event, Json, RunResult
from chat.requests import RunRequest

from .ai_chat_protocol import AiChatProtocol
from .chat_completions import ChatCompletions
from .chat_ui import (
    ChatUi,
    ChatUiMessages,
    ChatUiMinimal,
    ChatUiWithMessage,
    TeamChatUi,
    TeamChatUiMessages,
    TeamChatUiMinimal,
)
from .openai.openai_chat import OpenAI, model, models
from .openai.openai_completions import OpenAICompletions
from .openai.responses import Responses
from .rag_chat import RagChat
from .rag_chat_2026 import RagChat2026
from .web_component import (
    WebComponent,
    is_web_component,
)

__all__ = [
    "AiChatProtocol",
    "ChatCompletions",
    "ChatProtocol",
    "ChatUi",
    "ChatUiMessages",
    "ChatUiMinimal",
    "ChatUiWithMessage",
    "Encoder",
    "ErrorFormat",
    "NumberedEncoder",
    "OpenAI",
    "OpenAICompletions",
    "RagChat",
    "RagChat2026",
    "Responses",
    "TeamChatUi",
    "TeamChatUiMessages",
    "TeamChatUiMinimal",
    "WebComponent",
    "choose",
    "choose_streamed",
    "is_ai_chat_protocol",
    "model",
    "models",
    "rag_chat",
]  # fmt: skip


class Encoder(Protocol):
    """Encodes the events of one stream."""

    def encode(self, event: Event) -> list[Any]:
        """The chunks for an event, possibly none."""
        ...


@runtime_checkable
class NumberedEncoder(Protocol):
    """Encodes a stream whose chunks have the numbers of the run's events."""

    def numbered(self, number: int, event: Event) -> list[Any]: ...


class ErrorFormat(Protocol):
    """The interface for the format of a protocol's refusals."""

    def error(self, message: str, code: str = "", *, status: int = 400, member: str = "") -> Json:
        """The body of a refusal; `member` is the member of the request that caused it."""
        ...


class ChatProtocol(ErrorFormat, Protocol):
    """The interface of a chat protocol."""

    stream_type: str  # media type of a stream
    gap: float  # minimum seconds between two chunks of a stream

    def parse(self, body: Any) -> RunRequest:
        """The request in a body. Raises InvalidRequest."""
        ...

    def encoder(self) -> Encoder: ...

    def full_response(self, result: RunResult) -> tuple[int, Any]:
        """HTTP status and body of an answer that is not streamed."""
        ...


def choose(headers: Mapping[str, str], body: Any, version: str = "2025") -> ChatProtocol:
    """The protocol of a request to /chat or /ask; `version` is the configured version of RAG chat."""
    if isinstance(body, dict) and "stream" in body and not _has_attachments(headers):
        return WebComponent() if is_web_component(body) else ChatCompletions()
    return choose_streamed(headers, body, version)


def choose_streamed(headers: Mapping[str, str], body: Any, version: str = "2025") -> ChatProtocol:
    """The protocol of a request to /chat/stream or /ask/stream.

    There, `stream` in the body has no effect.
    """
    members = body if isinstance(body, dict) else {}
    if _has_attachments(headers):
        return AiChatProtocol()
    accepts_jsonl = "application/jsonl" in headers.get("Accept", "").lower()
    if "session_state" not in members and ("sessionState" in members or accepts_jsonl):
        return AiChatProtocol()
    return rag_chat(body, version)


def rag_chat(body: Any, version: str) -> RagChat:
    """The RAG chat protocol, in the version of 2025 or 2026.

    If the body has no `session_state`, the answer has the session in both `session_state` and `sessionState`.
    """
    decided = isinstance(body, dict) and "session_state" in body
    return RagChat2026(decided=decided) if version == "2026" else RagChat(decided=decided)


def is_ai_chat_protocol(headers: Mapping[str, str], body: Any, *, streamed: bool) -> bool:
    """Whether a request to /api/chat uses the AI Chat Protocol.

    A client of that protocol accepts JSON, even if it then reads lines of JSON; a client of the Chat UI's
    stream accepts an event stream.
    """
    if _has_attachments(headers) or (isinstance(body, dict) and "sessionState" in body):
        return True
    accepted = _accepted(headers)
    takes_events = not accepted.isdisjoint({"text/event-stream", "text/*", "*/*"})
    return "application/jsonl" in accepted or (streamed and not takes_events)


def chat_ui(headers: Mapping[str, str], body: Any) -> ChatProtocol:
    """The protocol of a request to /api/chat that neither streams nor clearly uses the AI Chat Protocol.

    The published client of the AI Chat Protocol accepts nothing but JSON. As other clients may do so too,
    the answer to such a request without `conversationId` has the members of both protocols.
    """
    named = isinstance(body, dict) and body.get("conversationId") is not None
    return ChatUiWithMessage() if _accepted(headers) == {"application/json"} and not named else ChatUi()


def _accepted(headers: Mapping[str, str]) -> set[str]:
    return {kind.partition(";")[0].strip() for kind in headers.get("Accept", "*/*").lower().split(",")}


def _has_attachments(headers: Mapping[str, str]) -> bool:
    return headers.get("Content-Type", "").lower().startswith("multipart/form-data")
