"""The request that the AI-chat documents share: `messages`, `context` and a session."""

from typing import Any
from uuid import UUID

from chat import errors
from chat.requests import ChatRequest, InvalidRequest, Turn

from . import reading
from .overrides import options

ROLES = ("user", "assistant")


FLAT_APART = ("overrides", "approach")  # members of a context that are no overrides themselves


def ask(body: Any, session_member: str, *, flat_overrides: bool = False) -> ChatRequest:
    """The question in a body; the session is read from the member of this name.

    With `flat_overrides`, the context's own members count as overrides too. Raises InvalidRequest.
    """
    if not isinstance(body, dict):
        raise InvalidRequest("The body must be a JSON object.")
    *earlier, last = turns(body.get("messages"))
    if last.role != "user":
        raise InvalidRequest("The last message must be the user’s.", "messages")
    settings = reading.an_object(body.get("context"), "context")
    overrides = reading.an_object(settings.get("overrides"), "context.overrides")
    if flat_overrides:
        flat = {name: value for name, value in settings.items() if name not in FLAT_APART}
        overrides = flat | overrides
    return ChatRequest(
        question=last.content,
        conversation_id=_session(body.get(session_member), session_member),
        earlier=tuple(earlier),
        options=options(overrides),
    )


def turns(messages: Any, *, parts: bool = False) -> list[Turn]:
    """The messages, at least one. With `parts`, a content may be a list of texts. Raises InvalidRequest."""
    found: list[Turn] = []
    for index, item in enumerate(reading.a_list(messages, "messages")):
        member = f"messages[{index}]"
        if not isinstance(item, dict):
            raise InvalidRequest(f"“{member}” must be an object.", member)
        role = reading.one_of(item.get("role"), f"{member}.role", ROLES)
        content = item.get("content")
        if parts and isinstance(content, list):
            content = "\n".join(_text_part(part, f"{member}.content") for part in content)
        text = reading.a_text(content, f"{member}.content")
        found.append(Turn("user" if role == "user" else "assistant", text))
    if not found:
        raise InvalidRequest("“messages” must not be empty.", "messages")
    return found


def _text_part(part: Any, member: str) -> str:
    if not isinstance(part, dict) or part.get("type") != "text":
        raise InvalidRequest(f"“{member}” must be text; this site’s model reads no other parts.", member)
    return reading.a_text(part.get("text"), f"{member}.text")


def _session(value: Any, member: str) -> UUID | None:
    if value is None:
        return None
    try:
        return UUID(reading.a_text(value, member))
    except ValueError:
        # Not an id of ours: told as any other conversation that the caller does not have.
        raise InvalidRequest(errors.words("not_found"), member, status=404) from None
