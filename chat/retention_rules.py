"""Retention of conversations, feedback and files, with rules that may differ by group.

The worker applies the rules each night. Data of a person under a legal hold is kept. Conversations are first
hidden, and later purged like deleted ones.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from chatsite.accounts.audit import record
from chatsite.accounts.models import AuditEntry, User
from chatsite.db.threads import reading_everything
from history.models import Conversation, Feedback, Message
from ingestion.access.models import AccessEntry
from ingestion.documents import delete_documents
from ingestion.models import Document

from .models import Retention


@dataclass(frozen=True, slots=True)
class ExpiredData:
    """How much data is older than the rules allow."""

    conversations: int
    feedback: int
    files: int

    def __str__(self) -> str:
        return f"{self.conversations} conversations, {self.feedback} feedback, {self.files} files"


def apply(*, dry_run: bool = False) -> ExpiredData:
    """Delete expired data, with one audit entry; `dry_run` only counts it."""
    with reading_everything():
        conversations = feedback = files = 0
        for days, people in _people("conversations"):
            unfinished = Message.objects.filter(conversation=OuterRef("pk"), state__in=Message.UNFINISHED)
            old = Conversation.objects.filter(
                ~Exists(unfinished), owner__in=people, deleted_at=None, updated_at__lt=_before(days)
            )
            conversations += old.count() if dry_run else old.update(deleted_at=timezone.now())
        for days, people in _people("feedback"):
            said = Feedback.objects.filter(
                message__conversation__owner__in=people, updated_at__lt=_before(days)
            )
            feedback += said.count() if dry_run else said.delete()[0]
        # Only uploads that nobody but the owner can read. Synchronised folders and programs manage their own
        # files, and would add deleted ones again. Parts of archives and messages are deleted with the whole.
        others = AccessEntry.objects.filter(access_list=OuterRef("access_list")).exclude(
            user=OuterRef("owner")
        )
        unshared = Document.objects.filter(~Exists(others), part_of=None, source_file=None, external_ids=None)
        for days, people in _people("files"):
            found = list(unshared.filter(owner__in=people, changed_at__lt=_before(days)))
            files += len(found)
            if not dry_run:
                delete_documents(found)
    due = ExpiredData(conversations, feedback, files)
    if not dry_run and (conversations or feedback or files):
        record(AuditEntry.Action.CONVERSATION_DELETED, actor=None, subject=f"By the retention rules: {due}")
    return due


def _people(kind: str) -> Iterator[tuple[int, QuerySet[User]]]:
    """Each period of the rules, in days, with the people to whom it applies.

    For members of several groups, the longest period applies (an empty one never ends); for people whose
    groups have no rule, the general rule. People under a legal hold are left out.
    """
    rules = dict(Retention.objects.exclude(group=None).values_list("group", kind))
    free = User.objects.filter(legal_hold="")
    for days in sorted({each for each in rules.values() if each is not None}):
        same = [group for group, each in rules.items() if each == days]
        longer = [group for group, each in rules.items() if each is None or each > days]
        yield days, free.filter(groups__in=same).exclude(groups__in=longer)
    others = Retention.objects.filter(group=None).values_list(kind, flat=True).first()
    if others is not None:
        yield others, free.exclude(groups__in=list(rules))


def _before(days: int) -> datetime:
    return timezone.now() - timedelta(days=days)
