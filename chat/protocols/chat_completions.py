"""The HTTP protocol for AI chat apps of 2024-01-28.

It is OpenAI's chat completions with `context` and `session_state`. The specification puts these two members
into the choice. A well-known client reads them from the choice's message or delta, so they are sent in both
places.
"""

from typing import Any

from chat import errors
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
    Started,
    TextDelta,
    Usage,
)
from chat.requests import RunRequest

from . import validators
from .answer_context import (
    context,
    delta,
    envelope,
    followups,
    message,
    usage,
    verification,
)
from .request_body import (
    ask,
    body_object,
    session_answer,
)
from .single_message import SingleMessageEncoder


class ChatCompletions:
    """The protocol; `stream` in the body decides whether the answer is streamed."""

    stream_type = "application/json-lines"
    gap = 0.0

    def __init__(self) -> None:
        self._sent: Any = None  # the session as the client sent it, set when the request is parsed

    def parse(self, body: Any) -> RunRequest:
        request = ask(body, "session_state", flat_overrides=True)
        self._sent = body.get("session_state")
        return request

    def streams(self, body: Any) -> bool:
        return validators.optional_boolean(body_object(body).get("stream"), "stream")

    def encoder(self) -> SingleMessageEncoder:
        return SingleMessageEncoder(ChatCompletionsEncoder(self).encode)

    def content(self, result: RunResult) -> str:
        """The text of a complete answer."""
        return result.text

    def message_context(self, context: Json) -> Json:
        """The context for a message or delta; that of a choice always has the specification's form."""
        return context

    def full_response(self, result: RunResult) -> tuple[int, Json]:
        if result.end is None or isinstance(result.end, Failed):
            code = result.end.code if result.end else "internal"
            status = errors.status(code)
            return status, self.error(errors.words(code), code, status=status)
        assert result.started is not None
        shown = (context(result.context) if result.context else {}) | verification(
            result.verification, result.grade
        )
        if result.followups:
            shown |= followups(result.followups)
        choice = {
            "index": 0,
            "message": message(self.content(result)) | self.members(shown, result.started, in_message=True),
            "finish_reason": result.done.finish_reason if result.done else "stop",
            "content_filter_results": {},
            **self.members(shown, result.started),
        }
        return 200, envelope(result.started, "chat.completion") | {
            "choices": [choice],
            "usage": usage(result.usage),
            "prompt_filter_results": [],
        }

    def error(self, message: str, code: str = "", *, status: int = 400, member: str = "") -> Json:
        """An error with the three members by which clients of this protocol recognise errors."""
        return {"error": message, "message": message, "statusCode": status}

    def members(self, context: Json, started: Started, *, in_message: bool = False) -> Json:
        """The members that the protocol adds to a choice, and to its message or delta."""
        return {
            "context": self.message_context(context) if in_message else context,
            "session_state": session_answer(self._sent, started.conversation_id),
        }


class ChatCompletionsEncoder:
    """Encodes chunks like OpenAI's; the first one has the context."""

    def __init__(self, protocol: ChatCompletions) -> None:
        self._protocol = protocol
        self._started: Started | None = None
        self._done: MessageDone | None = None
        self._is_ended = False

    def encode(self, event: Event) -> list[Json]:
        if self._done is None:
            return self._chunks(event)
        # Hold MessageDone back until the next event, which may be the count of tokens.
        done, self._done = self._done, None
        counted = usage(event if isinstance(event, Usage) else None)
        has_result = done.verification or done.grade
        found = verification(done.verification, done.grade) if has_result else None
        last = self._chunk(delta(), finish_reason=done.finish_reason, context=found) | {"usage": counted}
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
                self._done, self._is_ended = event, True
            case Rechecked():
                return [self._chunk(delta(role="assistant"), context=verification(event.verification))]
            case FollowUps():
                return [self._chunk(delta(role="assistant"), context=followups(event.questions))]
            case Finished() if not self._is_ended:  # the answer was stopped
                return [self._chunk(delta(), finish_reason="stop") | {"usage": usage(None)}]
            case Failed():
                status = errors.status(event.code)
                return [self._protocol.error(errors.words(event.code), event.code, status=status)]
        return []

    def _chunk(self, piece: Json, *, finish_reason: str | None = None, context: Json | None = None) -> Json:
        assert self._started is not None
        choice: Json = {
            "index": 0,
            "delta": piece,
            "finish_reason": finish_reason,
            "content_filter_results": {},
        }
        if context is not None:
            members = self._protocol.members
            choice["delta"] = piece | members(context, self._started, in_message=True)
            choice |= members(context, self._started)
        return envelope(self._started, "chat.completion.chunk") | {"choices": [choice]}
