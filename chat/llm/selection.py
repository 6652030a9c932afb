"""Which model answers: the one that the settings name."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from django.conf import settings
from django.utils.module_loading import import_string

from .base import ChatModel

RERANKER = "chat.llm.reranking.rerank"  # a path: the client library takes 30 MB, also where nothing uses it

_replacements: list[ChatModel] = []


def configured_model(name: str = "") -> ChatModel:
    """The model of the settings, or another of the same server by its name.

    Found by its class's path, so that only the one in use is ever imported.
    """
    if _replacements:
        return _replacements[-1]
    model: ChatModel = import_string(settings.CHAT_BACKEND)(name)
    return model


async def rerank(question: str, passages: Sequence[str]) -> dict[int, float]:
    """The scores of the configured reranking server, by place: 0 to 4. Empty where it fails."""
    scores: dict[int, float] = await import_string(RERANKER)(question, passages)
    return scores


@contextmanager
def use_model(model: ChatModel) -> Iterator[None]:
    """Answer with `model` inside the block: the seam for tests."""
    _replacements.append(model)
    try:
        yield
    finally:
        _replacements.remove(model)
