"""The request that the AI-chat documents share: `messages`, `context` and a session."""

from typing import Any
from uuid import UUID

from chat import errors
from chat.requests import ChatRequest, InvalidRequest, Turn

from . import reading
from .overrides import options

ROLES = ("user", "assistant")


def ask(body: Any, session_member: str) -> ChatRequest:
    """The question in a body; the session is read from the member of this name. Raises InvalidRequest."""
    if not isinstance(body, dict):
        raise InvalidRequest("The body must be a JSON object.")
    *earlier, last = _turns(body.get("messages"))
    if last.role != "user":
        raise InvalidRequest("The last message must be the user’s.", "messages")
    settings = reading.an_object(body.get("context"), "context")
    overrides = reading.an_object(settings.get("overrides"), "context.overrides")
    return ChatRequest(
        question=last.content,
        conversation_id=_session(body.get(session_member), session_member),
        earlier=tuple(earlier),
        options=options(overrides),
    )


def _turns(messages: Any) -> list[Turn]:
    turns: list[Turn] = []
    for index, item in enumerate(reading.a_list(messages, "messages")):
        member = f"messages[{index}]"
        if not isinstance(item, dict):
            raise InvalidRequest(f"“{member}” must be an object.", member)
        role = reading.one_of(item.get("role"), f"{member}.role", ROLES)
        content = reading.a_text(item.get("content"), f"{member}.content")
        turns.append(Turn("user" if role == "user" else "assistant", content))
    if not turns:
        raise InvalidRequest("“messages” must not be empty.", "messages")
    return turns


def _session(value: Any, member: str) -> UUID | None:
    if value is None:
        return None
    try:
        return UUID(reading.a_text(value, member))
    except ValueError:
        # Not an id of ours: told as any other conversation that the caller does not have.
        raise InvalidRequest(errors.words("not_found"), member, status=404) from None
