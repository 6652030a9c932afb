"""Reading what programs send to /chat-history. The names on the wire stand here and in wire.py only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.utils import timezone

from ingestion.search.labels import content_address

from .citation_text import verified_as_sent, with_links, without, without_links
from .failures import WORDS, failure_of
from .listing import Summary
from .models import (
    Conversation,
    Message,
    Source,
)
from .recording import TITLE_LENGTH, timestamp
from .search import Hit

MAX_MESSAGES = 1_000  # in one request
ID_LENGTH = 200
AGENT_LENGTH = 100
TIME_LENGTH = 40
MAX_JSON_LENGTH = 100_000  # characters of the sources or the error of one message
MAX_DEPTH = 10
MODES = (*Conversation.Mode.values,)
# The role of the Chat UI's error messages: it sends them along, and shows none that it reads back.
DROPPED_ROLE = "system"
UNTITLED = "New Chat"  # what the client calls a conversation that has no title yet
STATES = {
    "completed": Message.State.COMPLETE,
    "processing": Message.State.STOPPED,  # what had arrived; nobody will go on with it here
    "failed": Message.State.FAILED,
}


class Invalid(ValueError):
    """Not well formed; the message is a sentence that names the member."""


@dataclass(frozen=True, slots=True)
class Incoming:
    """One message as a program tells it; None where it says nothing."""

    key: str
    role: str
    content: str
    state: Message.State | None = None
    error_code: str = ""
    agent_name: str | None = None
    content_type: str | None = None
    created_at: datetime | None = None
    client_members: Mapping[str, Any] = field(default_factory=dict)  # only those that it says


def new_conversation(body: Any) -> tuple[str, str]:
    """Mode and title; the title is empty where the site is to find one. Raises Invalid."""
    values = an_object(body, "The body")
    title = _optional_text(values, "title", "", TITLE_LENGTH) or ""
    title = " ".join(title.split())
    return mode_of(values.get("mode"), "mode") or MODES[0], "" if title == UNTITLED else title


def new_title(body: Any) -> str:
    """Raises Invalid."""
    values = an_object(body, "The body")
    title = _optional_text(values, "title", "", TITLE_LENGTH)
    if title is None or not title.strip():
        raise Invalid("“title” must be text with at least one character.")
    return title


def mode_of(value: Any, member: str) -> str | None:
    """None where nothing is said. Raises Invalid."""
    return None if value is None else _one_of(value, member, MODES)


def messages(body: Any) -> list[Incoming]:
    """The messages to keep, without those of the role `system`, which are left out unread. Raises Invalid."""
    items = an_object(body, "The body").get("messages")
    if not isinstance(items, list):
        raise Invalid("“messages” must be a list.")
    if len(items) > MAX_MESSAGES:
        raise Invalid(f"“messages” holds more than {MAX_MESSAGES:,} messages.")
    read: dict[str, Incoming] = {}
    for number, item in enumerate(items):
        if isinstance(item, Mapping) and item.get("role") == DROPPED_ROLE:
            continue
        message = _message(item, f"messages[{number}]")
        if message.key in read:
            raise Invalid(f"“messages[{number}].messageId” names the same message as an earlier one.")
        read[message.key] = message
    return list(read.values())


def an_object(value: Any, member: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise Invalid(f"{member} must be a JSON object.")
    return value


def _message(value: Any, at: str) -> Incoming:
    values = an_object(value, f"“{at}”")
    role = _one_of(values.get("role"), f"{at}.role", Message.Role.values)
    _optional_text(values, "conversationId", f"{at}.", ID_LENGTH)
    status = values.get("status")
    code = _error_code(values.get("error"), f"{at}.error")
    kind = values.get("contentType")
    return Incoming(
        key=_key(values, at),
        role=role,
        content=_content(values.get("content"), f"{at}.content", role),
        state=None if status is None else STATES[_one_of(status, f"{at}.status", STATES)],
        error_code=code,
        agent_name=_either(values, ("agentName", "agentIdentifier"), at, AGENT_LENGTH),
        content_type=None if kind is None else _one_of(kind, f"{at}.contentType", ("text", "markdown")),
        created_at=_moment(values, at),
        client_members=_client_members(values, at),
    )


def _key(values: Mapping[str, Any], at: str) -> str:
    key = _either(values, ("messageId", "id"), at, ID_LENGTH)
    if not key:
        raise Invalid(f"“{at}.messageId” is missing.")
    return key


def _content(value: Any, member: str, role: str) -> str:
    most = settings.MESSAGE_MAX_CHARACTERS if role == Message.Role.USER else settings.ANSWER_MAX_CHARACTERS
    if isinstance(value, str) and len(value) > most >= len(without_links(value)):
        return _text(value, member, len(value))  # the links that the site put in count for nothing
    return _text(value, member, most)


def _client_members(values: Mapping[str, Any], at: str) -> dict[str, Any]:
    """What the program keeps here and gets back as it came; the site itself makes nothing of it."""
    said = {name: values[name] for name in ("sources", "error", "timestamp") if name in values}
    sources = said.get("sources")
    if sources is not None and not isinstance(sources, list):
        raise Invalid(f"“{at}.sources” must be a list.")
    for number, source in enumerate(sources or ()):
        an_object(source, f"“{at}.sources[{number}]”")
    for name, value in said.items():
        _check_json(value, f"{at}.{name}")
    return said


def _check_json(value: Any, member: str) -> None:
    """Texts that can be stored, and no deeper or longer than a list of sources is. Raises Invalid."""
    waiting, length = [(value, 0)], 0
    while waiting:
        item, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise Invalid(f"“{member}” is nested too deeply.")
        if isinstance(item, str):
            length += len(_text(item, member, MAX_JSON_LENGTH))
        elif isinstance(item, Mapping):
            waiting += [(part, depth + 1) for pair in item.items() for part in pair]
        elif isinstance(item, list):
            waiting += [(part, depth + 1) for part in item]
        length += 2
        if length > MAX_JSON_LENGTH:
            raise Invalid(f"“{member}” is longer than {MAX_JSON_LENGTH:,} characters.")


def _error_code(value: Any, member: str) -> str:
    """The code, where this site has words for it; a program's own words are not shown as the site's."""
    if value is None:
        return ""
    values = an_object(value, f"“{member}”")
    _optional_text(values, "message", f"{member}.", settings.MESSAGE_MAX_CHARACTERS)
    code = _optional_text(values, "code", f"{member}.", ID_LENGTH)
    return code if code in WORDS else ""


def _moment(values: Mapping[str, Any], at: str) -> datetime | None:
    """`createdAt`; or `timestamp`, where it is more than a clock time such as “10:15 AM”."""
    created = _optional_text(values, "createdAt", f"{at}.", TIME_LENGTH)
    clock = _optional_text(values, "timestamp", f"{at}.", TIME_LENGTH)
    if created is not None:
        moment = _parsed(created)
        if moment is None:
            raise Invalid(f"“{at}.createdAt” must be a time such as “2023-04-07T11:30:00.000Z”.")
        return moment
    return _parsed(clock) if clock else None


def _parsed(text: str) -> datetime | None:
    """In UTC, to the millisecond, as it is sent back."""
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return moment.replace(microsecond=moment.microsecond // 1_000 * 1_000)


def _either(values: Mapping[str, Any], names: tuple[str, ...], at: str, most: int) -> str | None:
    """The first that is given; all of them are checked."""
    found = [_optional_text(values, name, f"{at}.", most) for name in names]
    return next((value for value in found if value), None)


def _optional_text(values: Mapping[str, Any], name: str, prefix: str, most: int) -> str | None:
    value = values.get(name)
    return None if value is None else _text(value, f"{prefix}{name}", most)


def _text(value: Any, member: str, most: int) -> str:
    if not isinstance(value, str):
        raise Invalid(f"“{member}” must be text.")
    if len(value) > most:
        raise Invalid(f"“{member}” is longer than {most:,} characters.")
    if "\x00" in value or any("\ud800" <= character <= "\udfff" for character in value):
        raise Invalid(f"“{member}” holds characters that are not text.")
    return value


def _one_of(value: Any, member: str, choices: Any) -> str:
    if not isinstance(value, str) or value not in choices:
        names = ", ".join(f"“{choice}”" for choice in choices)
        raise Invalid(f"“{member}” must be one of {names}.")
    return value


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
        "content": text_with_links(row, readable),
        "contentType": row.content_type or ("text" if row.role == Message.Role.USER else "markdown"),
        "sources": [source(item) for item in readable if item.label in row.citations],
        "error": {"message": failure[1], "code": failure[0]} if failure else None,
        "createdAt": timestamp(row.created_at),
    }
    if row.verification is not None:
        gone = set(row.citations) - {item.label for item in readable}
        addresses = {item.label: address_of(item) for item in readable if item.label in row.citations}
        sent["verification"] = verified_as_sent(row.verification, row.content, gone, addresses)
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


def text_with_links(row: Message, readable: Sequence[Source]) -> str:
    """The readable text as its client shows it, as Markdown: citations of the site are links."""
    addresses = {item.label: address_of(item) for item in readable if item.label in row.citations}
    return with_links(readable_text(row, readable), addresses)


def address_of(row: Source) -> str:
    address = content_address(row.document.public_id, row.label.partition("#")[0].rpartition("/")[2])
    return address + (f"#page={row.page}" if row.page else "")


def source(row: Source) -> Json:
    return {
        "id": f"{row.document.public_id}-{row.passage_id}",
        "title": row.title,
        "url": address_of(row),
        "snippet": " ".join(row.content.split())[:SNIPPET],
    }
