"""The HTTP protocol for AI chat apps of 2024-01-28: OpenAI's completions with `context` and `session_state`.

The document puts these two into the choice; a well-known client reads them from its message or delta, so
they stand in both places.
"""

from typing import Any

from chat import errors
from chat.events import (
    ContextReady,
    Event,
    Failed,
    FollowUps,
    Json,
    MessageDone,
    Started,
    TextDelta,
    Usage,
    Whole,
)
from chat.requests import ChatRequest

from . import reading
from .asking import an_exchange, ask
from .completions import envelope, usage
from .context import context, delta, followups, message
from .single import Single


class ChatCompletions:
    """`stream` in the body decides whether the answer is streamed."""

    stream_type = "application/json-lines"
    gap = 0.0

    def parse(self, body: Any) -> ChatRequest:
        return ask(body, "session_state", flat_overrides=True)

    def streams(self, body: Any) -> bool:
        return reading.a_flag(an_exchange(body).get("stream", False), "stream")

    def encoder(self) -> Single:
        return Single(ChatCompletionsEncoder().encode)

    def whole(self, whole: Whole) -> tuple[int, Json]:
        if whole.end is None or isinstance(whole.end, Failed):
            code = whole.end.code if whole.end else "internal"
            return errors.status(code), self.error(errors.words(code), code)
        assert whole.started is not None
        told = context(whole.context) if whole.context else {}
        if whole.followups:
            told |= followups(whole.followups)
        more = {"context": told, "session_state": whole.started.conversation_id}
        choice = {
            "index": 0,
            "message": message(whole.text) | more,
            "finish_reason": whole.done.finish_reason if whole.done else "stop",
            "content_filter_results": {},
            **more,
        }
        return 200, envelope(whole.started, "chat.completion") | {
            "choices": [choice],
            "usage": usage(whole.usage),
            "prompt_filter_results": [],
        }

    def error(self, message: str, code: str = "", *, status: int = 400, member: str = "") -> Json:
        return {"error": message}


class ChatCompletionsEncoder:
    """Chunks as OpenAI's, the first with the context."""

    def __init__(self) -> None:
        self._started: Started | None = None
        self._done: MessageDone | None = None

    def encode(self, event: Event) -> list[Json]:
        if self._done is None:
            return self._chunks(event)
        # Held back for one event: the count of tokens, if there is one, comes next.
        done, self._done = self._done, None
        counted = usage(event if isinstance(event, Usage) else None)
        last = self._chunk(delta(), finish_reason=done.finish_reason) | {"usage": counted}
        return [last, *self._chunks(event)]

    def _chunks(self, event: Event) -> list[Json]:
        match event:
            case Started():
                self._started = event
                return []
            case ContextReady():
                return [
                    self._chunk({"role": "assistant"}, context=context(event)),
                    self._chunk(delta(role="assistant")),
                ]
            case TextDelta():
                return [self._chunk(delta(content=event.text))]
            case MessageDone():
                self._done = event
            case FollowUps():
                return [self._chunk(delta(role="assistant"), context=followups(event.questions))]
            case Failed():
                return [_failure(event)]
        return []

    def _chunk(self, piece: Json, *, finish_reason: str | None = None, context: Json | None = None) -> Json:
        assert self._started is not None
        more: Json = {}
        if context is not None:
            more = {"context": context, "session_state": self._started.conversation_id}
        choice = {
            "index": 0,
            "delta": piece | more,
            "finish_reason": finish_reason,
            "content_filter_results": {},
            **more,
        }
        return envelope(self._started, "chat.completion.chunk") | {"choices": [choice]}


def _failure(event: Failed) -> Json:
    """A chunk that this protocol's clients take for an error by any of three members."""
    words = errors.words(event.code)
    return {"error": words, "message": words, "statusCode": errors.status(event.code)}
