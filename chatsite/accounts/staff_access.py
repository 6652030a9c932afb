"""Staff access to another person's content.

It needs a reason and is disclosed to the person later. A conversation can be read for 15 minutes.
"""

from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from .audit import record
from .models import AuditEntry, Look, User

PERMISSION = "accounts.read_others"
EXPORT_PERMISSION = "accounts.export_others"
OPEN = timedelta(minutes=15)


@transaction.atomic
def begin(reader: User, person: User, conversation: UUID, reason: str) -> None:
    """Let `reader` read one conversation of `person` for 15 minutes, with an audit entry."""
    Look.objects.create(reader=reader, person=person, conversation=conversation, reason=reason)
    action = AuditEntry.Action.CONVERSATION_READ
    record(action, actor=reader, person=person, subject=f"{conversation}, because: {reason}")


@transaction.atomic
def begin_export(reader: User, person: User, reason: str) -> None:
    """Record that `reader` exports all data of `person`, with an audit entry."""
    Look.objects.create(reader=reader, person=person, conversation=None, reason=reason)
    action = AuditEntry.Action.PERSON_EXPORTED
    record(action, actor=reader, person=person, subject=f"because: {reason}")


@transaction.atomic(durable=True)
def begin_search(reader: User, person: User, question: str, reason: str) -> None:
    """Record, before the search, that `reader` searches with the rights of `person`.

    Searches for the same reason within an hour are disclosed as one.
    """
    lately = Look.objects.filter(
        reader=reader,
        person=person,
        searched=True,
        reason=reason,
        begun_at__gt=timezone.now() - timedelta(hours=1),
    )
    if not lately.exists():
        Look.objects.create(reader=reader, person=person, searched=True, reason=reason)
    subject = f"{question}, because: {reason}"
    record(AuditEntry.Action.SEARCH_AS, actor=reader, person=person, subject=subject)


def is_open(reader: User, conversation: UUID) -> bool:
    """Whether `reader` recently gave a reason for this conversation and has the permission."""
    lately = Look.objects.filter(reader=reader, conversation=conversation, begun_at__gt=timezone.now() - OPEN)
    return reader.has_perm(PERMISSION) and lately.exists()


def access_to_disclose(person_id: int) -> QuerySet[Look]:
    """The accesses that are due to be disclosed to this person."""
    until = timezone.now() - timedelta(days=settings.LOOK_NOTICE_DAYS)
    return Look.objects.filter(person=person_id, begun_at__lte=until).select_related("reader")
