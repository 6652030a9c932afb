"""The state, readers and last change of a document in words for people."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext

from chatsite.accounts.principal import Principal
from ingestion.fair_queue import (
    MAX_COUNTED,
    count_waiting_before,
)
from ingestion.models import (
    AccessEntry,
    Document,
)

NAMES_SHOWN = 3
LEAVE = "You can leave this page."


@dataclass(frozen=True, slots=True)
class State:
    """`words` for the badge, `detail` for the line below it; `tone` and `icon` are the badge's look."""

    words: str
    tone: str = ""
    icon: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Readers:
    """Who may read a document."""

    icon: str
    words: str


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a list."""

    document: Document
    state: State
    readers: Readers
    changed: str

    @property
    def folder(self) -> str:
        return self.document.folder.replace("/", " / ")

    @property
    def unfinished(self) -> bool:
        return self.document.status in Document.UNFINISHED


def rows(documents: Sequence[Document], principal: Principal) -> list[Row]:
    """A line for each document; their access lists should be prefetched (see listing.with_readers)."""
    before = places(documents)
    return [
        Row(
            each,
            state(each, before.get(each.queue_position)),
            readers(each, principal),
            changed(each.changed_at),
        )
        for each in documents
    ]


def places(documents: Iterable[Document]) -> dict[int, int]:
    """How many documents are read before each waiting one, by queue position."""
    waiting = {each.queue_position for each in documents if each.status == Document.Status.WAITING}
    return count_waiting_before(waiting) if waiting else {}


def state(document: Document, before: int | None = None) -> State:
    """The state of the document; `before` is the number of documents read before it, if known."""
    done, total = document.progress_done, document.progress_total
    match document.status:
        case Document.Status.READY if document.is_expired:
            return State(gettext("Expired"), "danger", "error", expired(document))
        case Document.Status.READY:
            return State("Ready", "ok", "check")
        case Document.Status.FAILED:
            kept = " Until it is read again, answers use the previous version." if document.version else ""
            return State(
                "Failed", "danger", "error", (document.reason or "The file could not be read.") + kept
            )
        case Document.Status.READING:
            return State(f"Reading page {done} of {total}" if total else "Reading", detail=LEAVE)
        case Document.Status.INDEXING:
            # After embedding, the passages are still to be written.
            return State(f"Embedding {done:,} of {total:,}" if done < total else "Indexing", detail=LEAVE)
    return State("Waiting", detail=f"{document.reason or _queued(before)} {LEAVE}")


def expired(document: Document) -> str:
    """What the last day of a document means, after it."""
    day = date_format(document.valid_until, "j M Y") if document.valid_until else ""
    return gettext("It was valid until %(day)s: search no longer finds it, and answers do not cite it.") % {
        "day": day
    }


def _queued(before: int | None) -> str:
    if not before:
        return "Next in the queue."
    if before >= MAX_COUNTED:
        return f"At least {MAX_COUNTED} documents ahead."
    return "1 document ahead." if before == 1 else f"{before} documents ahead."


def readers(document: Document, principal: Principal) -> Readers:
    """Only the owner sees the names of people; others see their number."""
    entries = list(document.access_list.entries.all())
    if any(entry.guests for entry in entries):
        return Readers("people", "Everyone, including guests")
    if any(entry.user_id is None and entry.group_id is None for entry in entries):
        return Readers("people", "Everyone")
    groups = [entry.group.name for entry in entries if entry.group is not None]
    others = [entry for entry in entries if entry.user_id not in (None, document.owner_id, principal.user_id)]
    if not groups and not others:
        return Readers("lock", "Only you" if document.owner_id == principal.user_id else "You and the owner")
    parts = _shortened(groups)
    if others and document.owner_id == principal.user_id:
        parts += _shortened([_name(entry) for entry in others])
    elif others:
        parts.append("1 other person" if len(others) == 1 else f"{len(others)} other people")
    return Readers("people" if groups else "lock", ", ".join(parts))


def _shortened(names: list[str]) -> list[str]:
    more = len(names) - NAMES_SHOWN
    return names if more <= 0 else [*names[:NAMES_SHOWN], f"{more} more"]


def _name(entry: AccessEntry) -> str:
    return entry.user.display_name() if entry.user is not None else ""


def changed(moment: datetime) -> str:
    """The time of the last change as “now”, “today”, “yesterday”, or a date."""
    if timezone.now() - moment < timedelta(minutes=1):
        return "now"
    days = (timezone.localdate() - timezone.localdate(moment)).days
    return {0: "today", 1: "yesterday"}.get(days) or date_format(timezone.localtime(moment), "j M Y")


def as_json(document: Document, before: int | None = None) -> dict[str, Any]:
    """The members that the upload module shows; `before` as for :func:`state`."""
    now = state(document, before)
    return {
        "id": str(document.public_id),
        "url": reverse("ingestion:document", args=[document.public_id]),
        "name": document.name,
        "unfinished": document.status in Document.UNFINISHED,
        "words": now.words,
        "tone": now.tone,
        "icon": now.icon,
        "detail": now.detail,
        "done": document.progress_done,
        "total": document.progress_total,
        "pages": document.page_count,
    }
