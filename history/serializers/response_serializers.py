"""Serializers for the responses of /chat-history.

Their members are those of the Chat UI's protocol (chat/protocols/chat_ui.py), with some additions, such as
`grade`.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast

from django.utils import timezone
from drf_spectacular.extensions import OpenApiSerializerExtension
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from chatsite.dependency_internals import serializer_schema
from history.citation_text import verified_as_sent, with_links, without
from history.failures import failure_of
from history.models import Conversation, Message, Source
from history.recording import timestamp
from history.tally import GRADES
from ingestion.search.labels import content_address

from .request_serializers import UNTITLED

SNIPPET = 300  # characters of a source
# Members that are omitted from a row if they are empty.
OWN_MEMBERS = frozenset({"pinned", "archived", "project_id"})
SENT_STATUSES = {
    Message.State.QUEUED: "processing",
    Message.State.STREAMING: "processing",
    Message.State.COMPLETE: "completed",
    Message.State.STOPPED: "completed",
}


class TimestampField(serializers.DateTimeField):
    """ISO 8601 in UTC with milliseconds."""

    def to_representation(self, value: datetime) -> str:
        return timestamp(value)


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
    """A row of the list, from a :class:`history.conversation_lists.Summary`."""

    id = serializers.UUIDField(source="conversation.pk")
    title = serializers.SerializerMethodField()
    lastMessage = serializers.CharField(source="last_message")
    lastUpdated = TimestampField(source="conversation.updated_at")
    messageCount = serializers.IntegerField(source="message_count")
    pinned = serializers.SerializerMethodField(
        required=False, help_text="`true`; missing if it does not apply."
    )
    archived = serializers.SerializerMethodField(
        required=False, help_text="`true`; missing if it does not apply."
    )
    project_id = serializers.UUIDField(
        source="conversation.project_id",
        required=False,
        help_text="The id of the project; missing for a conversation without one.",
    )

    def to_representation(self, row: Any) -> dict[str, Any]:
        # OWN_MEMBERS are not part of the published protocol, so they are omitted if empty.
        sent = super().to_representation(row)
        return {name: value for name, value in sent.items() if value or name not in OWN_MEMBERS}

    def get_title(self, row: Any) -> str:
        return row.conversation.title or UNTITLED

    def get_pinned(self, row: Any) -> bool:
        return row.conversation.pinned_at is not None

    def get_archived(self, row: Any) -> bool:
        return row.conversation.archived_at is not None


class MatchSerializer(serializers.Serializer[Any]):
    """A message that contains search terms, from a :class:`history.message_search.Hit`."""

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
    """A search result. The context has the `hits` in each conversation, by its id."""

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
        required=False, help_text="Whether only the language model's second look found it."
    )
    unclear = serializers.BooleanField(
        required=False,
        help_text="Whether it was not found because its wording differs too much from the source to tell.",
    )


class VerifiedSerializer(serializers.Serializer[Any]):
    """Who verified an answer that a person wrote, and until which day it is valid."""

    by = serializers.CharField()
    until = serializers.DateField()
    question = serializers.CharField(
        required=False, help_text="The question for which it was written, if a different one was asked."
    )


class StoredMessageSerializer(serializers.Serializer[Message]):
    """A stored message.

    The context has the `sources` that the reader may open now, by message id. The response names no other
    sources of this site, either in its list of sources or in the text.
    """

    messageId = serializers.SerializerMethodField()
    id = serializers.SerializerMethodField(
        help_text="The same id; the client saves a message under this name."
    )
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
        required=False,
        help_text="For an answer that a person wrote: who verified it, and until which day it is valid.",
    )
    grade = serializers.SerializerMethodField(
        required=False,
        help_text="How certain it is that an answer without a language model answers the question.",
    )
    timestamp = serializers.SerializerMethodField(
        help_text="The value that the program saved; otherwise the time of day: “10:15 AM”."
    )
    agentName = serializers.CharField(source="agent_name", required=False)
    agentIdentifier = serializers.CharField(
        source="agent_name", required=False, help_text="The same as `agentName`."
    )
    fromClient = serializers.SerializerMethodField(
        required=False, help_text="Members that a program saved, returned unchanged."
    )

    def to_representation(self, row: Message) -> dict[str, Any]:
        sent = super().to_representation(row)
        optional = {"verification": row.verification is not None, "fromClient": bool(sent["fromClient"])}
        optional |= {"verified": row.verified is not None, "grade": bool(sent["grade"])}
        optional |= dict.fromkeys(("agentName", "agentIdentifier"), bool(row.agent_name))
        return {name: value for name, value in sent.items() if optional.get(name, True)}

    def get_messageId(self, row: Message) -> str:
        return identifier(row)

    def get_id(self, row: Message) -> str:
        return identifier(row)

    def get_status(self, row: Message) -> str:
        return SENT_STATUSES.get(Message.State(row.state), "failed")

    def get_content(self, row: Message) -> str:
        """The text as Markdown, with citations as links.

        Citations of sources that the reader may not open now are removed.
        """
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
        gone = self._gone(row)
        return verified_as_sent(row.verification, row.content, gone, self._addresses(row))

    @extend_schema_field(VerifiedSerializer)
    def get_verified(self, row: Message) -> Any:
        return row.verified and {
            name: row.verified[name] for name in ("by", "until", "question") if row.verified.get(name)
        }

    @extend_schema_field(serializers.ChoiceField(GRADES))
    def get_grade(self, row: Message) -> str:
        return "" if self._gone(row) else row.grade

    def get_timestamp(self, row: Message) -> str:
        return (row.client_members or {}).get("timestamp") or clock_time(row.created_at)

    def get_fromClient(self, row: Message) -> list[str]:
        return list(_saved_members(row))

    def _readable(self, row: Message) -> Sequence[Source]:
        return cast(Sequence[Source], self.context["sources"].get(row.pk, ()))

    def _gone(self, row: Message) -> set[str]:
        """The labels of the cited sources that the reader may not open now."""
        return set(row.citations) - {source.label for source in self._readable(row)}

    def _addresses(self, row: Message) -> dict[str, str]:
        """The URLs of the cited sources that the reader may open now, by label."""
        readable = self._readable(row)
        return {source.label: address_of(source) for source in readable if source.label in row.citations}


def identifier(message: Message) -> str:
    """The id that a program gave the message; otherwise the site's id."""
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


# Additions to the API description that drf-spectacular cannot derive from the serializers.


class ConversationRowDescription(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """Some members are optional."""

    target_class = "history.serializers.response_serializers.ConversationRowSerializer"
    match_subclasses = True

    def map_serializer(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        schema = serializer_schema(auto_schema, self.target, direction)
        schema["required"] = [name for name in schema["required"] if name not in OWN_MEMBERS]
        return schema


class StoredMessageDescription(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """Some members are optional. Imported `sources` and `error` may be any objects."""

    target_class = "history.serializers.response_serializers.StoredMessageSerializer"

    def map_serializer(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        schema = serializer_schema(auto_schema, self.target, direction)
        schema["required"] = [
            name
            for name in schema["required"]
            if name not in ("verification", "verified", "grade", "fromClient")
        ]
        sources = schema["properties"]["sources"]
        sources["items"] = {"anyOf": [sources["items"], {"type": "object"}]}
        error = schema["properties"]["error"]
        error["oneOf"] = [{"anyOf": [error["oneOf"][0], {"type": "object"}]}, error["oneOf"][1]]
        return schema
