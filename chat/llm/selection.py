"""Selects the model that answers."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from django.conf import settings
from django.utils.module_loading import import_string

from .base import ChatModel

RERANKER = "chat.llm.reranking.rerank"  # a path, since the client library is loaded only where it is used

_replacements: list[ChatModel] = []


def configured_model(name: str = "") -> ChatModel:
    """The configured model, or another model of the same server.

    Imported by the path of its class, so that only the one in use is loaded.
    """
    if _replacements:
        return _replacements[-1]
    model: ChatModel = import_string(settings.CHAT_BACKEND)(name)
    return model


async def rerank(question: str, passages: Sequence[str]) -> dict[int, float]:
    """Relevance of passages by index, as the reranking server grades it: 0 to 4. Empty if it fails."""
    scores: dict[int, float] = await import_string(RERANKER)(question, passages)
    return scores


@contextmanager
def use_model(model: ChatModel) -> Iterator[None]:
    """Use `model` inside the block. For tests."""
    _replacements.append(model)
    try:
        yield
    finally:
        _replacements.remove(model)
