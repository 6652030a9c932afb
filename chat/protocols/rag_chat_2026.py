"""The RAG chat HTTP protocol since April 2026: `output_text`, and a stream of typed events.

Requests, complete answers and errors are the same as in RAG chat (see chat/protocols/rag_chat.py).
"""

from chat import errors
from chat.events import (
    ContextReady,
    Event,
    Failed,
    FollowUps,
    Json,
    MessageDone,
    Rechecked,
    Started,
    TextDelta,
)

from .answer_context import (
    context,
    followups,
    verification,
)
from .rag_chat import RagChat
from .single_message import SingleMessageEncoder


class RagChat2026(RagChat):
    def encoder(self) -> SingleMessageEncoder:
        return SingleMessageEncoder(RagChat2026Encoder(self).encode)


class RagChat2026Encoder:
    """Encodes a stream: the first event has the context, the others have parts of the answer."""

    def __init__(self, protocol: RagChat2026) -> None:
        self._protocol = protocol
        self._session: Json = {}

    def encode(self, event: Event) -> list[Json]:
        match event:
            case TextDelta():
                return [{"type": "response.output_text.delta", "delta": event.text}]
            case Started():
                self._session = self._protocol.session(event.conversation_id)
            case ContextReady():
                return [self._context(context(event))]
            case MessageDone() if event.verification or event.grade:
                return [self._context(verification(event.verification, event.grade))]
            case Rechecked():
                return [self._context(verification(event.verification))]
            case FollowUps():
                return [self._context(followups(event.questions))]
            case Failed():
                return [self._protocol.error(errors.words(event.code))]
        return []

    def _context(self, members: Json) -> Json:
        return {"type": "response.context", "context": members, **self._session}
