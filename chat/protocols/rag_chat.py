"""The RAG chat HTTP protocol: `message`, `delta`, `context`, `session_state`."""

from typing import Any

from chat import errors
from chat.events import (
    ContextReady,
    Event,
    Failed,
    FollowUps,
    Json,
    MessageDone,
    Rechecked,
    RunResult,
    Started,
    TextDelta,
)
from chat.requests import RunRequest

from .answer_context import (
    context,
    delta,
    followups,
    message,
    verification,
)
from .request_body import (
    ask,
    session_answer,
)
from .single_message import SingleMessageEncoder


class RagChat:
    """RAG chat of 2025.

    If `decided` is false, the request had no session member; the answer then has the session in both
    `session_state` and `sessionState`.
    """

    stream_type = "application/json-lines"
    gap = 0.0

    session_member = "session_state"

    def __init__(self, *, decided: bool = True) -> None:
        self._decided = decided
        self._sent: Any = None  # the session as the client sent it, set when the request is parsed

    def parse(self, body: Any) -> RunRequest:
        request = ask(body, self.session_member)
        self._sent = body.get(self.session_member)
        return request

    def encoder(self) -> SingleMessageEncoder:
        return SingleMessageEncoder(RagChatEncoder(self).encode)

    def full_response(self, result: RunResult) -> tuple[int, Json]:
        if result.end is None or isinstance(result.end, Failed):
            code = result.end.code if result.end else "internal"
            return errors.status(code), self.error(errors.words(code))
        assert result.started is not None
        session = self.session(result.started.conversation_id)
        return 200, {**self.answer(result.text), "context": whole_context(result), **session}

    def answer(self, text: str) -> Json:
        """The text of a complete answer: `message`, and `output_text` for clients of 2026."""
        return {"message": message(text), "output_text": text}

    def error(self, message: str, code: str = "", *, status: int = 400, member: str = "") -> Json:
        return {"error": message}

    def session(self, conversation_id: str) -> Json:
        value = session_answer(self._sent, conversation_id)
        members: Json = {self.session_member: value}
        return members if self._decided else members | {"sessionState": value}


def whole_context(result: RunResult) -> Json:
    """The member `context` of an answer that is not streamed."""
    members = (context(result.context) if result.context else {}) | verification(
        result.verification, result.grade
    )
    return members | followups(result.followups) if result.followups else members


class RagChatEncoder:
    """Encodes a stream: the first chunk has the context, later ones add to text or context."""

    def __init__(self, protocol: RagChat) -> None:
        self._protocol = protocol
        self._session: Json = {}

    def encode(self, event: Event) -> list[Json]:
        match event:
            case TextDelta():
                return [self._text(event.text)]
            case Started():
                self._session = self._protocol.session(event.conversation_id)
            case ContextReady():
                return self._first(context(event))
            case MessageDone() if event.verification or event.grade:
                return [self._later(verification(event.verification, event.grade))]
            case Rechecked():
                return [self._later(verification(event.verification))]
            case FollowUps():
                return [self._later(followups(event.questions))]
            case Failed():
                return [self._protocol.error(errors.words(event.code))]
        return []

    def _text(self, text: str) -> Json:
        return {"delta": delta(content=text)}

    def _first(self, members: Json) -> list[Json]:
        """The first chunks, with the context."""
        first = {"delta": {"role": "assistant"}, "context": members, **self._session}
        return [first, {"delta": delta(role="assistant")}]

    def _later(self, members: Json) -> Json:
        """A chunk with members that complete the context."""
        return {"delta": delta(role="assistant"), "context": members, **self._session}
