from django.apps import AppConfig
from django.utils.translation import gettext_lazy, gettext_noop

from chatsite.http.error_pages import register_error_body, register_hint, register_missing

from .api import base_url
from .protocols import ChatUi, ErrorFormat, OpenAI, mcp

# The same text for a link that never existed, has ended, was revoked, or is for other people.
NO_LINK = (
    gettext_noop("This link does not work"),
    gettext_noop(
        "It has expired or was revoked, is incomplete, or was not shared with you. "
        "Ask the person who sent it."
    ),
)


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
            register_error_body(start, protocol.error)
        register_error_body("/register", mcp.registration_refused)
        register_missing("/s", *NO_LINK)
        register_hint(base_url.hint)
