"""Documents and passages for MCP clients, with the rights of the caller."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.db.models import Q

from chat.protocols.mcp_tools import Entry, Extract
from chat.requests import InvalidRequest
from chatsite.accounts.principal import Principal
from ingestion.models import Document, DocumentQuerySet
from ingestion.search.labels import content_address

MAX_CHARACTERS = 100_000  # characters of one part of a document
MAX_PASSAGES = 500
ID = re.compile(
    r"(?P<document>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
    r"(?:/(?P<passage>[0-9]{1,18})|/from/(?P<start>[0-9]{1,9}))?"
)
CURSOR = re.compile(r"([0-9]{1,16})-([0-9a-f]{32})")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Absolute = Callable[[str], str]  # turns a path of this site into an absolute URL


def list_documents(
    principal: Principal, absolute: Absolute, *, words: str = "", cursor: str = "", limit: int
) -> tuple[list[Entry], str]:
    """Documents that the caller can search, newest first, and the cursor of the next page.

    Raises InvalidRequest if `cursor` is not one of this site's.
    """
    found = _readable(principal).with_words(words)
    if cursor:
        match = CURSOR.fullmatch(cursor)
        if match is None:
            raise InvalidRequest("“cursor” does not come from this server.")
        moment, last = EPOCH + timedelta(microseconds=int(match[1])), UUID(match[2])
        found = found.filter(Q(created_at__lt=moment) | Q(created_at=moment, public_id__lt=last))
    rows = list(found.order_by("-created_at", "-public_id")[: limit + 1])
    next_cursor = ""
    if len(rows) > limit:
        # The cursor has time and public id, because the primary key would reveal the number of documents.
        last_row = rows[limit - 1]
        microseconds = (last_row.created_at - EPOCH) // timedelta(microseconds=1)
        next_cursor = f"{microseconds}-{last_row.public_id.hex}"
    return [_entry(row, absolute) for row in rows[:limit]], next_cursor


def extract(principal: Principal, wanted: str, absolute: Absolute) -> Extract | None:
    """The passage or part of a document with this id; None if it is not readable or does not exist."""
    match = ID.fullmatch(wanted)
    document = _readable(principal).with_public_id(UUID(match["document"])).first() if match else None
    if match is None or document is None:
        return None
    entry = _entry(document, absolute)
    if not match["passage"]:
        return _of_document(entry, document, int(match["start"] or 0))
    passage = document.passages.filter(pk=int(match["passage"])).first()
    if passage is None:
        return None
    return Extract(
        entry,
        f"{entry.document_id}/{passage.pk}",
        f"{entry.url}#page={passage.page}" if passage.page else entry.url,
        passage.content,
        passage.heading,
        passage.page,
    )


def _readable(principal: Principal) -> DocumentQuerySet:
    return Document.objects.visible_to(principal).searchable()


def _entry(document: Document, absolute: Absolute) -> Entry:
    return Entry(
        document_id=str(document.public_id),
        name=document.name,
        title=document.title,
        folder=document.folder,
        category=document.category,
        pages=document.page_count,
        changed=document.changed_at.isoformat(),
        url=absolute(content_address(document.public_id, document.name)),
    )


def _of_document(entry: Entry, document: Document, start: int) -> Extract | None:
    """As many passages from position `start` as fit into one part; None if there are none."""
    rows = document.passages.filter(position__gte=start).order_by("position")
    texts: list[str] = []
    length, heading, next_cursor = 0, "", ""
    for passage in rows[: MAX_PASSAGES + 1]:
        if texts and (length + len(passage.content) > MAX_CHARACTERS or len(texts) == MAX_PASSAGES):
            next_cursor = f"{entry.document_id}/from/{passage.position}"
            break
        new = (
            passage.heading and passage.heading != heading and not passage.content.startswith(passage.heading)
        )
        texts.append(f"{passage.heading}\n\n{passage.content}" if new else passage.content)
        length += len(texts[-1])
        heading = passage.heading
    if not texts:
        return None
    extract_id = f"{entry.document_id}/from/{start}" if start else entry.document_id
    return Extract(entry, extract_id, entry.url, "\n\n".join(texts), next_cursor=next_cursor)
