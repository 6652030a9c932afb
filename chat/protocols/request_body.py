"""The request body of the AI chat protocols: `messages`, `context` and a session."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from chat import errors
from chat.requests import EarlierMessage, ImageInput, InvalidRequest, RunRequest

from . import validators
from .overrides import options

ROLES = ("user", "assistant")
SESSION_KEY = "chatsite_conversation"  # ours, in a session that is the client's own object
FLAT_APART = ("overrides", "approach")  # members of a context that are not overrides


def ask(body: Any, session_member: str, *, flat_overrides: bool = False) -> RunRequest:
    """The question in a body; the session is read from the member of this name.

    With `flat_overrides`, the context's own members count as overrides too. Raises InvalidRequest.
    """
    members = an_exchange(body)
    earlier, question = conversation(members)
    settings = validators.an_object(members.get("context"), "context")
    overrides = validators.an_object(settings.get("overrides"), "context.overrides")
    if flat_overrides:
        flat = {name: value for name, value in settings.items() if name not in FLAT_APART}
        options(flat, "context")  # so that an error names the member by its place in the body
        overrides = flat | overrides
    return RunRequest(
        question=question,
        conversation_id=session(members.get(session_member), session_member),
        earlier=tuple(earlier),
        options=options(overrides),
        images=images(members),
    )


def an_exchange(body: Any) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise InvalidRequest("The body must be a JSON object.")
    return body


def conversation(
    body: dict[str, Any], *, parts: bool = False, dropped_role: str = ""
) -> tuple[Sequence[EarlierMessage], str]:
    """What was said before, and the question. With `parts`, a content may be a list of texts.

    Earlier messages with `dropped_role` are left out unread. Raises InvalidRequest.
    """
    items = validators.a_list(body.get("messages"), "messages")
    if not items:
        raise InvalidRequest("“messages” must not be empty.", "messages")
    *earlier, last = [
        _turn(item, f"messages[{index}]", parts=parts)
        for index, item in enumerate(items)
        if not (dropped_role and index < len(items) - 1 and _has_role(item, dropped_role))
    ]
    if last.role != "user":
        member = f"messages[{len(items) - 1}].role"
        raise InvalidRequest(f"“{member}” must be “user”: the last message is the question.", member)
    return earlier, last.content


def images(body: dict[str, Any]) -> tuple[ImageInput, ...]:
    """Images of all messages: the site stores none, so follow-ups send earlier ones again."""
    found: list[ImageInput] = []
    for index, message in enumerate(body["messages"]):
        member = f"messages[{index}].files"
        files = message.get("files")
        for file in validators.a_list(files, member) if files is not None else ():
            if not isinstance(file, ImageInput):
                raise InvalidRequest(f"“{member}” cannot be read: files come as multipart/form-data.", member)
            found.append(file)
    return tuple(found)


def session(value: Any, member: str) -> UUID | None:
    """The conversation of a session: its id, or an object with the id. Raises InvalidRequest."""
    if isinstance(value, dict):
        value, member = value.get(SESSION_KEY), f"{member}.{SESSION_KEY}"
    if value is None:
        return None
    try:
        return UUID(validators.a_text(value, member))
    except ValueError:
        # Not one of our ids: refused like any conversation that the caller does not own.
        raise InvalidRequest(errors.words("not_found"), member, status=404) from None


def session_answer(sent: Any, conversation_id: str) -> Any:
    """The session for the response: the id, or the client's object with the id added."""
    return sent | {SESSION_KEY: conversation_id} if isinstance(sent, dict) else conversation_id


def _has_role(item: Any, role: str) -> bool:
    return isinstance(item, dict) and item.get("role") == role


def _turn(item: Any, member: str, *, parts: bool) -> EarlierMessage:
    if not isinstance(item, dict):
        raise InvalidRequest(f"“{member}” must be an object.", member)
    role = validators.one_of(item.get("role"), f"{member}.role", ROLES)
    content = item.get("content")
    if parts and isinstance(content, list):
        content = "\n".join(_text_part(part, f"{member}.content") for part in content)
    text = validators.a_text(content, f"{member}.content")
    return EarlierMessage("user" if role == "user" else "assistant", text)


def _text_part(part: Any, member: str) -> str:
    if not isinstance(part, dict) or part.get("type") != "text":
        raise InvalidRequest(f"“{member}” must be text: other parts are not read here.", member)
    return validators.a_text(part.get("text"), f"{member}.text")
