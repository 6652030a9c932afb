"""Describes the state, readers and last change of a document in words."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Q
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format, number_format
from django.utils.translation import gettext, gettext_lazy, ngettext

from chatsite.accounts.models import User
from chatsite.accounts.principal import Principal
from ingestion.models import (
    Document,
)
from ingestion.parsing.formats import ARCHIVE, CONTAINERS
from ingestion.queue.fair_queue import MAX_COUNTED, count_waiting_before
from ingestion.reasons import in_words

NAMES_SHOWN = 3
LEAVE = gettext_lazy("You can leave this page.")


@dataclass(frozen=True, slots=True)
class State:
    """The state of a document: the badge's text and appearance, and a line below the badge.

    `words` are the badge's text; `tone` and `icon` determine its appearance. `detail` is the line.
    """

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
class PartsState:
    """How many files of an archive or message are in each state, without those in nested ones."""

    total: int = 0
    ready: int = 0
    failed: int = 0

    @property
    def unfinished(self) -> int:
        return self.total - self.ready - self.failed


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a document list."""

    document: Document
    state: State
    readers: Readers
    changed: str
    parts: PartsState | None = None

    @property
    def folder(self) -> str:
        return self.document.shown_folder.replace("/", " / ")

    @property
    def unfinished(self) -> bool:
        return is_unfinished(self.document, self.parts)

    @property
    def icon(self) -> str:
        return "folder" if self.document.media_type == ARCHIVE.media_type else "doc"


def rows(documents: Sequence[Document], principal: Principal) -> list[Row]:
    """A row for each document, whose access lists should be prefetched (see library.with_readers)."""
    before, parts = places(documents), parts_of(documents)
    groups = own_groups(principal)
    return [
        Row(
            each,
            state(each, before.get(each.queue_position), parts.get(each.pk)),
            readers(each, principal, groups),
            changed(each.changed_at),
            parts.get(each.pk),
        )
        for each in documents
    ]


def parts_of(documents: Iterable[Document]) -> dict[int, PartsState]:
    """The states of the files in each archive and message of `documents`, by its primary key."""
    wholes = [each.pk for each in documents if each.media_type in CONTAINERS]
    if not wholes:
        return {}
    counted = (
        Document.objects.filter(part_of__in=wholes)
        .order_by()
        .values_list("part_of")
        .annotate(
            total=Count("pk"),
            ready=Count("pk", filter=Q(status=Document.Status.READY)),
            failed=Count("pk", filter=Q(status=Document.Status.FAILED)),
        )
    )
    return {whole: PartsState(*numbers) for whole, *numbers in counted}


def is_unfinished(document: Document, parts: PartsState | None = None) -> bool:
    """Whether the document or one of its parts has yet to be read."""
    return document.status in Document.UNFINISHED or bool(parts and parts.unfinished)


def places(documents: Iterable[Document]) -> dict[int, int]:
    """How many documents will be read before each waiting one, by queue position."""
    waiting = {each.queue_position for each in documents if each.status == Document.Status.WAITING}
    return count_waiting_before(waiting) if waiting else {}


def state(document: Document, before: int | None = None, parts: PartsState | None = None) -> State:
    """The state of the document; `before` is how many documents will be read before it, if known.

    The state of an archive or a message that has been read depends on its `parts`.
    """
    done, total = document.progress_done, document.progress_total
    match document.status:
        case Document.Status.READY if document.is_expired:
            return State(gettext("Expired"), "danger", "error", expired(document))
        case Document.Status.READY if parts and parts.unfinished:
            words = gettext("Reading file %(done)s of %(total)s")
            done = parts.ready + parts.failed + 1
            return State(words % {"done": done, "total": parts.total}, detail=str(LEAVE))
        case Document.Status.READY if parts and parts.failed:
            words = gettext("%(done)s of %(total)s ready")
            return State(words % {"done": parts.ready, "total": parts.total}, "warn", "warn")
        case Document.Status.READY:
            return State(gettext("Ready"), "ok", "check")
        case Document.Status.FAILED:
            detail = in_words(document.reason or "The file could not be read.")
            if document.version:
                detail += " " + gettext("Until it is read again, answers use the previous version.")
            return State(gettext("Failed"), "danger", "error", detail)
        case Document.Status.READING:
            words = gettext("Reading page %(done)s of %(total)s") if total else gettext("Reading")
            return State(words % {"done": done, "total": total} if total else words, detail=str(LEAVE))
        case Document.Status.INDEXING:
            # After embedding, the passages have yet to be written.
            words = gettext("Embedding %(done)s of %(total)s") if done < total else gettext("Indexing")
            numbers = {
                name: number_format(n, force_grouping=True) for name, n in (("done", done), ("total", total))
            }
            return State(words % numbers, detail=str(LEAVE))
    if document.reason:
        reason = in_words(document.reason)
    elif not before:
        reason = gettext("Next in the queue.")
    elif before >= MAX_COUNTED:
        reason = gettext("At least %(number)s documents ahead.") % {"number": MAX_COUNTED}
    else:
        words = ngettext("%(number)s document ahead.", "%(number)s documents ahead.", before)
        reason = words % {"number": before}
    return State(gettext("Waiting"), detail=f"{reason} {LEAVE}")


def expired(document: Document) -> str:
    """A remark about the last day of an expired document, shown below its state."""
    day = date_format(document.valid_until, gettext("j M Y")) if document.valid_until else ""
    return gettext("It was valid until %(day)s: search no longer finds it, and answers do not cite it.") % {
        "day": day
    }


def own_groups(principal: Principal) -> frozenset[int]:
    """The ids of the groups that a person is in."""
    memberships = User.groups.through.objects.filter(user=principal.user_id)
    return frozenset(memberships.values_list("group", flat=True))


def readers(document: Document, principal: Principal, groups_of_reader: Collection[int]) -> Readers:
    """Who may read the document, as text.

    The owner sees names of groups and people, up to NAMES_SHOWN of each. Other people only see the names of
    their own groups, and the numbers of other groups and people.
    """
    is_owner = document.owner_id == principal.user_id
    entries = list(document.access_list.entries.all())
    if any(entry.guests for entry in entries):
        return Readers("people", gettext("Everyone, including guests"))
    if any(entry.user_id is None and entry.group_id is None for entry in entries):
        return Readers("people", gettext("Everyone"))
    groups = [entry.group for entry in entries if entry.group is not None]
    named = [group.name for group in groups if is_owner or group.pk in groups_of_reader]
    others = [entry for entry in entries if entry.user_id not in (None, document.owner_id, principal.user_id)]
    if not groups and not others:
        return Readers("lock", gettext("Only you") if is_owner else gettext("You and the owner"))
    parts = _shortened(named)
    if unnamed := len(groups) - len(named):
        words = ngettext("%(number)s other group", "%(number)s other groups", unnamed)
        parts.append(words % {"number": unnamed})
    if others and is_owner:
        parts += _shortened([entry.user.display_name() if entry.user else "" for entry in others])
    elif others:
        words = ngettext("%(number)s other person", "%(number)s other people", len(others))
        parts.append(words % {"number": len(others)})
    return Readers("people" if groups else "lock", ", ".join(parts))


def _shortened(names: list[str]) -> list[str]:
    more = len(names) - NAMES_SHOWN
    return names if more <= 0 else [*names[:NAMES_SHOWN], gettext("%(number)s more") % {"number": more}]


def changed(moment: datetime) -> str:
    """The time of the last change as “now”, “today”, “yesterday”, or a date."""
    if timezone.now() - moment < timedelta(minutes=1):
        return gettext("now")
    days = (timezone.localdate() - timezone.localdate(moment)).days
    named = {0: gettext("today"), 1: gettext("yesterday")}
    return named.get(days) or date_format(timezone.localtime(moment), gettext("j M Y"))


def as_json(row: Row) -> dict[str, Any]:
    """The members that the upload and attachment scripts need."""
    document, now = row.document, row.state
    return {
        "id": str(document.public_id),
        "url": reverse("ingestion:document", args=[document.public_id]),
        "name": document.name,
        "unfinished": row.unfinished,
        "words": now.words,
        "tone": now.tone,
        "icon": now.icon,
        "detail": now.detail,
        "readers": row.readers.words,
        "done": document.progress_done,
        "total": document.progress_total,
        "pages": document.page_count,
    }
