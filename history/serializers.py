"""Serializers of /chat-history; the only module with its member names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID

from django.conf import settings
from django.utils import timezone
from drf_spectacular.extensions import OpenApiSerializerExtension
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from chatsite.http.strict_fields import StrictBooleanField
from ingestion.search.labels import content_address

from .citation_text import verified_as_sent, with_links, without, without_links
from .failures import WORDS, failure_of
from .models import Conversation, Message, Source
from .recording import TITLE_LENGTH, timestamp

MAX_MESSAGES = 1_000  # in one request
ID_LENGTH = 200
AGENT_LENGTH = 100
TIME_LENGTH = 40
MAX_JSON_LENGTH = 100_000  # characters of the sources or the error of one message
MAX_DEPTH = 10
SNIPPET = 300  # characters of a source
# The role of the Chat UI's error messages: it sends them, but ignores those that it reads.
DROPPED_ROLE = "system"
NOT_BOOLEAN: dict[str, Any] = dict.fromkeys(("null", "invalid"), "must be true or false.")
NO_PROJECT = "must be the id of a project of yours."
UNTITLED = "New Chat"  # the client's title of a conversation that has none yet
OWN_MEMBERS = frozenset({"pinned", "archived", "project_id"})  # of a row, included unless empty
CLIENT_MEMBERS = ("sources", "error", "timestamp")  # stored and returned unchanged
STORED_STATES = {
    "completed": Message.State.COMPLETE,
    "processing": Message.State.STOPPED,  # the received part; this site does not continue it
    "failed": Message.State.FAILED,
}
SENT_STATUSES = {
    Message.State.QUEUED: "processing",
    Message.State.STREAMING: "processing",
    Message.State.COMPLETE: "completed",
    Message.State.STOPPED: "completed",
}


@dataclass(frozen=True, slots=True)
class Incoming:
    """A message to save; None for members that the request lacks."""

    key: str
    role: str
    content: str
    state: Message.State | None = None
    error_code: str = ""
    agent_name: str | None = None
    content_type: str | None = None
    created_at: datetime | None = None
    client_members: Mapping[str, Any] = field(default_factory=dict)


# Fields


class TextField(serializers.CharField):
    """A string, unchanged; numbers are rejected."""

    default_error_messages = {
        "required": "must be text.",
        "null": "must be text.",
        "invalid": "must be text.",
        "max_length": "is longer than {max_length:,} characters.",
        "unstorable": "holds characters that are not text.",
    }

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(trim_whitespace=False, **{"allow_blank": True} | kwargs)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        if "\x00" in data or any("\ud800" <= character <= "\udfff" for character in data):
            self.fail("unstorable")
        return data


@extend_schema_field({"type": "string", "minLength": 1, "maxLength": TITLE_LENGTH, "pattern": r"\S"})
class TitleField(TextField):
    """A title with visible text."""

    default_error_messages = {"blank": "must be text with at least one character."}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=TITLE_LENGTH, allow_blank=False, **kwargs)


class WordField(serializers.ChoiceField):
    """One of several strings."""

    def __init__(self, choices: Any, **kwargs: Any) -> None:
        sentence = f"must be one of {', '.join(f'“{choice}”' for choice in choices)}."
        messages: dict[str, Any] = dict.fromkeys(("required", "null", "invalid_choice"), sentence)
        super().__init__(choices, error_messages=messages, **kwargs)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str) or data not in self.choices:
            self.fail("invalid_choice", input=data)
        return data


class TimestampField(serializers.DateTimeField):
    """ISO 8601 in UTC with milliseconds."""

    def to_representation(self, value: datetime) -> str:
        return timestamp(value)


class ProjectField(serializers.UUIDField):
    """The id of a project, which is checked when it is used."""

    default_error_messages = dict.fromkeys(("null", "invalid"), NO_PROJECT)

    def to_internal_value(self, data: Any) -> UUID:
        if not isinstance(data, str):
            self.fail("invalid", value=data)
        return super().to_internal_value(data)


class BodySerializer(serializers.Serializer[Any]):
    """A JSON object in a request."""

    default_error_messages = dict.fromkeys(("required", "null", "invalid"), "must be a JSON object.")


def optional_text(max_length: int) -> TextField:
    return TextField(max_length=max_length, required=False, allow_null=True)


# Requests


class ModeSerializer(BodySerializer):
    """Restrict a request to conversations of one mode."""

    mode = WordField(Conversation.Mode.values, required=False)


class ListQuerySerializer(ModeSerializer):
    """Restrict the list to one mode or project, or to archived ones, which are excluded otherwise."""

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
                "must have one of “title”, “pinned”, “archived” and “project_id”."
            )
        if values.get("pinned") and values.get("archived"):
            raise serializers.ValidationError({"pinned": "cannot be true together with “archived”."})
        return values

    def validate_title(self, title: str) -> str:
        if not title.strip():
            raise serializers.ValidationError("must be text with at least one character.")
        return title


class SavedErrorSerializer(BodySerializer):
    message = optional_text(settings.MESSAGE_MAX_CHARACTERS)
    code = optional_text(ID_LENGTH)


@extend_schema_field({"type": "array", "items": {"type": "object"}})
class SourcesField(serializers.Field[Any, Any, Any, Any]):
    """A list of JSON objects of any form, possibly very many."""

    default_error_messages = {"not_a_list": "must be a list."}

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, list):
            self.fail("not_a_list")
        for number, item in enumerate(data):
            if not isinstance(item, Mapping):
                wrong = {"non_field_errors": ["must be a JSON object."]}
                raise serializers.ValidationError([*[{}] * number, wrong])
        return data


class SavedMessageSerializer(BodySerializer):
    """A message to save, validated into an Incoming; None for the role `system`."""

    messageId = optional_text(ID_LENGTH)
    id = optional_text(ID_LENGTH)
    conversationId = optional_text(ID_LENGTH)
    role = WordField(Message.Role.values)
    content = TextField(help_text="At most 32,000 characters, or 200,000 of the role `assistant`.")
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
            raise serializers.ValidationError({"messageId": "is missing."})
        _check_length(values["content"], values["role"])
        # An unknown code has no message here, so it is not stored as the message's error.
        code = (values.get("error") or {}).get("code") or ""
        return Incoming(
            key=key,
            role=values["role"],
            content=values["content"],
            state=STORED_STATES.get(values.get("status")),
            error_code=code if code in WORDS else "",
            agent_name=values.get("agentName") or values.get("agentIdentifier") or None,
            content_type=values.get("contentType"),
            created_at=_moment(values.get("createdAt"), values.get("timestamp")),
            client_members=values["client_members"],
        )


class SavedMessagesSerializer(BodySerializer):
    messages = SavedMessageSerializer(  # type: ignore[call-arg]
        many=True,
        max_length=MAX_MESSAGES,
        error_messages={
            "required": "must be a list.",
            "null": "must be a list.",
            "not_a_list": "must be a list.",
            "max_length": f"holds more than {MAX_MESSAGES:,} messages.",
        },
    )

    def validate_messages(self, messages: list[Incoming | None]) -> list[Incoming]:
        keys = set()
        for number, message in enumerate(messages):
            if message is None:
                continue
            if message.key in keys:
                repeated = {"messageId": ["names the same message as an earlier one."]}
                raise serializers.ValidationError([*[{}] * number, repeated])
            keys.add(message.key)
        return [message for message in messages if message is not None]


def _check_json(value: Any, member: str) -> None:
    """Check that a value can be stored and is within the limits of depth and length."""
    waiting, length = [(value, 0)], 0
    while waiting:
        item, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise serializers.ValidationError({member: "is nested too deeply."})
        if isinstance(item, str):
            if "\x00" in item:
                raise serializers.ValidationError({member: "holds characters that are not text."})
            length += len(item)
        elif isinstance(item, Mapping):
            waiting += [(part, depth + 1) for pair in item.items() for part in pair]
        elif isinstance(item, list):
            waiting += [(part, depth + 1) for part in item]
        length += 2
        if length > MAX_JSON_LENGTH:
            raise serializers.ValidationError({member: f"is longer than {MAX_JSON_LENGTH:,} characters."})


def _check_length(content: str, role: str) -> None:
    most = settings.MESSAGE_MAX_CHARACTERS if role == Message.Role.USER else settings.ANSWER_MAX_CHARACTERS
    # Links that this site put into the text do not count.
    if len(content) > most and len(without_links(content)) > most:
        raise serializers.ValidationError({"content": f"is longer than {most:,} characters."})


def _moment(created: str | None, clock: str | None) -> datetime | None:
    """`createdAt`, or `timestamp` if that has a date, unlike “10:15 AM”."""
    if created is None:
        return _parsed(clock) if clock else None
    moment = _parsed(created)
    if moment is None:
        raise serializers.ValidationError({"createdAt": "must be a time such as “2023-04-07T11:30:00.000Z”."})
    return moment


def _parsed(text: str) -> datetime | None:
    """In UTC with milliseconds, as it is returned."""
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return moment.replace(microsecond=moment.microsecond // 1_000 * 1_000)


# Responses


class NewConversationRowSerializer(serializers.Serializer[Conversation]):
    """A conversation without messages."""

    id = serializers.UUIDField()
    title = serializers.SerializerMethodField()
    lastUpdated = TimestampField(source="updated_at")
    messageCount = serializers.SerializerMethodField()

    def get_title(self, row: Conversation) -> str:
        return row.title or UNTITLED

    def get_messageCount(self, row: Conversation) -> int:
        return 0


class ConversationRowSerializer(serializers.Serializer[Any]):
    """A row of the list, from a :class:`history.listing.Summary`."""

    id = serializers.UUIDField(source="conversation.pk")
    title = serializers.SerializerMethodField()
    lastMessage = serializers.CharField(source="last_message")
    lastUpdated = TimestampField(source="conversation.updated_at")
    messageCount = serializers.IntegerField(source="message_count")
    pinned = serializers.SerializerMethodField(required=False, help_text="Only of those that are: true.")
    archived = serializers.SerializerMethodField(required=False, help_text="Only of those that are: true.")
    project_id = serializers.UUIDField(
        source="conversation.project_id", required=False, help_text="Only of those that are in one."
    )

    def to_representation(self, row: Any) -> dict[str, Any]:
        # Not part of the published protocol.
        sent = super().to_representation(row)
        return {name: value for name, value in sent.items() if value or name not in OWN_MEMBERS}

    def get_title(self, row: Any) -> str:
        return row.conversation.title or UNTITLED

    def get_pinned(self, row: Any) -> bool:
        return row.conversation.pinned_at is not None

    def get_archived(self, row: Any) -> bool:
        return row.conversation.archived_at is not None


class MatchSerializer(serializers.Serializer[Any]):
    """A message with the search terms, from a :class:`history.search.Hit`."""

    messageId = serializers.SerializerMethodField()
    role = serializers.ChoiceField(Message.Role.values, source="message.role")
    snippet = serializers.CharField(source="excerpt.text")
    highlights = serializers.ListField(
        child=serializers.ListField(child=serializers.IntegerField()),
        source="excerpt.marks",
        help_text="Start and end of each word in `snippet`, in Unicode characters.",
    )
    createdAt = TimestampField(source="message.created_at")

    def get_messageId(self, hit: Any) -> str:
        return identifier(hit.message)


class FoundConversationSerializer(ConversationRowSerializer):
    """A row of search results. The context has the `hits` of each conversation by its id."""

    matches = serializers.SerializerMethodField()

    def get_matches(self, row: Any) -> list[dict[str, Any]]:
        return MatchSerializer(self.context["hits"].get(row.conversation.pk, ()), many=True).data  # type: ignore[return-value]


class SourceSerializer(serializers.Serializer[Source]):
    id = serializers.SerializerMethodField()
    title = serializers.CharField()
    url = serializers.SerializerMethodField()
    snippet = serializers.SerializerMethodField()

    def get_id(self, row: Source) -> str:
        return f"{row.document.public_id}-{row.passage_id}"

    def get_url(self, row: Source) -> str:
        return address_of(row)

    def get_snippet(self, row: Source) -> str:
        return " ".join(row.content.split())[:SNIPPET]


class ErrorSerializer(serializers.Serializer[Any]):
    """The error of an answer. A program's own errors are returned unchanged."""

    message = serializers.CharField(allow_null=True)
    code = serializers.CharField(allow_null=True)


class StatementSerializer(serializers.Serializer[Any]):
    """A statement of an answer and its verification against the cited sources."""

    start = serializers.IntegerField()
    end = serializers.IntegerField()
    citations = serializers.ListField(child=serializers.CharField())
    verdict = serializers.CharField()
    by_model = serializers.BooleanField(
        required=False, help_text="Whether it was found by the language model's second look alone."
    )


class VerifiedSerializer(serializers.Serializer[Any]):
    """Who verified an answer written by a person, and until which day."""

    by = serializers.CharField()
    until = serializers.DateField()


class StoredMessageSerializer(serializers.Serializer[Message]):
    """A stored message.

    The context has the `sources` of each message, by its id, that the reader may open now. No other source is
    named, neither in the list nor in the text.
    """

    messageId = serializers.SerializerMethodField()
    id = serializers.SerializerMethodField(help_text="The same; the client saves a message under this name.")
    conversationId = serializers.UUIDField(source="conversation_id")
    status = serializers.SerializerMethodField()
    role = serializers.ChoiceField(Message.Role.values)
    content = serializers.SerializerMethodField()
    contentType = serializers.SerializerMethodField()
    sources = serializers.SerializerMethodField()
    error = serializers.SerializerMethodField()
    createdAt = TimestampField(source="created_at")
    verification = serializers.SerializerMethodField(required=False)
    verified = serializers.SerializerMethodField(
        required=False, help_text="Of an answer that a person wrote: who vouches for it, and until which day."
    )
    timestamp = serializers.SerializerMethodField(
        help_text="As the program wrote it, otherwise the time of day: “10:15 AM”."
    )
    agentName = serializers.CharField(source="agent_name", required=False)
    agentIdentifier = serializers.CharField(
        source="agent_name", required=False, help_text="The same as `agentName`."
    )
    fromClient = serializers.SerializerMethodField(
        required=False, help_text="The members that a program has saved and that come back as they were."
    )

    def to_representation(self, row: Message) -> dict[str, Any]:
        sent = super().to_representation(row)
        optional = {"verification": row.verification is not None, "fromClient": bool(sent["fromClient"])}
        optional["verified"] = row.verified is not None
        optional |= dict.fromkeys(("agentName", "agentIdentifier"), bool(row.agent_name))
        return {name: value for name, value in sent.items() if optional.get(name, True)}

    def get_messageId(self, row: Message) -> str:
        return identifier(row)

    def get_id(self, row: Message) -> str:
        return identifier(row)

    def get_status(self, row: Message) -> str:
        return SENT_STATUSES.get(Message.State(row.state), "failed")

    def get_content(self, row: Message) -> str:
        """The text as Markdown, as the reader may see it, with citations as links."""
        return with_links(readable_text(row, self._readable(row)), self._addresses(row))

    def get_contentType(self, row: Message) -> str:
        return row.content_type or ("text" if row.role == Message.Role.USER else "markdown")

    @extend_schema_field(SourceSerializer(many=True))
    def get_sources(self, row: Message) -> Any:
        if "sources" in _saved_members(row):
            return _saved_members(row)["sources"]
        cited = [source for source in self._readable(row) if source.label in row.citations]
        return SourceSerializer(cast(Any, cited), many=True).data if cited else []

    @extend_schema_field(ErrorSerializer(allow_null=True))
    def get_error(self, row: Message) -> Any:
        if "error" in _saved_members(row):
            return _saved_members(row)["error"]
        failure = failure_of(row)
        return {"message": failure[1], "code": failure[0]} if failure else None

    @extend_schema_field(StatementSerializer(many=True))
    def get_verification(self, row: Message) -> Any:
        if row.verification is None:
            return None
        gone = set(row.citations) - {source.label for source in self._readable(row)}
        return verified_as_sent(row.verification, row.content, gone, self._addresses(row))

    @extend_schema_field(VerifiedSerializer)
    def get_verified(self, row: Message) -> Any:
        return row.verified and {name: row.verified[name] for name in ("by", "until")}

    def get_timestamp(self, row: Message) -> str:
        return (row.client_members or {}).get("timestamp") or clock_time(row.created_at)

    def get_fromClient(self, row: Message) -> list[str]:
        return list(_saved_members(row))

    def _readable(self, row: Message) -> Sequence[Source]:
        return cast(Sequence[Source], self.context["sources"].get(row.pk, ()))

    def _addresses(self, row: Message) -> dict[str, str]:
        """The URL of each cited source by its label."""
        readable = self._readable(row)
        return {source.label: address_of(source) for source in readable if source.label in row.citations}


def identifier(message: Message) -> str:
    """The program's id of its message, otherwise the site's own."""
    return message.client_id or str(message.pk)


def clock_time(moment: datetime) -> str:
    """The time of day in the site's time zone, such as “10:15 AM”."""
    return moment.astimezone(timezone.get_default_timezone()).strftime("%I:%M %p")


def readable_text(row: Message, readable: Sequence[Source]) -> str:
    """The text without citations of sources that the reader may not open now."""
    open_labels = {source.label for source in readable}
    return without(row.content, [label for label in row.citations if label not in open_labels])


def address_of(row: Source) -> str:
    address = content_address(row.document.public_id, row.label.partition("#")[0].rpartition("/")[2])
    return address + (f"#page={row.page}" if row.page else "")


def _saved_members(row: Message) -> dict[str, Any]:
    """The sources and the error that a program saved with its own message."""
    members = (row.client_members or {}) if row.imported else {}
    return {name: members[name] for name in ("sources", "error") if members.get(name)}


# Rules that a generated description cannot express


class SavedMessageDescription(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """A message needs one of two ids; messages of the role `system` are skipped."""

    target_class = "history.serializers.SavedMessageSerializer"

    def map_serializer(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        schema: dict[str, Any] = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        schema["description"] = (
            "`id` is read where `messageId` is missing or empty, and `agentIdentifier` where `agentName` is."
            " Other members are ignored."
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
    """At least one member; others are ignored."""

    target_class = "history.serializers.ConversationChangeSerializer"

    def map_serializer(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        schema: dict[str, Any] = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        both = {
            "required": ["pinned", "archived"],
            "properties": {name: {"const": True} for name in ("pinned", "archived")},
        }
        return schema | {"anyOf": [{"required": [name]} for name in schema["properties"]], "not": both}


class ConversationRowDescription(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """Some members are optional."""

    target_class = "history.serializers.ConversationRowSerializer"
    match_subclasses = True

    def map_serializer(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        schema: dict[str, Any] = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        schema["required"] = [name for name in schema["required"] if name not in OWN_MEMBERS]
        return schema


class StoredMessageDescription(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """Some members are optional, and imported messages have their own form."""

    target_class = "history.serializers.StoredMessageSerializer"

    def map_serializer(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        schema: dict[str, Any] = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        schema["required"] = [
            name for name in schema["required"] if name not in ("verification", "verified", "fromClient")
        ]
        sources = schema["properties"]["sources"]
        sources["items"] = {"anyOf": [sources["items"], {"type": "object"}]}
        error = schema["properties"]["error"]
        error["oneOf"] = [{"anyOf": [error["oneOf"][0], {"type": "object"}]}, error["oneOf"][1]]
        return schema
