"""Merges a client program's messages into a stored conversation.

Programs can refer to the site's own messages but not edit them: a program's text must not pass as an answer
of the site. A request replaces the imported messages that it names, and keeps the others.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, Func, IntegerField, QuerySet, Sum, TextField
from django.db.models.functions import Cast, Coalesce
from django.utils import timezone

from chatsite.accounts.holds import demand_no_hold
from chatsite.accounts.principal import Principal

from . import recording
from .branches import START
from .citation_text import without, without_links
from .conversation_lists import shortened
from .models import Conversation, Message, Source
from .search_words import search_vector
from .serializers.request_serializers import Incoming

MAX_MESSAGES = 5_000  # messages of one conversation
MAX_BYTES = 10_000_000  # size of one conversation: all texts, and the data that programs store with them
TEXTS = ("content", "client_members")
MAX_UNNAMED = 20  # newest messages that a program can refer to by their text, if MAX_BYTES is exceeded
TITLE = 60  # characters of a title that is made from the first question
SAVED_FIELDS = (
    "role",
    "content",
    "state",
    "error_code",
    "agent_name",
    "content_type",
    "created_at",
    "client_members",
)
COPIED_FIELDS = (
    "content", "state", "finish_reason", "error_code", "request_id", "agent_name", "citations", "labels",
    "verification", "grade", "verified",
    "followups",
    "thoughts", "usage", "searched_count", "created_at", "finished_at",
)  # fmt: skip
LOADED_FIELDS = (
    "id",
    "conversation_id",
    "position",
    "chosen",
    "client_id",
    "imported",
    "finished_at",
    *SAVED_FIELDS,
)


class TooMany(Exception):
    """The conversation would exceed MAX_MESSAGES."""


class TooLarge(Exception):
    """The conversation would exceed MAX_BYTES."""


@transaction.atomic
def merge(principal: Principal, conversation_id: UUID, incoming: Sequence[Incoming]) -> None:
    """Replace imported messages that are stored already, and append new ones in order.

    Idempotent. A conversation that already exceeds MAX_BYTES, for instance because of the site's own answers,
    may not grow. Raises Conversation.DoesNotExist, TooMany, TooLarge, or OnHold if a message would change.
    """
    conversation = recording.lock_conversation(principal, conversation_id)
    size = _bytes_of(conversation.messages.all())
    most = max(size, MAX_BYTES)
    stored = _stored(conversation, incoming, partial=size > MAX_BYTES)
    known = _match(stored, incoming)
    new = [item for item in incoming if item.key not in known]
    if len(stored) + len(new) > MAX_MESSAGES:
        raise TooMany
    imported: list[Message] = []
    changed: list[Message] = []
    for item in incoming:
        if (row := known.get(item.key)) and row.imported:
            imported.append(row)
            size -= _size(row)
            if _replace(row, item):
                changed.append(row)
            size += _size(row)
    first = stored[-1].position + 1 if stored else 0
    added = [_new(conversation, first + number, item) for number, item in enumerate(new)]
    before = max((row.position for row in stored if row.chosen), default=START)
    if added and before != first - 1:
        added[0].follows = before
    if size + sum(map(_size, added)) > most:
        raise TooLarge
    answers = _answers(principal, [*added, *imported])
    # A program may have saved an answer while it was written.
    completed = [row for row in imported if not row.imported]
    changed = [row for row in changed if row.imported]
    if changed or completed:
        demand_no_hold(principal.user_id)
    for row in changed:
        row.search = search_vector(conversation.owner_id, row.content)
    for row in [*completed, *added]:
        row.search = search_vector(conversation.owner_id, without(row.content, row.citations))
    Message.objects.bulk_update(changed, [*SAVED_FIELDS, "search"])
    Message.objects.bulk_update(
        completed, [*COPIED_FIELDS, "imported", "content_type", "client_members", "search"]
    )
    Message.objects.bulk_create(added)
    sources = list(Source.objects.filter(message__in=answers).order_by())
    for source in sources:
        source.pk, source.message = None, answers[source.message_id]
    Source.objects.bulk_create(sources)
    if changed or completed or added:
        _date(conversation, [*stored, *added])


def _stored(conversation: Conversation, incoming: Sequence[Incoming], *, partial: bool) -> list[Message]:
    """The stored messages in order.

    With `partial`, only texts that `incoming` may change or refer to are loaded. Raises TooLarge if these
    texts are too large.
    """
    rows = conversation.messages.order_by("position").only(*LOADED_FIELDS)
    if not partial:
        return list(rows)
    stored = list(rows.defer(*TEXTS))
    keys = {item.key for item in incoming}
    named = [row.pk for row in stored if row.imported and keys & {row.client_id, str(row.pk)}]
    unnamed = [row.pk for row in stored if not row.imported and row.client_id is None]
    texts = Message.objects.filter(pk__in=[*named, *unnamed[-MAX_UNNAMED:]])
    if _bytes_of(texts) > MAX_BYTES:
        raise TooLarge
    by_id = {row.pk: row for row in texts.only(*LOADED_FIELDS)}
    return [by_id.get(row.pk, row) for row in stored]


def _bytes_of(messages: QuerySet[Message]) -> int:
    """The size of the messages in bytes; the site's own messages count, too."""
    members = Coalesce(_octets(Cast("client_members", TextField())), 0)
    total = messages.aggregate(total=Sum(_octets(F("content")) + members))["total"]
    return total or 0


def _octets(value: F | Cast) -> Func:
    return Func(value, function="octet_length", output_field=IntegerField())


def _size(row: Message) -> int:
    """The size of one message, computed like :func:`_bytes_of`."""
    members = row.client_members
    return len((row.content + (json.dumps(members, ensure_ascii=False) if members else "")).encode())


def _match(stored: Sequence[Message], incoming: Sequence[Incoming]) -> dict[str, Message]:
    """{id in the request: stored message} for the incoming messages that are stored already.

    A program may give its own id, unknown to the site, to a question or answer that the site stored itself.
    Such a message matches the next stored one with the same role and text, which gets the program's id.
    """
    by_key = {row.client_id: row for row in stored if row.client_id}
    by_id: dict[UUID | None, Message] = {row.pk: row for row in stored}
    places = {row.pk: place for place, row in enumerate(stored)}
    named = {by_key[item.key].pk for item in incoming if item.key in by_key}
    named |= {key for item in incoming if (key := _uuid(item.key)) in by_id and key is not None}
    known: dict[str, Message] = {}
    last = -1
    for item in incoming:
        row = by_key.get(item.key) or by_id.get(_uuid(item.key))
        if row is None:
            unnamed = (
                later
                for later in stored[last + 1 :]
                if later.chosen and not later.imported and later.client_id is None and later.pk not in named
                if later.role == item.role and "content" not in later.get_deferred_fields()
            )
            text = without_links(item.content)
            row = next((later for later in unnamed if without_links(later.content) == text), None)
        if row is not None:
            known[item.key] = row
            last = max(last, places[row.pk])
            if row.client_id is None and row.pk != _uuid(item.key):
                Message.objects.filter(pk=row.pk).update(client_id=item.key)
                row.client_id = item.key
    return known


def _replace(row: Message, item: Incoming) -> bool:
    """Update an imported message; returns whether it changed."""
    if not row.imported:
        return False
    given: dict[str, Any] = {
        "role": item.role,
        "content": item.content,
        "state": item.state,
        "error_code": None if item.state is None else item.error_code,
        "agent_name": item.agent_name,
        "content_type": item.content_type,
        "created_at": item.created_at,
    }
    before = {name: getattr(row, name) for name in (*given, "client_members")}
    row.client_members = _said({**(row.client_members or {}), **item.client_members})
    for name, value in given.items():
        if value is not None:
            setattr(row, name, value)
    return before != {name: getattr(row, name) for name in before}


def _said(members: Mapping[str, Any]) -> dict[str, Any] | None:
    """The members without empty values: `null` and `[]` in a request delete a stored value."""
    return {name: value for name, value in members.items() if value} or None


def _new(conversation: Conversation, position: int, item: Incoming) -> Message:
    now = timezone.now()
    return Message(
        conversation=conversation,
        position=position,
        role=item.role,
        content=item.content,
        state=item.state or Message.State.COMPLETE,
        error_code=item.error_code if item.state == Message.State.FAILED else "",
        agent_name=item.agent_name or "",
        content_type=item.content_type or ("text" if item.role == Message.Role.USER else "markdown"),
        client_id=item.key,
        client_members=_said(item.client_members),
        imported=True,
        created_at=item.created_at or now.replace(microsecond=now.microsecond // 1_000 * 1_000),
    )


def _answers(principal: Principal, imported: Sequence[Message]) -> dict[UUID, Message]:
    """Turn imported messages with the ids of answers in unlisted conversations into these answers.

    A message counts as the site's answer only for the caller who got that answer, and only if its text is the
    same apart from links in citations. Returns {id of the old answer: message}.
    """
    named = {key: row for row in imported if (key := _uuid(row.client_id or ""))}
    originals = Message.objects.filter(
        pk__in=named,
        role=Message.Role.ASSISTANT,
        imported=False,
        conversation__owner_id=principal.user_id,
        conversation__listed=False,
        conversation__deleted_at=None,
    ).exclude(state__in=Message.UNFINISHED)
    taken = {}
    for original in originals:
        row = named[original.pk]
        if row.role == original.role and without_links(row.content) == without_links(original.content):
            for name in COPIED_FIELDS:
                setattr(row, name, getattr(original, name))
            row.imported, row.content_type = False, ""
            taken[original.pk] = row
    return taken


def _date(conversation: Conversation, rows: Sequence[Message]) -> None:
    """Set the time of the newest message, and a title if there is none."""
    newest = max(max(row.created_at, row.finished_at or row.created_at) for row in rows)
    Conversation.objects.filter(pk=conversation.pk).update(updated_at=min(newest, datetime.now(UTC)))
    if conversation.title:
        return
    first = next((row.content for row in rows if row.role == Message.Role.USER and row.content.strip()), "")
    if first:
        recording.set_title(conversation.owner_id, conversation.pk, shortened(first, TITLE))


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
