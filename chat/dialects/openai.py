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
from chat.requests import ChatRequest, Options

from . import reading
from .asking import an_exchange, conversation
from .completions import envelope, usage
from .single import Single

ERROR_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}
DONE = "[DONE]"


class OpenAI:
    """Stateless: each request brings its whole conversation, and nothing of it is listed afterwards."""

    stream_type = "text/event-stream"
    gap = 0.0

    def __init__(self, *, counts: bool = False) -> None:
        """`counts` says whether a stream tells its usage, as `stream_options.include_usage` asks."""
        self._counts = counts

    @classmethod
    def of(cls, body: Any) -> "OpenAI":
        """As this request wants it. Raises InvalidRequest."""
        members = an_exchange(body)
        wanted = reading.an_object(members.get("stream_options"), "stream_options").get("include_usage")
        return cls(counts=reading.a_flag(wanted or False, "stream_options.include_usage"))

    def parse(self, body: Any) -> ChatRequest:
        members = an_exchange(body)
        if members.get("model") is not None:
            reading.a_text(members["model"], "model")
        if members.get("n") is not None:
            reading.a_whole_number(members["n"], "n", 1, 1)
        earlier, question = conversation(members, parts=True)
        options = Options(followups=False)
        if members.get("temperature") is not None:
            temperature = reading.a_number(members["temperature"], "temperature", 0, 2)
            options = Options(followups=False, temperature=temperature)
        return ChatRequest(question, earlier=tuple(earlier), options=options, listed=False)

    def streams(self, body: Any) -> bool:
        return reading.a_flag(an_exchange(body).get("stream") or False, "stream")

    def encoder(self) -> Single:
        return Single(OpenAIEncoder(counts=self._counts).encode)

    def whole(self, whole: Whole) -> tuple[int, Json]:
        if whole.end is None or isinstance(whole.end, Failed):
            code = whole.end.code if whole.end else "internal"
            return errors.status(code), self.error(errors.words(code), code, status=errors.status(code))
        assert whole.started is not None
        message = {"role": "assistant", "content": whole.text, "refusal": None}
        reason = whole.done.finish_reason if whole.done else "stop"
        return 200, envelope(whole.started, "chat.completion") | {
            "choices": [{"index": 0, "message": message, "finish_reason": reason, "logprobs": None}],
            "usage": usage(whole.usage),
            "sources": _sources(whole.context),
        }

    def error(self, message: str, code: str = "", *, status: int = 400, member: str = "") -> Json:
        kind = ERROR_TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
        return {"error": {"message": message, "type": kind, "param": member or None, "code": code or None}}


class OpenAIEncoder:
    """Chunks; the one with the reason to end carries the sources, and the end mark closes the stream."""

    def __init__(self, *, counts: bool = False) -> None:
        self._counts = counts
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
                return [self._chunk({}, event.finish_reason) | {"sources": _sources(self._context)}]
            case Usage():
                self._usage = event
            case Finished():
                return [*self._count(), DONE]
            case Failed():
                code = event.code
                return [OpenAI().error(errors.words(code), code, status=errors.status(code))]
        return []

    def _count(self) -> list[Json]:
        """A chunk without choices, which only those expect who have asked for it."""
        if not self._counts or self._started is None:
            return []
        last = envelope(self._started, "chat.completion.chunk")
        return [last | {"choices": [], "usage": usage(self._usage)}]

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
