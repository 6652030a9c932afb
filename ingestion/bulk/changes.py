"""Performs and undoes bulk changes of documents.

A worker processes the documents in batches. The change of a document and its result are committed together,
so that each document is changed exactly once or not at all, even if a worker dies.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from datetime import date, timedelta
from typing import Any

from django.contrib.auth.models import Group
from django.db import IntegrityError, transaction
from django.db.models import Count, F
from django.utils import timezone
from django.utils.translation import gettext_noop, override
from procrastinate.contrib.django import app

from chatsite.accounts.audit import named, record
from chatsite.accounts.holds import DOCUMENT_ON_HOLD, OnHold
from chatsite.accounts.models import AuditEntry, User
from chatsite.db import side_jobs
from chatsite.db.threads import reading_everything
from ingestion import documents
from ingestion.access.lists import Audience, audience_of, change_rights, widens
from ingestion.details import label_names
from ingestion.models import Document

from .models import BulkChange, BulkItem

TASK = "ingestion.bulk_change"
BATCH = 50  # documents in one transaction
SECONDS = 5.0  # duration of one job; the next job continues
RETENTION = timedelta(days=30)  # time after which a change is deleted and can no longer be undone
GONE = gettext_noop("It has been deleted in the meantime.")
MOVED = gettext_noop("It now belongs to somebody else.")
PART = gettext_noop("It is part of an archive or a message; change that instead.")
MIRRORED = gettext_noop("It mirrors a file of a synchronised folder; change it there instead.")
CHANGED_SINCE = gettext_noop("It has been changed again since then.")
ALL_READ = gettext_noop("Everyone who signs in can read it already.")
ALL_STILL_READ = gettext_noop("Everyone who signs in can still read it.")
FULL = gettext_noop("It cannot have more labels.")
SAME_NAME = gettext_noop("The folder already has a document of this name and owner.")
STOPPED_BY = "{} stopped it."
NO_RIGHT = "{} may no longer change documents."

Kind, Outcome, State = BulkChange.Kind, BulkItem.Outcome, BulkChange.State


class Refused(Exception):
    """A document was not changed; the text is the reason."""


class BulkProperty(ABC):
    """A property of documents that can be changed in bulk; its values are JSON."""

    mirrored = False  # whether it can also be changed for documents that mirror a file

    @abstractmethod
    def read(self, document: Document) -> Any: ...

    @abstractmethod
    def wanted(self, present: Any, form: dict[str, Any]) -> Any:
        """The new value, from the current value and the form."""

    @abstractmethod
    def write(self, document: Document, value: Any, actor: User) -> None: ...

    def remark(self, present: Any, form: dict[str, Any]) -> str:
        """A remark shown with the result, or empty."""
        return ""


class Readers(BulkProperty):
    def read(self, document: Document) -> Any:
        return as_value(audience_of(document))

    def wanted(self, present: Any, form: dict[str, Any]) -> Any:
        if form["how"] == "set":
            return {name: form[name] for name in present}
        if form["how"] == "add":
            more = {
                "everyone": present["everyone"] or form["everyone"],
                "guests": present["guests"] or form["guests"],
                "users": sorted({*present["users"], *form["users"]}),
                "groups": sorted({*present["groups"], *form["groups"]}),
            }
            return more if widens(as_audience(present), as_audience(more)) else present
        return {
            "everyone": present["everyone"] and not form["everyone"],
            "guests": present["guests"] and not (form["guests"] or form["everyone"]),
            "users": sorted({*present["users"]} - {*form["users"]}),
            "groups": sorted({*present["groups"]} - {*form["groups"]}),
        }

    def write(self, document: Document, value: Any, actor: User) -> None:
        # Skip the owner, guests, and accounts and groups that were deleted after the form was submitted.
        users = User.objects.filter(pk__in=value["users"], guest_until=None)
        groups = Group.objects.filter(pk__in=value["groups"])
        known = {
            "users": set(users.values_list("pk", flat=True)) - {document.owner_id},
            "groups": groups.values_list("pk", flat=True),
        }
        change_rights(actor, document, as_audience(value | known), in_admin=True)

    def remark(self, present: Any, form: dict[str, Any]) -> str:
        if not present["everyone"] or form["how"] == "set":
            return ""
        if form["how"] == "add":
            return "" if form["guests"] and not present["guests"] else ALL_READ
        return "" if form["everyone"] else ALL_STILL_READ


def as_value(audience: Audience) -> dict[str, Any]:
    return {
        "everyone": audience.everyone,
        "guests": audience.guests,
        "users": sorted(audience.user_ids),
        "groups": sorted(audience.group_ids),
    }


def as_audience(value: dict[str, Any]) -> Audience:
    return Audience(
        everyone=value["everyone"] or value["guests"],
        guests=value["guests"],
        user_ids=frozenset(value["users"]),
        group_ids=frozenset(value["groups"]),
    )


class Column(BulkProperty):
    """A property that is a column of the document."""

    def __init__(self, name: str) -> None:
        self.name = name

    def read(self, document: Document) -> Any:
        return getattr(document, self.name)

    def wanted(self, present: Any, form: dict[str, Any]) -> Any:
        return form[self.name]

    def write(self, document: Document, value: Any, actor: User) -> None:
        Document.objects.filter(pk=document.pk).update(**{self.name: value}, changed_at=timezone.now())


class Folder(Column):
    def write(self, document: Document, value: Any, actor: User) -> None:
        try:
            with transaction.atomic():
                super().write(document, value, actor)
        except IntegrityError as error:
            raise Refused(SAME_NAME) from error


class LastDay(Column):
    mirrored = True

    def read(self, document: Document) -> Any:
        return document.valid_until.isoformat() if document.valid_until else None

    def write(self, document: Document, value: Any, actor: User) -> None:
        super().write(document, date.fromisoformat(value) if value else None, actor)


class Labels(Column):
    mirrored = True

    def wanted(self, present: Any, form: dict[str, Any]) -> Any:
        if form["how"] == "add":
            return label_names([*present, *form["labels"]])
        if form["how"] == "remove":
            return [label for label in present if label not in form["labels"]]
        return label_names(form["labels"])

    def remark(self, present: Any, form: dict[str, Any]) -> str:
        is_cut = form["how"] == "add" and not set(form["labels"]) <= set(self.wanted(present, form))
        return FULL if is_cut else ""


class Owner(BulkProperty):
    """The owner. The former owner is removed from the readers."""

    def read(self, document: Document) -> Any:
        return {"owner": document.owner_id, "readers": Readers().read(document)}

    def wanted(self, present: Any, form: dict[str, Any]) -> Any:
        readers = present["readers"]
        users = [user for user in readers["users"] if user != form["owner"]]
        return {"owner": form["owner"], "readers": {**readers, "users": users}}

    def write(self, document: Document, value: Any, actor: User) -> None:
        owner = User.objects.filter(pk=value["owner"], is_active=True, guest_until=None).first()
        if owner is None:
            raise Refused(gettext_noop("There is no active account to own it."))
        former = document.owner
        documents.transfer_ownership(document, owner)
        record(
            AuditEntry.Action.DOCUMENT_CHANGED,
            actor=actor,
            person=former,
            subject=[f"Handed over {document.name_for_audit} to ", named(owner)],
        )
        document.refresh_from_db()
        Readers().write(document, value["readers"], actor)


PROPERTIES: dict[str, BulkProperty] = {
    Kind.READERS: Readers(),
    Kind.CATEGORY: Column("category"),
    Kind.FOLDER: Folder("folder"),
    Kind.LABELS: Labels("labels"),
    Kind.LAST_DAY: LastDay("valid_until"),
    Kind.OWNER: Owner(),
}


def choose(actor: User, chosen: Iterable[Document]) -> BulkChange:
    """Store the selection of documents; the next step defines the change."""
    with transaction.atomic():
        change = BulkChange.objects.create(actor=actor)
        items = [BulkItem(change=change, document_id=each.pk, owner=each.owner_id) for each in chosen]
        BulkItem.objects.bulk_create(items, batch_size=2_000)
        change.total = len(items)
        change.save(update_fields=["total"])
    return change


def start(change: BulkChange, kind: str, wanted: dict[str, Any]) -> bool:
    """Queue the change; False if it was started before."""
    with transaction.atomic():
        rows = BulkChange.objects.filter(pk=change.pk, state=State.CHOSEN)
        if not rows.update(state=State.RUNNING, kind=kind, wanted=wanted):
            return False
        change.refresh_from_db()
        _begin(change)
    return True


def undo(change: BulkChange, actor: User) -> BulkChange | None:
    """Queue a change that restores the former value of each changed document, and return it.

    None if `change` cannot be undone, or if an undo of it was queued before.
    """
    with transaction.atomic():
        known = BulkChange.objects.select_for_update().get(pk=change.pk)
        if not can_be_undone(known) or BulkChange.objects.filter(undoes=known).exists():
            return None
        back = BulkChange.objects.create(actor=actor, kind=known.kind, undoes=known, state=State.RUNNING)
        done = known.items.filter(outcome=Outcome.DONE)
        owners = dict(Document.objects.filter(pk__in=done.values("document")).values_list("pk", "owner_id"))
        items = [
            BulkItem(
                change=back,
                document_id=item.document_id,
                owner=owners.get(item.document_id),
                before=item.after,
                after=item.before,
            )
            for item in done
        ]
        BulkItem.objects.bulk_create(items, batch_size=2_000)
        back.total = len(items)
        back.save(update_fields=["total"])
        _begin(back)
    return back


def can_be_undone(change: BulkChange) -> bool:
    ended = change.state in (State.DONE, State.STOPPED)
    return ended and change.kind in PROPERTIES and change.undoes_id is None


def stop(change: BulkChange, actor: User) -> bool:
    """Stop before the documents that are still waiting; False if the change is not running."""
    return _turn(change, actor, State.RUNNING, State.STOPPED, "Stopped")


def resume(change: BulkChange, actor: User) -> bool:
    """Continue a stopped change on behalf of `actor`; False if it was not stopped."""
    return _turn(change, actor, State.STOPPED, State.RUNNING, "Resumed")


def _turn(change: BulkChange, actor: User, before: str, after: str, done: str) -> bool:
    with transaction.atomic():
        rows = BulkChange.objects.filter(pk=change.pk, state=before)
        stopped = after == State.STOPPED
        turned = rows.update(
            state=after,
            actor=F("actor") if stopped else actor,
            finished_at=timezone.now() if stopped else None,
            reason=STOPPED_BY.format(actor.get_username()) if stopped else "",
        )
        if turned:
            subject = f"{done} the change of {change.total} documents at once (change {change.pk})"
            record(AuditEntry.Action.DOCUMENT_CHANGED, actor=actor, subject=subject)
            if not stopped:
                defer(change.pk)
    return bool(turned)


def outcomes(change: BulkChange) -> dict[str, int]:
    """The number of documents by outcome."""
    counted = change.items.order_by().values_list("outcome").annotate(times=Count("pk"))
    return {Outcome(outcome).value: times for outcome, times in counted}


def work(change_id: int, seconds: float = SECONDS) -> bool:
    """Continue a change for a while; returns whether there may be more to do."""
    deadline = time.monotonic() + seconds
    with reading_everything():
        while True:
            if not _work_on_some(change_id):
                return False
            if time.monotonic() >= deadline:
                return True


def defer(change_id: int) -> None:
    """Queue the next part of a change."""
    app.configure_task(TASK, queue=side_jobs.QUEUE).defer(change_id=change_id)


def queue_lost() -> int:
    """Queue a new job for each running change that has none."""
    running = BulkChange.objects.filter(state=State.RUNNING).values_list("pk", flat=True)
    return side_jobs.requeue(TASK, "change_id", running, defer)


def delete_old() -> None:
    """Delete changes that are too old to be undone, and abandoned selections."""
    BulkItem.objects.filter(change__created_at__lt=timezone.now() - RETENTION).delete()
    BulkChange.objects.filter(created_at__lt=timezone.now() - RETENTION).delete()


@transaction.atomic
def _work_on_some(change_id: int) -> bool:
    rows = BulkChange.objects.select_related("actor").select_for_update(of=("self",))
    change = rows.filter(pk=change_id, state=State.RUNNING).first()
    if change is None:
        return False
    actor = change.actor
    needed = "delete" if change.kind == Kind.DELETE else "change"
    if actor is None or not (actor.is_staff and actor.has_perm(f"ingestion.{needed}_document")):
        name = actor.get_username() if actor else "The account that started the change"
        _end(change, State.STOPPED, NO_RIGHT.format(name))
        return False
    items = list(change.items.filter(outcome=Outcome.WAITING).order_by("pk")[:BATCH])
    if not items:
        _end(change, State.DONE)
        return False
    locked = Document.objects.filter(pk__in=[item.document_id for item in items]).order_by("pk")
    found = {
        each.pk: each for each in locked.select_for_update(of=("self",), no_key=change.kind != Kind.DELETE)
    }
    mirrored = set(locked.exclude(source_file=None).values_list("pk", flat=True))
    for item in items:
        document = found.get(item.document_id)
        if document is None:
            item.outcome, item.reason = Outcome.GONE, GONE
        elif document.owner_id != item.owner:
            item.outcome, item.reason = Outcome.REFUSED, MOVED
        else:
            try:
                item.outcome = _apply(change, item, document, actor, is_mirrored=document.pk in mirrored)
            except OnHold:
                item.outcome, item.reason = Outcome.REFUSED, DOCUMENT_ON_HOLD
            except (Refused, documents.UploadRefused) as refused:
                item.outcome, item.reason = Outcome.REFUSED, str(refused)[:200]
    BulkItem.objects.bulk_update(items, ["outcome", "reason", "before", "after"])
    return True


def _apply(
    change: BulkChange, item: BulkItem, document: Document, actor: User, *, is_mirrored: bool
) -> BulkItem.Outcome:
    if change.kind == Kind.READ_AGAIN:
        if document.status in Document.UNFINISHED:
            item.reason = gettext_noop("It is being read already.")
            return Outcome.UNCHANGED
        documents.retry(document)
        return Outcome.DONE
    if document.part_of_id:
        raise Refused(PART)
    if change.kind == Kind.DELETE:
        if is_mirrored:
            raise Refused(gettext_noop("It mirrors a file of a synchronised folder and would come back."))
        subject = f"Deleted {document.name_for_audit}"
        documents.delete_document(document)
        record(AuditEntry.Action.DOCUMENT_CHANGED, actor=actor, person=document.owner, subject=subject)
        return Outcome.DONE
    of = PROPERTIES[change.kind]
    if is_mirrored and not of.mirrored:
        raise Refused(MIRRORED)
    present = of.read(document)
    if change.undoes_id:
        if present != item.before:
            raise Refused(CHANGED_SINCE)
        of.write(document, item.after, actor)
        return Outcome.DONE
    wanted = of.wanted(present, change.wanted)
    item.reason = of.remark(present, change.wanted)
    if wanted == present:
        if change.kind == Kind.READERS:
            # Written anyway, because a queued replacement of the file may set other readers.
            of.write(document, wanted, actor)
        return Outcome.UNCHANGED
    of.write(document, wanted, actor)
    document.refresh_from_db()
    after = of.read(document)
    # Writing leaves out the owner and deleted accounts, so the stored value may equal the former one.
    if after == present:
        return Outcome.UNCHANGED
    item.before, item.after = present, after
    return Outcome.DONE


def _begin(change: BulkChange) -> None:
    with override("en"):  # the audit log is in English
        what = f"Undid change {change.undoes_id}" if change.undoes_id else change.get_kind_display()
    if change.kind == Kind.LAST_DAY and not change.undoes_id:
        what = f"Last day {change.wanted['valid_until'] or 'removed'}"
    record(
        AuditEntry.Action.DOCUMENT_CHANGED,
        actor=change.actor,
        subject=f"{what} of {change.total} documents at once (change {change.pk})",
    )
    defer(change.pk)


def _end(change: BulkChange, state: BulkChange.State, reason: str = "") -> None:
    change.state, change.reason, change.finished_at = state, reason, timezone.now()
    change.save(update_fields=["state", "reason", "finished_at"])
