"""Changing who may read a document, with an entry in the audit log where it is somebody else's."""

from django.db import transaction

from chatsite.accounts.audit import record
from chatsite.accounts.models import AuditEntry, User
from ingestion.models import Document

from .lists import (
    Audience,
    audience_of,
    set_audience,
)

NAMES_SHOWN = 3


def change_rights(actor: object, document: Document, audience: Audience) -> None:
    """Give the document these readers; `actor`, a user, has the right to. Change and entry are one."""
    if audience == audience_of(document):
        return
    staff = actor if isinstance(actor, User) else None
    before = reader_names(document)
    with transaction.atomic():
        set_audience(document, audience)
        if staff is None or document.owner_id != staff.pk:
            subject = f"{document.name} ({document.public_id}): {before} → {reader_names(document)}"
            record(AuditEntry.Action.RIGHTS_CHANGED, actor=staff, person=document.owner, subject=subject)


def reader_names(document: Document) -> str:
    """Some of those on the document's access list, for an administrator."""
    entries = list(document.access_list.entries.all())
    if any(entry.guests for entry in entries):
        return "Everyone, also guests"
    if any(entry.user_id is None and entry.group_id is None for entry in entries):
        return "Everyone who signs in"
    names = sorted(str(entry) for entry in entries)
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return ", ".join(names[:NAMES_SHOWN]) + more if names else "Nobody"
