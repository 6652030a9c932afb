"""The Microsoft AI Chat Protocol of 2024-05-29.

It is like RAG chat, but with `sessionState` and `application/jsonl`.
"""

from chat.events import Json

from .answer_context import message
from .rag_chat import RagChat


class AiChatProtocol(RagChat):
    stream_type = "application/jsonl"
    session_member = "sessionState"

    def answer(self, text: str) -> Json:
        return {"message": message(text)}
