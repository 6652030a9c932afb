"""Parses the request body of AI chat protocols: `messages`, `context` with overrides, and the session."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from chat import errors
from chat.requests import EarlierMessage, ImageInput, InvalidRequest, Options, RunRequest

from . import validators
from .validators import Reader, integer_from, number_from, one_of, text_of

ROLES = ("user", "assistant")
SESSION_KEY = "chatsite_conversation"  # member that the site adds to a session that is an object
# Members of a context that are not overrides, even with `flat_overrides` (see `ask`).
FLAT_APART = ("overrides", "approach")


def ask(body: Any, session_member: str, *, flat_overrides: bool = False) -> RunRequest:
    """The request in a body; the session is read from the member `session_member`.

    With `flat_overrides`, the context's own members count as overrides too. Raises InvalidRequest.
    """
    members = body_object(body)
    earlier, question = conversation(members)
    settings = validators.require_object(members.get("context"), "context")
    overrides = validators.require_object(settings.get("overrides"), "context.overrides")
    if flat_overrides:
        flat = {name: value for name, value in settings.items() if name not in FLAT_APART}
        options(flat, "context")  # checked first, so that errors name the member by its place in the body
        overrides = flat | overrides
    return RunRequest(
        question=question,
        conversation_id=session(members.get(session_member), session_member),
        earlier=tuple(earlier),
        options=options(overrides),
        images=images(members),
    )


def body_object(body: Any) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise InvalidRequest("The body must be a JSON object.")
    return body


def conversation(body: dict[str, Any], *, dropped_role: str = "") -> tuple[Sequence[EarlierMessage], str]:
    """The earlier messages, and the question.

    Messages with the role `dropped_role`, except the last message, are left out without being checked. Raises
    InvalidRequest.
    """
    items = validators.require_list(body.get("messages"), "messages")
    if not items:
        raise InvalidRequest("“messages” must not be empty.", "messages")
    said: list[EarlierMessage] = []
    for index, item in enumerate(items):
        member = f"messages[{index}]"
        is_last = index == len(items) - 1
        if dropped_role and not is_last and isinstance(item, dict) and item.get("role") == dropped_role:
            continue
        if not isinstance(item, dict):
            raise InvalidRequest(f"“{member}” must be an object.", member)
        role = validators.require_choice(item.get("role"), f"{member}.role", ROLES)
        content, place = item.get("content"), f"{member}.content"
        text = validators.require_text(content, place)
        said.append(EarlierMessage("user" if role == "user" else "assistant", text))
    *earlier, last = said
    if last.role != "user":
        member = f"messages[{len(items) - 1}].role"
        raise InvalidRequest(f"“{member}” must be “user”: the last message is the question.", member)
    return earlier, last.content


def images(body: dict[str, Any]) -> tuple[ImageInput, ...]:
    """The images of all messages: the site stores none, so clients send earlier ones again."""
    found: list[ImageInput] = []
    for index, message in enumerate(body["messages"]):
        member = f"messages[{index}].files"
        files = message.get("files")
        for file in validators.require_list(files, member) if files is not None else ():
            if not isinstance(file, ImageInput):
                raise InvalidRequest(f"“{member}” cannot be read: send files as multipart/form-data.", member)
            found.append(file)
    return tuple(found)


def session(value: Any, member: str) -> UUID | None:
    """The id of the conversation in a session, which is the id or an object that contains it.

    Raises InvalidRequest.
    """
    if isinstance(value, dict):
        value, member = value.get(SESSION_KEY), f"{member}.{SESSION_KEY}"
    if value is None:
        return None
    try:
        return UUID(validators.require_text(value, member))
    except ValueError:
        # An id that is not a UUID, such as that of another site, is refused like a conversation that the
        # caller does not own.
        raise InvalidRequest(errors.words("not_found"), member, status=404) from None


def session_answer(sent: Any, conversation_id: str) -> Any:
    """The session for the response: the id, or the client's object with the id added."""
    return sent | {SESSION_KEY: conversation_id} if isinstance(sent, dict) else conversation_id


# --- Overrides: checked, bounded, and turned into options ---

RETRIEVAL_MODES = ("hybrid", "vectors", "text")
# The forms in which the model can get pages; an empty string means only the text.
IMAGE_INPUTS = {"text": "", "textAndImages": "textAndImages", "images": "images"}
VECTOR_FIELDS = {"embedding": "text", "imageEmbedding": "pages"}
# Since 2025, front ends have sent a single word instead of a list.
VECTOR_FIELD_SETS = {
    "textEmbeddingOnly": "text",
    "imageEmbeddingOnly": "pages",
    "textAndImageEmbeddings": "both",
}
# The option that requests page images has had two names, one from 2024 and one from 2026.
PAGE_SWITCHES = ("use_gpt4v", "use_multimodal_answering")
CATEGORY_CHARACTERS = 100
TEMPLATE_CHARACTERS = 10_000
MAX_UNKNOWN_NAMED = 50


def _vector_fields(value: Any, member: str) -> str:
    if isinstance(value, str):
        return VECTOR_FIELD_SETS[validators.require_choice(value, member, VECTOR_FIELD_SETS)]
    items = validators.require_list(value, member)
    kinds = {VECTOR_FIELDS[validators.require_choice(item, member, VECTOR_FIELDS)] for item in items}
    return "both" if len(kinds) > 1 else "".join(kinds)


# For each name in the request, the name of the option, and the function that reads the value.
OPTIONS: Mapping[str, tuple[str, Reader]] = {
    "temperature": ("temperature", number_from(0, 2)),
    "top": ("top", integer_from(1, 50)),
    "retrieval_mode": ("retrieval_mode", one_of(*RETRIEVAL_MODES)),
    "semantic_ranker": ("ranker", validators.require_boolean),
    "semantic_captions": ("captions", validators.require_boolean),
    "suggest_followup_questions": ("followups", validators.require_boolean),
    "use_oid_security_filter": ("to_person", validators.require_boolean),
    "use_groups_security_filter": ("to_groups", validators.require_boolean),
    "vector_fields": ("vector_fields", _vector_fields),
    "gpt4v_input": (
        "pages",
        lambda value, member: IMAGE_INPUTS[validators.require_choice(value, member, IMAGE_INPUTS)],
    ),
    "prompt_template": ("prompt_template", text_of(TEMPLATE_CHARACTERS)),
    "include_category": ("include_category", text_of(CATEGORY_CHARACTERS)),
    "exclude_category": ("exclude_category", text_of(CATEGORY_CHARACTERS)),
    "scope": ("scope", validators.require_scope),
    "minimum_search_score": ("minimum_score", number_from(0, 1)),
    "minimum_reranker_score": ("minimum_ranker_score", number_from(0, 4)),
}


def options(overrides: Mapping[str, Any], place: str = "context.overrides") -> Options:
    """The options for these overrides; null counts as absent.

    `place` is the path of the overrides in the body. Raises InvalidRequest, which names the member.
    """
    values: dict[str, Any] = {"followups": False, "pages": "textAndImages"}
    unknown: list[str] = []
    with_pages = False
    for name, value in overrides.items():
        if name in PAGE_SWITCHES:
            with_pages |= value is not None and validators.require_boolean(value, f"{place}.{name}")
        elif name not in OPTIONS:
            unknown.append(name[:100].replace("\x00", "\ufffd"))
        elif value is not None:
            option, read = OPTIONS[name]
            values[option] = read(value, f"{place}.{name}")
    if not with_pages:
        values["pages"] = ""
    if values.get("retrieval_mode") == "vectors" and values.get("vector_fields") == "":
        member = f"{place}.vector_fields"
        raise InvalidRequest(f"“{member}” must name a field if only vectors are searched.", member)
    return Options(**values, unknown=tuple(unknown[:MAX_UNKNOWN_NAMED]))
