"""Lists of conversations, newest first, in pages that remain stable while rows are added."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.core import signing
from django.db.models import BooleanField, Count, Exists, ExpressionWrapper, F, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce, Left

from chatsite.accounts.principal import Principal
from ingestion.models import Document

from .citation_text import without
from .models import Conversation, ConversationQuerySet, Message, Source

SIDEBAR_ROWS = 30
EXCERPT = 200  # characters of the last message that a row shows, without citations
READ = 2_000  # characters of the last message that are loaded for the excerpt
SALT = "history.listing"
SITE_SOURCE = re.compile(r"([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})-\d{1,20}")


@dataclass(frozen=True, slots=True)
class Place:
    """The last row of a page, after which the next page begins."""

    updated_at: datetime
    id: UUID


@dataclass(frozen=True, slots=True)
class Summary:
    """A conversation as a row of the list."""

    conversation: Conversation
    message_count: int
    last_message: str


def newest(principal: Principal, limit: int) -> ConversationQuerySet:
    """Up to `limit` pinned conversations and up to `limit` + 1 of the newest others, unordered.

    The annotation `running` says whether an answer is being written, `fresh` whether the conversation has
    changed since its owner last opened it (None if never).
    """
    unfinished = Message.objects.filter(conversation=OuterRef("pk"), state__in=Message.UNFINISHED)
    is_fresh = ExpressionWrapper(Q(seen_at__lt=F("updated_at")), BooleanField())
    rows = Conversation.objects.owned_by(principal).current().defer("search")
    rows = rows.annotate(running=Exists(unfinished), fresh=is_fresh)
    pinned = rows.exclude(pinned_at=None).order_by("-pinned_at")[:limit]
    return pinned.union(rows.filter(pinned_at=None).order_by("-updated_at", "-id")[: limit + 1], all=True)


def page(
    rows: ConversationQuerySet, limit: int, below: Place | None = None
) -> tuple[list[Conversation], Place | None]:
    """Up to `limit` rows, and the place after which the next page begins, if any."""
    if below is not None:
        rows = older(rows, below)
    found = list(rows.order_by("-updated_at", "-id").defer("search")[: limit + 1])
    if len(found) <= limit:
        return found, None
    return found[:limit], place(found[limit - 1])


def older(rows: ConversationQuerySet, below: Place) -> ConversationQuerySet:
    """The rows after the place `below`."""
    follows = Q(updated_at__lt=below.updated_at) | Q(id__lt=below.id)
    return rows.filter(follows, updated_at__lte=below.updated_at)


def place(last: Conversation) -> Place:
    """The place of this row."""
    return Place(last.updated_at, last.pk)


def summaries(conversations: Sequence[Conversation]) -> list[Summary]:
    """Summaries of conversations, in two queries."""
    messages_shown = Message.objects.chosen().filter(conversation=OuterRef("pk")).order_by()
    newest = messages_shown.exclude(content="").order_by("-position").values("pk")[:1]
    counted = messages_shown.values("conversation").annotate(number=Count("*")).values("number")
    figures = {
        pk: (number, last)
        for pk, number, last in Conversation.objects.filter(pk__in=[row.pk for row in conversations])
        .order_by()
        .annotate(number=Coalesce(Subquery(counted), 0), last=Subquery(newest))
        .values_list("pk", "number", "last")
    }
    rows = Message.objects.filter(pk__in=[last for _, last in figures.values() if last])
    beginnings = rows.order_by().annotate(beginning=Left("content", READ))
    texts = {
        pk: shortened(without(beginning, citations), EXCERPT)
        for pk, beginning, citations in beginnings.values_list("pk", "beginning", "citations")
    }
    return [
        Summary(row, number, texts.get(last, ""))
        for row in conversations
        for number, last in [figures.get(row.pk, (0, None))]
    ]


def cursor(place: Place) -> str:
    """A signed cursor for a place."""
    return signing.dumps([place.updated_at.isoformat(), str(place.id)], salt=SALT)


def place_of(cursor: str) -> Place:
    """The place of a cursor. Raises ValueError for an invalid one."""
    try:
        moment, identifier = signing.loads(cursor, salt=SALT)
    except signing.BadSignature:
        raise ValueError("This is not a valid cursor.") from None
    return Place(datetime.fromisoformat(moment), UUID(identifier))


def shortened(text: str, length: int) -> str:
    """The text on one line, cut to `length` characters."""
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[: length - 1].rstrip()}…"


def messages_shown(
    principal: Principal, conversation: Conversation, *, aside: bool = False
) -> tuple[Sequence[Message], dict[UUID, list[Source]]]:
    """The chosen branch's messages, and {message id: sources that the caller may open now}.

    With `aside`, the messages of all branches. Takes two queries, and two more if imported messages name
    documents of this site.
    """
    rows = conversation.messages.all() if aside else conversation.messages.chosen()
    messages = list(rows.defer("thoughts", "search").order_by("position"))
    found = Source.objects.visible_to(principal).filter(message__conversation=conversation)
    if not aside:
        found = found.filter(message__chosen=True)
    sources: dict[UUID, list[Source]] = {}
    for row in found.select_related("document").order_by("message_id", "rank"):
        sources.setdefault(row.message_id, []).append(row)
    _leave_out_withdrawn(principal, messages)
    return messages, sources


def _leave_out_withdrawn(principal: Principal, messages: Sequence[Message]) -> None:
    """Remove this site's sources from imported messages if the caller may not open them now."""
    written = {
        row: row.client_members["sources"]
        for row in messages
        if row.client_members and row.client_members.get("sources")
    }
    named = {name for sources in written.values() for each in sources if (name := _document_of(each))}
    if not named:
        return
    readable = {None, *Document.objects.visible_to(principal).public_ids_among(named)}
    for row, sources in written.items():
        kept = [each for each in sources if _document_of(each) in readable]
        row.client_members = {**(row.client_members or {}), "sources": kept}


def _document_of(source: Any) -> UUID | None:
    """The document of a source in this site's format; None for any other source."""
    identifier, address = source.get("id"), source.get("url")
    if not (isinstance(identifier, str) and isinstance(address, str) and "/content/" in address):
        return None
    found = SITE_SOURCE.fullmatch(identifier)
    return UUID(found[1]) if found else None
