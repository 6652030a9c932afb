"""The interface to language models.

:class:`~chat.llm.remote.RemoteModel` calls any OpenAI-compatible server, and
:class:`~chat.quoting.quoting_model.QuotingModel` answers with quotations.
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
