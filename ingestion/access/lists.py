"""Creates access lists, and changes the readers of documents.

An access list is a set of people and groups, stored once for all documents, shares and projects that use it.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db import connection, transaction
from django.db.models import F, Q, QuerySet
from django.utils.translation import gettext, override

from chatsite.accounts.audit import NamedPerson, named, record
from chatsite.accounts.models import AuditEntry, User
from chatsite.db.threads import reading_everything
from chatsite.normal_form import normal_form
from ingestion import document_events
from ingestion.models import Document

from .models import AccessEntry, AccessList


@dataclass(frozen=True)
class Audience:
    """The readers of a document besides its owner.

    Guests are included only together with everyone.
    """

    everyone: bool = False
    user_ids: frozenset[int] = frozenset()
    group_ids: frozenset[int] = frozenset()
    guests: bool = False


# One entry of a list: user, group, and whether guests are included. If user and group are empty, the entry
# means everyone.
Entry = tuple[int | None, int | None, bool]


def access_list_for(audience: Audience, owner_id: int | None) -> AccessList:
    """The list of exactly these readers and the owner, created if needed.

    Concurrent calls get the same list. Users and groups must exist.
    """
    entries = _entries(audience, owner_id)
    digest = _digest(entries)
    if found := AccessList.objects.filter(digest=digest).first():
        return found
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO ingestion_accesslist (digest) VALUES (%s)"
            " ON CONFLICT (digest) DO UPDATE SET digest = excluded.digest RETURNING id",
            [digest],
        )
        access_list = AccessList(pk=cursor.fetchone()[0], digest=digest)
        # The new row is locked until this transaction ends: a concurrent transaction that creates the same
        # list waits, and then finds the list complete.
        AccessEntry.objects.bulk_create(
            [
                AccessEntry(access_list=access_list, user_id=user, group_id=group, guests=guests)
                for user, group, guests in entries
            ],
            ignore_conflicts=True,
        )
    return access_list


def _entries(audience: Audience, owner_id: int | None) -> list[Entry]:
    users = set(audience.user_ids) | ({owner_id} if owner_id else set())
    everyone = audience.everyone or audience.guests
    entries: list[Entry] = [(None, None, audience.guests)] if everyone else []
    entries += [(user, None, False) for user in sorted(users)]
    entries += [(None, group, False) for group in sorted(audience.group_ids)]
    return entries


def _digest(entries: Sequence[Entry]) -> str:
    names = [
        f"u{user}" if user else f"g{group}" if group else ("guests" if guests else "everyone")
        for user, group, guests in entries
    ]
    return hashlib.sha256(",".join(names).encode()).hexdigest()


def private_digest(owner_id: int) -> str:
    """The digest of the access list of documents that only this owner can read."""
    return _digest(_entries(Audience(), owner_id))


def audience_of(document: Document) -> Audience:
    """The document's readers, without the owner's own entry."""
    return audience_of_list(document.access_list, document.owner_id)


def audience_of_list(access_list: AccessList, owner_id: int | None) -> Audience:
    """The readers of a list, without the owner's entry."""
    entries = access_list.entries.all()
    return Audience(
        everyone=any(entry.user_id is None and entry.group_id is None for entry in entries),
        user_ids=frozenset(entry.user_id for entry in entries if entry.user_id and entry.user_id != owner_id),
        group_ids=frozenset(entry.group_id for entry in entries if entry.group_id),
        guests=any(entry.guests for entry in entries),
    )


def widens(before: Audience, after: Audience) -> bool:
    """Whether `after` adds readers to `before`; does not look up who is in which group."""
    if after.guests and not before.guests:
        return True
    if before.everyone:
        return False
    return after.everyone or not (after.user_ids <= before.user_ids and after.group_ids <= before.group_ids)


def narrowed(before: Audience, after: Audience) -> Audience:
    """The readers in `after` whom `before` includes, too.

    A person named in `after` is left out if `before` includes that person only through a group.
    """
    if not widens(before, after):
        return after
    if before.everyone or after.everyone:
        smaller = before if after.everyone else after
        return replace(smaller, guests=before.guests and after.guests)
    return Audience(
        user_ids=before.user_ids & after.user_ids,
        group_ids=before.group_ids & after.group_ids,
    )


def find_named(rows: QuerySet[Any], field: str, names: Sequence[str]) -> dict[str, Any]:
    """The accounts or groups with these names, by the given name.

    If a name is written with separate accents, as some systems do, the row with the composed form is found,
    too; an exact match wins.
    """
    composed = {name: normal_form("NFC", name) for name in names}
    found = {
        getattr(row, field): row for row in rows.filter(**{f"{field}__in": {*names, *composed.values()}})
    }
    named = {name: found.get(name) or found.get(form) for name, form in composed.items()}
    return {name: row for name, row in named.items() if row is not None}


def set_audience(document: Document, audience: Audience) -> None:
    """Set the readers of the document and, by a database trigger, of its parts.

    The change takes effect with everyone's next query.
    """
    former = document.access_list_id
    document.access_list = access_list_for(audience, document.owner_id)
    # See all rows: somebody who manages another person's document may remove their own access.
    with reading_everything():
        Document.objects.filter(pk=document.pk).update(
            access_list=document.access_list, audience_version=F("audience_version") + 1
        )
        document_events.announce_access(document, former, document.access_list_id)


def count_people(audience: Audience, *, besides: int = 0) -> int:
    """The number of active accounts in the audience, without guests and the account `besides`."""
    people = User.objects.filter(is_active=True, guest_until=None).exclude(pk=besides)
    if not (audience.everyone or audience.guests):
        people = people.filter(Q(pk__in=audience.user_ids) | Q(groups__in=audience.group_ids)).distinct()
    return people.count()


NAMES_SHOWN = 3


def change_rights(actor: object, document: Document, audience: Audience, *, in_admin: bool = False) -> None:
    """Set the document's readers on behalf of `actor`.

    A change is audited if `actor` does not own the document, or if it is made in the admin.

    The caller must have checked that `actor` may do this. A replacement file that is still queued will not
    set its own readers, because this change is newer.
    """
    staff = actor if isinstance(actor, User) else None
    with transaction.atomic():
        with reading_everything():
            rows = Document.objects.filter(pk=document.pk)
            # Reload: since the caller loaded the document, the worker may have read a replacement, which can
            # change the readers.
            current = rows.select_for_update(no_key=True).values_list("access_list_id", flat=True).first()
            document.access_list_id = current or document.access_list_id
            if audience == audience_of(document):
                rows.update(audience_version=F("audience_version") + 1)
                return
        former = document.access_list
        before, what = readers_for_audit(former), document.name_for_audit
        set_audience(document, audience)
        if in_admin or staff is None or document.owner_id != staff.pk:
            after = readers_for_audit(document.access_list)
            # The text of the readers omits names if everyone may read the document, or if the list is long.
            # If it is therefore the same before and after, name the added and removed readers instead.
            subject = [
                f"{what}: ",
                *before,
                *(_difference(former, document.access_list) if before == after else [" → ", *after]),
            ]
            record(AuditEntry.Action.RIGHTS_CHANGED, actor=staff, person=document.owner, subject=subject)


def reader_names(document: Document) -> str:
    """Some of the readers of the document, for an administrator."""
    readers = _some_readers(document.access_list)
    return "".join(each if isinstance(each, str) else each.name for each in readers)


def readers_for_audit(access_list: AccessList, besides: int | None = None) -> list[str | NamedPerson]:
    """Some of the readers of a list, in English, for the subject of an audit entry.

    `besides` is the id of the owner to leave out, who is on the list without having been chosen.
    """
    with override("en"):
        return _some_readers(access_list, besides)


def _some_readers(access_list: AccessList, besides: int | None = None) -> list[str | NamedPerson]:
    entries = [entry for entry in access_list.entries.all() if besides is None or entry.user_id != besides]
    if any(entry.guests for entry in entries):
        return [gettext("Everyone, also guests")]
    if any(entry.user_id is None and entry.group_id is None for entry in entries):
        return [gettext("Everyone who signs in")]
    if not entries:
        return [gettext("Nobody")]
    return _names(entries)


def _difference(before: AccessList, after: AccessList) -> list[str | NamedPerson]:
    """The people and groups that only one of the two lists names, in English for an audit entry."""
    former = {(entry.user_id, entry.group_id): entry for entry in before.entries.all()}
    present = {(entry.user_id, entry.group_id): entry for entry in after.entries.all()}
    removed = [entry for key, entry in former.items() if key not in present]
    added = [entry for key, entry in present.items() if key not in former]
    with override("en"):
        parts = [
            [f", {word} by name: ", *_names(rows)]
            for word, rows in (("no longer", removed), ("also", added))
            if rows
        ]
    return [part for each in parts for part in each]


def _names(entries: Sequence[AccessEntry]) -> list[str | NamedPerson]:
    parts: list[str | NamedPerson] = []
    for entry in sorted(entries, key=str)[:NAMES_SHOWN]:
        parts += [", ", named(entry.user) if entry.user else str(entry)]
    more = gettext(" and %(count)s more") % {"count": len(entries) - NAMES_SHOWN}
    return [*parts[1:], *([more] if len(entries) > NAMES_SHOWN else [])]
