"""Serializers for the requests to /chat-history.

Their members are those of the Chat UI protocol (see chat/protocols/chat_ui.py), with some additions, such as
`pinned`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils.formats import number_format
from django.utils.functional import lazy
from django.utils.text import format_lazy
from django.utils.translation import gettext, gettext_lazy
from drf_spectacular.extensions import OpenApiSerializerExtension
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from chatsite.dependency_internals import serializer_schema
from chatsite.http.strict_fields import StrictBooleanField
from history.citation_text import without_links
from history.failure_texts import FAILURES
from history.models import Conversation, Message
from history.recording import TITLE_LENGTH

MAX_MESSAGES = 1_000  # in one request
ID_LENGTH = 200
AGENT_LENGTH = 100
TIME_LENGTH = 40
MAX_JSON_LENGTH = 100_000  # characters of the sources or the error of one message
MAX_DEPTH = 10
# The role of error messages in ChatUI, the client of the Chat UI protocol. ChatUI sends such messages, but
# ignores them in responses.
DROPPED_ROLE = "system"
NOT_BOOLEAN: dict[str, Any] = dict.fromkeys(("null", "invalid"), gettext_lazy("must be true or false."))
NO_PROJECT = gettext_lazy("must be the id of one of your projects.")
TEXT = gettext_lazy("must be text.")
OBJECT = gettext_lazy("must be a JSON object.")
LIST = gettext_lazy("must be a list.")
UNTITLED = "New Chat"  # ChatUI's title of an untitled conversation
CLIENT_MEMBERS = ("sources", "error", "timestamp")  # stored as sent, unless empty
STORED_STATES = {
    "completed": Message.State.COMPLETE,
    # The client has only a part of the text; this site does not continue it.
    "processing": Message.State.STOPPED,
    "failed": Message.State.FAILED,
}


@dataclass(frozen=True, slots=True)
class Incoming:
    """A message to save. Members missing from the request are None or empty."""

    key: str
    role: str
    content: str
    state: Message.State | None = None
    error_code: str = ""
    agent_name: str | None = None
    content_type: str | None = None
    created_at: datetime | None = None
    client_members: Mapping[str, Any] = field(default_factory=dict)


def too_long(most: int) -> str:
    return gettext("is longer than {most} characters.").format(most=number_format(most, force_grouping=True))


def too_many(most: int) -> str:
    return gettext("has more than {most} messages.").format(most=number_format(most, force_grouping=True))


class TextField(serializers.CharField):
    """A string, unchanged; numbers are rejected."""

    default_error_messages = {
        "required": TEXT,
        "null": TEXT,
        "invalid": TEXT,
        "unstorable": gettext_lazy("contains characters that are not text."),
    }

    def __init__(self, **kwargs: Any) -> None:
        if most := kwargs.get("max_length"):
            kwargs["error_messages"] = {"max_length": lazy(too_long, str)(most)}
        super().__init__(trim_whitespace=False, **{"allow_blank": True} | kwargs)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        if "\x00" in data or any("\ud800" <= character <= "\udfff" for character in data):
            self.fail("unstorable")
        return data


@extend_schema_field({"type": "string", "minLength": 1, "maxLength": TITLE_LENGTH, "pattern": r"\S"})
class TitleField(TextField):
    """A title of at least one character; `validate_title` also demands visible text."""

    default_error_messages = {"blank": gettext_lazy("must be text with at least one character.")}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=TITLE_LENGTH, allow_blank=False, **kwargs)


class WordField(serializers.ChoiceField):
    """One of several strings."""

    def __init__(self, choices: Any, **kwargs: Any) -> None:
        names = ", ".join(f"“{choice}”" for choice in choices)
        sentence = format_lazy(gettext_lazy("must be one of {names}."), names=names)
        messages: dict[str, Any] = dict.fromkeys(("required", "null", "invalid_choice"), sentence)
        super().__init__(choices, error_messages=messages, **kwargs)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str) or data not in self.choices:
            self.fail("invalid_choice", input=data)
        return data


class ProjectField(serializers.UUIDField):
    """The id of a project, whose existence is checked when the id is used."""

    default_error_messages = dict.fromkeys(("null", "invalid"), NO_PROJECT)

    def to_internal_value(self, data: Any) -> UUID:
        if not isinstance(data, str):
            self.fail("invalid", value=data)
        return super().to_internal_value(data)


class BodySerializer(serializers.Serializer[Any]):
    """A JSON object in a request."""

    default_error_messages = dict.fromkeys(("required", "null", "invalid"), OBJECT)


def optional_text(max_length: int) -> TextField:
    return TextField(max_length=max_length, required=False, allow_null=True)


class ModeSerializer(BodySerializer):
    """The parameter `mode`, which restricts a list; DELETE accepts and ignores it."""

    mode = WordField(Conversation.Mode.values, required=False)


class ListQuerySerializer(ModeSerializer):
    """Restrict the list to one mode or project, or to archived conversations, which it otherwise omits."""

    archived = WordField(("true", "false"), default="false")
    project_id = ProjectField(required=False)


class ExportQuerySerializer(BodySerializer):
    format = WordField(("markdown", "json"), default="markdown")


class NewConversationSerializer(BodySerializer):
    mode = WordField(Conversation.Mode.values, required=False, allow_null=True)
    title = optional_text(TITLE_LENGTH)
    project_id = ProjectField(required=False, allow_null=True)

    def validate(self, values: dict[str, Any]) -> dict[str, Any]:
        title = " ".join((values.get("title") or "").split())
        return {
            "mode": values.get("mode") or Conversation.Mode.STANDARD,
            "title": "" if title == UNTITLED else title,
            "project_id": values.get("project_id"),
        }


class ConversationChangeSerializer(BodySerializer):
    """Changes to a conversation: at least one member."""

    title = TitleField(required=False)
    pinned = StrictBooleanField(required=False, error_messages=NOT_BOOLEAN)
    archived = StrictBooleanField(required=False, error_messages=NOT_BOOLEAN)
    project_id = ProjectField(required=False, allow_null=True)

    def validate(self, values: dict[str, Any]) -> dict[str, Any]:
        if not values:
            raise serializers.ValidationError(
                gettext("must have one of “title”, “pinned”, “archived” and “project_id”.")
            )
        if values.get("pinned") and values.get("archived"):
            raise serializers.ValidationError({"pinned": gettext("cannot be true together with “archived”.")})
        return values

    def validate_title(self, title: str) -> str:
        if not title.strip():
            raise serializers.ValidationError(gettext("must be text with at least one character."))
        return title


class SavedErrorSerializer(BodySerializer):
    message = optional_text(settings.MESSAGE_MAX_CHARACTERS)
    code = optional_text(ID_LENGTH)


@extend_schema_field({"type": "array", "items": {"type": "object"}})
class SourcesField(serializers.Field[Any, Any, Any, Any]):
    """A list of JSON objects of any form, possibly very many."""

    default_error_messages = {"not_a_list": LIST}

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, list):
            self.fail("not_a_list")
        for number, item in enumerate(data):
            if not isinstance(item, Mapping):
                wrong = {"non_field_errors": [OBJECT]}
                raise serializers.ValidationError([*[{}] * number, wrong])
        return data


class SavedMessageSerializer(BodySerializer):
    """A message to save, validated into an Incoming; None for the role `system`."""

    messageId = optional_text(ID_LENGTH)
    id = optional_text(ID_LENGTH)
    conversationId = optional_text(ID_LENGTH)
    role = WordField(Message.Role.values)
    content = TextField(help_text="At most 32,000 characters, or 200,000 for the role `assistant`.")
    status = WordField(STORED_STATES, required=False, allow_null=True)
    contentType = WordField(("text", "markdown"), required=False, allow_null=True)
    agentName = optional_text(AGENT_LENGTH)
    agentIdentifier = optional_text(AGENT_LENGTH)
    sources = SourcesField(required=False, allow_null=True)
    error = SavedErrorSerializer(required=False, allow_null=True)
    createdAt = optional_text(TIME_LENGTH)
    timestamp = optional_text(TIME_LENGTH)

    def run_validation(self, data: Any = serializers.empty) -> Any:
        if isinstance(data, Mapping) and data.get("role") == DROPPED_ROLE:
            return None
        return super().run_validation(data)

    def to_internal_value(self, data: Any) -> Any:
        values = super().to_internal_value(data)
        for name in ("sources", "error"):
            _check_json(data.get(name), name)
        return values | {"client_members": {name: data[name] for name in CLIENT_MEMBERS if name in data}}

    def validate(self, values: Any) -> Any:
        key = values.get("messageId") or values.get("id")
        if not key:
            raise serializers.ValidationError({"messageId": gettext("is missing.")})
        is_question = values["role"] == Message.Role.USER
        most = settings.MESSAGE_MAX_CHARACTERS if is_question else settings.ANSWER_MAX_CHARACTERS
        # Links that this site added to the text do not count towards the limit.
        if len(values["content"]) > most and len(without_links(values["content"])) > most:
            raise serializers.ValidationError({"content": too_long(most)})
        created, clock = values.get("createdAt"), values.get("timestamp")
        # Without `createdAt`, `timestamp` is used if it contains a date, unlike “10:15 AM”.
        created_at = _parsed(clock or "") if created is None else _parsed(created)
        if created is not None and created_at is None:
            raise serializers.ValidationError(
                {"createdAt": gettext("must be a time such as “2023-04-07T11:30:00.000Z”.")}
            )
        # This site has no text for an unknown error code, so it is not stored as the message's error.
        code = (values.get("error") or {}).get("code") or ""
        return Incoming(
            key=key,
            role=values["role"],
            content=values["content"],
            state=STORED_STATES.get(values.get("status")),
            error_code=code if code in FAILURES else "",
            agent_name=values.get("agentName") or values.get("agentIdentifier") or None,
            content_type=values.get("contentType"),
            created_at=created_at,
            client_members=values["client_members"],
        )


class SavedMessagesSerializer(BodySerializer):
    messages = SavedMessageSerializer(  # type: ignore[call-arg]
        many=True,
        max_length=MAX_MESSAGES,
        error_messages={
            "required": LIST,
            "null": LIST,
            "not_a_list": LIST,
            "max_length": lazy(too_many, str)(MAX_MESSAGES),
        },
    )

    def validate_messages(self, messages: list[Incoming | None]) -> list[Incoming]:
        keys = set()
        for number, message in enumerate(messages):
            if message is None:
                continue
            if message.key in keys:
                repeated = {"messageId": [gettext("names the same message as an earlier one.")]}
                raise serializers.ValidationError([*[{}] * number, repeated])
            keys.add(message.key)
        return [message for message in messages if message is not None]


def _check_json(value: Any, member: str) -> None:
    """Check that a value can be stored and is within the limits of depth and length."""
    waiting, length = [(value, 0)], 0
    while waiting:
        item, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise serializers.ValidationError({member: gettext("is nested too deeply.")})
        if isinstance(item, str):
            if "\x00" in item:
                raise serializers.ValidationError({member: gettext("contains characters that are not text.")})
            length += len(item)
        elif isinstance(item, Mapping):
            waiting += [(part, depth + 1) for pair in item.items() for part in pair]
        elif isinstance(item, list):
            waiting += [(part, depth + 1) for part in item]
        length += 2
        if length > MAX_JSON_LENGTH:
            raise serializers.ValidationError({member: too_long(MAX_JSON_LENGTH)})


def _parsed(text: str) -> datetime | None:
    """The time in UTC, to the millisecond, as in responses; None if it cannot be parsed."""
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return moment.replace(microsecond=moment.microsecond // 1_000 * 1_000)


# Additions to the API description that drf-spectacular cannot derive from the serializers.


class SavedMessageDescription(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """A message needs one of two ids; messages of the role `system` are skipped."""

    target_class = "history.serializers.request_serializers.SavedMessageSerializer"

    def map_serializer(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        schema = serializer_schema(auto_schema, self.target, direction)
        schema["description"] = (
            "`id` is read if `messageId` is missing or empty, and `agentIdentifier` if `agentName` "
            "is. Other members are ignored."
        )
        schema["properties"]["content"]["maxLength"] = settings.MESSAGE_MAX_CHARACTERS
        schema["properties"]["createdAt"]["format"] = "date-time"
        schema["properties"]["sources"] = {"type": ["array", "null"], "items": {"type": "object"}}
        name = {"type": "string", "minLength": 1, "maxLength": ID_LENGTH}
        named = [
            {"type": "object", "required": [member], "properties": {member: name}}
            for member in ("messageId", "id")
        ]
        return {"anyOf": [schema | {"anyOf": named}, {"$ref": "#/components/schemas/ErrorBubble"}]}


class ConversationChangeDescription(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """At least one known member is required; unknown ones are ignored."""

    target_class = "history.serializers.request_serializers.ConversationChangeSerializer"

    def map_serializer(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        schema = serializer_schema(auto_schema, self.target, direction)
        both = {
            "required": ["pinned", "archived"],
            "properties": {name: {"const": True} for name in ("pinned", "archived")},
        }
        return schema | {"anyOf": [{"required": [name]} for name in schema["properties"]], "not": both}
