"""What /chat-history sends, member by member, as the Chat UI's document has it."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.utils import timezone

from ingestion.labels import content_address

from .citing import without
from .failures import failure_of
from .incoming import UNTITLED
from .listing import Summary
from .models import Conversation, Message, Source
from .recording import timestamp
from .search import Hit

Json = dict[str, Any]
SNIPPET = 300  # characters of a source
STATUSES = {
    Message.State.QUEUED: "processing",
    Message.State.STREAMING: "processing",
    Message.State.COMPLETE: "completed",
    Message.State.STOPPED: "completed",
}


def error(message: str, code: str) -> Json:
    return {"error": {"message": message, "code": code}}


def created(conversation: Conversation) -> Json:
    """A new conversation: nothing was said in it yet."""
    return {
        "id": str(conversation.pk),
        "title": conversation.title or UNTITLED,
        "lastUpdated": timestamp(conversation.updated_at),
        "messageCount": 0,
    }


def summary(row: Summary) -> Json:
    return {
        "id": str(row.conversation.pk),
        "title": row.conversation.title or UNTITLED,
        "lastMessage": row.last_message,
        "lastUpdated": timestamp(row.conversation.updated_at),
        "messageCount": row.message_count,
    }


def found(row: Summary, hits: Sequence[Hit]) -> Json:
    """A row of a search: with the messages that have the words, and where these stand in each snippet."""
    matches = [
        {
            "messageId": identifier(hit.message),
            "role": hit.message.role,
            "snippet": hit.excerpt.text,
            "highlights": [list(mark) for mark in hit.excerpt.marks],
            "createdAt": timestamp(hit.message.created_at),
        }
        for hit in hits
    ]
    return summary(row) | {"matches": matches}


def identifier(message: Message) -> str:
    """What the program calls it that wrote it, else our own."""
    return message.client_id or str(message.pk)


def message(row: Message, readable: Sequence[Source]) -> Json:
    """`readable` are the sources of the answer that the reader may open now: no other is named."""
    failure = failure_of(row)
    sent: Json = {
        "messageId": identifier(row),
        "id": identifier(row),  # what the client calls it when it saves
        "conversationId": str(row.conversation_id),
        "status": STATUSES.get(Message.State(row.state), "failed"),
        "role": row.role,
        "content": readable_text(row, readable),
        "contentType": row.content_type or ("text" if row.role == Message.Role.USER else "markdown"),
        "sources": [source(item) for item in readable if item.label in row.citations],
        "error": {"message": failure[1], "code": failure[0]} if failure else None,
        "createdAt": timestamp(row.created_at),
    }
    # The two members by which the Chat UI shows a stored message.
    clients = row.client_members or {}
    sent["timestamp"] = clients.get("timestamp") or clock_time(row.created_at)
    if row.agent_name:
        sent["agentName"] = sent["agentIdentifier"] = row.agent_name
    if row.imported:
        given_back = {name: clients[name] for name in ("sources", "error") if clients.get(name)}
        sent |= given_back
        if given_back:
            sent["fromClient"] = list(given_back)
    return sent


def clock_time(moment: datetime) -> str:
    """The time of day in the site's time zone, such as “10:15 AM”."""
    return moment.astimezone(timezone.get_default_timezone()).strftime("%I:%M %p")


def readable_text(row: Message, readable: Sequence[Source]) -> str:
    """The text without citations of what the reader may not open (any more)."""
    open_labels = {item.label for item in readable}
    return without(row.content, [label for label in row.citations if label not in open_labels])


def source(row: Source) -> Json:
    address = content_address(row.document.public_id, row.label.partition("#")[0].rpartition("/")[2])
    return {
        "id": f"{row.document.public_id}-{row.passage_id}",
        "title": row.title,
        "url": address + (f"#page={row.page}" if row.page else ""),
        "snippet": " ".join(row.content.split())[:SNIPPET],
    }
