"""The language model behind one small protocol, with three that speak it.

:class:`~chat.llm.remote.RemoteModel` is any OpenAI-compatible server, :class:`~chat.llm.quoting.QuotingModel`
answers without any, and :class:`~chat.llm.scripted.ScriptedModel` is the double for tests.
"""

from .base import (
    ChatModel,
    ModelError,
    Part,
    Prompt,
    Said,
    SearchQuery,
    Text,
    TokenCount,
)
from .selection import configured_model, use_model

__all__ = [
    "ChatModel", "ModelError", "Part", "Prompt", "Said", "SearchQuery", "Text", "TokenCount",
    "configured_model", "use_model",
]  # fmt: skip
