"""The Microsoft AI Chat Protocol of 2024-05-29: as RAG chat, with `sessionState` and `application/jsonl`."""

from typing import Any

from chat.events import Json
from chat.requests import ChatRequest

from .asking import ask
from .rag_chat import RagChat


class AiChatProtocol(RagChat):
    stream_type = "application/jsonl"

    def parse(self, body: Any) -> ChatRequest:
        return ask(body, "sessionState")

    def session(self, conversation_id: str) -> Json:
        return {"sessionState": conversation_id}
