"""The interface to language models, with three implementations.

:class:`~chat.llm.remote.RemoteModel` calls any OpenAI-compatible server,
:class:`~chat.quoting.quoting_model.QuotingModel` answers without a model, and
:class:`~chat.llm.scripted.ScriptedModel` is the test double.
"""

from .chat_model import (
    ChatModel,
    Contribution,
    ModelError,
    Part,
    Prompt,
    SearchQuery,
    Text,
    TokenCount,
    configured_model,
    use_model,
)

__all__ = [
    "ChatModel", "Contribution", "ModelError", "Part", "Prompt", "SearchQuery", "Text", "TokenCount",
    "configured_model", "use_model",
]  # fmt: skip
