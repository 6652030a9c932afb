from collections.abc import Callable
from typing import Any

from django.apps import AppConfig
from django.utils.translation import gettext_lazy

from chatsite.http.error_pages import register_error_body

from .protocols import ChatUi, ErrorFormat, OpenAI, mcp


class ChatConfig(AppConfig):
    name = "chat"
    verbose_name = gettext_lazy("Answers")

    def ready(self) -> None:
        protocols: dict[str, ErrorFormat] = {
            "/api/chat": ChatUi(),
            "/api/multi-agent-chat": ChatUi(),
            "/api/minimal": ChatUi(),
            "/api/messages/chat": ChatUi(),
            "/api/messages/multi-agent-chat": ChatUi(),
            "/chat-history": ChatUi(),
            "/v1": OpenAI(),
            "/mcp": mcp.Refusals(),
        }
        for start, protocol in protocols.items():
            register_error_body(start, _error_body(protocol))


def _error_body(protocol: ErrorFormat) -> Callable[[str, int], dict[str, Any]]:
    return lambda words, status: protocol.error(words, status=status)
