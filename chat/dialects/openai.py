"""OpenAI's chat completions, for any client of that API: the sources come in the member `sources`."""

from typing import Any

from chat import errors
from chat.events import (
    ContextReady,
    Event,
    Failed,
    Finished,
    Json,
    MessageDone,
    Started,
    TextDelta,
    Usage,
    Whole,
)
from chat.requests import ChatRequest, InvalidRequest, Options

from . import reading
from .asking import turns
from .completions import envelope, usage

ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    429: "rate_limit_error",
}
DONE = "[DONE]"


class OpenAI:
    """Stateless: each request brings its whole conversation, and nothing of it is listed afterwards."""

    stream_type = "text/event-stream"

    def parse(self, body: Any) -> ChatRequest:
        if not isinstance(body, dict):
            raise InvalidRequest("The body must be a JSON object.")
        if body.get("n", 1) != 1:
            raise InvalidRequest("“n” must be 1.", "n")
        *earlier, last = turns(body.get("messages"), parts=True)
        if last.role != "user":
            raise InvalidRequest("The last message must be the user’s.", "messages")
        options = Options(followups=False)
        if body.get("temperature") is not None:
            temperature = reading.a_number(body["temperature"], "temperature", 0, 2)
            options = Options(followups=False, temperature=temperature)
        return ChatRequest(last.content, earlier=tuple(earlier), options=options, listed=False)

    def streams(self, body: Any) -> bool:
        return reading.a_flag(body.get("stream") or False, "stream")

    def encoder(self) -> "OpenAIEncoder":
        return OpenAIEncoder()

    def whole(self, whole: Whole) -> tuple[int, Json]:
        if whole.end is None or isinstance(whole.end, Failed):
            code = whole.end.code if whole.end else "internal"
            return errors.status(code), self.error(errors.words(code), code)
        assert whole.started is not None
        message = {"role": "assistant", "content": whole.text, "refusal": None}
        reason = whole.done.finish_reason if whole.done else "stop"
        return 200, envelope(whole.started, "chat.completion") | {
            "choices": [{"index": 0, "message": message, "finish_reason": reason, "logprobs": None}],
            "usage": usage(whole.usage),
            "sources": _sources(whole.context),
        }

    def error(self, message: str, code: str = "") -> Json:
        kind = ERROR_TYPES.get(errors.status(code) if code in errors.ERRORS else 400, "api_error")
        return {"error": {"message": message, "type": kind, "param": None, "code": code or None}}


class OpenAIEncoder:
    """Chunks, of which the last but the end mark carries the sources and the usage."""

    def __init__(self) -> None:
        self._started: Started | None = None
        self._context: ContextReady | None = None
        self._usage: Usage | None = None

    def encode(self, event: Event) -> list[Any]:
        match event:
            case Started():
                self._started = event
                return [self._chunk({"role": "assistant", "content": ""})]
            case ContextReady():
                self._context = event
            case TextDelta():
                return [self._chunk({"content": event.text})]
            case MessageDone():
                return [self._chunk({}, event.finish_reason)]
            case Usage():
                self._usage = event
            case Finished():
                assert self._started is not None
                last = envelope(self._started, "chat.completion.chunk") | {
                    "choices": [],
                    "usage": usage(self._usage),
                    "sources": _sources(self._context),
                }
                return [last, DONE]
            case Failed():
                return [OpenAI().error(errors.words(event.code), event.code)]
        return []

    def _chunk(self, piece: Json, finish_reason: str | None = None) -> Json:
        assert self._started is not None
        choice = {"index": 0, "delta": piece, "finish_reason": finish_reason, "logprobs": None}
        return envelope(self._started, "chat.completion.chunk") | {"choices": [choice]}


def models(name: str, created: int) -> Json:
    """The body of `GET /v1/models`."""
    return {
        "object": "list",
        "data": [{"id": name, "object": "model", "created": created, "owned_by": "chatsite"}],
    }


def _sources(context: ContextReady | None) -> list[Json]:
    if context is None:
        return []
    return [
        {"sourcepage": source.label, "title": source.title, "content": source.content, "score": source.score}
        for source in context.sources
    ]
