"""The RAG chat HTTP protocol since April 2026: `output_text`, and a stream of typed events.

Requests, complete answers and errors are the same as in RAG chat (see chat/protocols/rag_chat.py).
"""

from chat.events import Json

from .rag_chat import RagChat, RagChatEncoder
from .single_message import SingleMessageEncoder


class RagChat2026(RagChat):
    def encoder(self) -> SingleMessageEncoder:
        return SingleMessageEncoder(RagChat2026Encoder(self).encode)


class RagChat2026Encoder(RagChatEncoder):
    """Encodes the chunks of `RagChatEncoder` as typed events."""

    def _text(self, text: str) -> Json:
        return {"type": "response.output_text.delta", "delta": text}

    def _first(self, members: Json) -> list[Json]:
        return [self._later(members)]

    def _later(self, members: Json) -> Json:
        return {"type": "response.context", "context": members, **self._session}
