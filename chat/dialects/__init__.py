"""The published protocols: one module each, all pure.

A dialect turns a body into a ChatRequest, and events into the values that its document describes. A wire
field's name stands in its dialect's module, or in one that several documents share, and nowhere else.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from chat.events import Event, Json, Whole
from chat.requests import ChatRequest

from .ai_chat_protocol import AiChatProtocol
from .chat_completions import ChatCompletions
from .chat_ui import ChatUi, ChatUiMinimal, TeamChatUi, TeamChatUiMinimal
from .openai import OpenAI, model, models
from .openai_completions import OpenAICompletions
from .rag_chat import RagChat
from .web_component import WebComponent, is_web_component

__all__ = [
    "AiChatProtocol", "ChatCompletions", "ChatUi", "ChatUiMinimal", "Dialect", "Encoder", "OpenAI",
    "OpenAICompletions", "RagChat", "TeamChatUi", "TeamChatUiMinimal",
    "choose", "choose_streamed", "model", "models",
]  # fmt: skip


class Encoder(Protocol):
    """The state of one stream."""

    def encode(self, event: Event) -> list[Any]:
        """The chunks that this event causes: none, one or several."""
        ...


class Dialect(Protocol):
    """One protocol."""

    stream_type: str  # media type of a stream
    gap: float  # seconds that lie at least between two chunks of a stream

    def parse(self, body: Any) -> ChatRequest:
        """Raises InvalidRequest."""
        ...

    def encoder(self) -> Encoder: ...

    def whole(self, whole: Whole) -> tuple[int, Any]:
        """HTTP status and body of an answer that is not streamed."""
        ...

    def error(self, message: str, code: str = "", *, status: int = 400, member: str = "") -> Json:
        """The body of a refusal; `member` names what of the request is wrong."""
        ...


def choose(headers: Mapping[str, str], body: Any) -> Dialect:
    """The dialect of a request to /chat or /ask."""
    if isinstance(body, dict) and "stream" in body and not _has_attachments(headers):
        return WebComponent() if is_web_component(body) else ChatCompletions()
    return choose_streamed(headers, body)


def choose_streamed(headers: Mapping[str, str], body: Any) -> Dialect:
    """The dialect of a request to /chat/stream or /ask/stream, where `stream` in the body says nothing."""
    members = body if isinstance(body, dict) else {}
    if _has_attachments(headers):
        return AiChatProtocol()
    if "session_state" in members:
        return RagChat()
    if "sessionState" in members or "application/jsonl" in headers.get("Accept", "").lower():
        return AiChatProtocol()
    return RagChat(decided=False)


def _has_attachments(headers: Mapping[str, str]) -> bool:
    return headers.get("Content-Type", "").lower().startswith("multipart/form-data")
