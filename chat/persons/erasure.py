"""Counts or erases all data of a person, or deletes their conversations and documents."""

import json
import logging
import os
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import connection, models, transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Cast
from django.utils.translation import gettext, gettext_noop, ngettext, override

from chat.engine.verified import VERIFIED_STEP
from chat.evaluation.models import ProofQuestion, ProofRun
from chat.models import (
    DismissedQuestion,
    JournalEntry,
    Lease,
    MessageAllowance,
    Run,
    VerifiedAnswer,
)
from chat.runs import notifications
from chat.unanswered.models import UnansweredQuestion
from chatsite.accounts.audit import NamedPerson, chain, named, record
from chatsite.accounts.holds import ON_HOLD, OnHold
from chatsite.accounts.models import ApiKey, AuditEntry, ExternalIdentity, Look, User
from chatsite.accounts.sessions import end_sessions
from chatsite.db.threads import reading_everything, retry_on_deadlock
from history.models import Conversation, Feedback, Message, OpenedShare, Project, Share, Source
from history.signatures import signed
from ingestion.access.models import AccessEntry
from ingestion.bulk.changes import STOPPED_BY
from ingestion.bulk.models import BulkChange, BulkItem
from ingestion.documents import delete_documents, transfer_ownership
from ingestion.models import Document
from ingestion.storage.files import collect_unremoved

logger = logging.getLogger(__name__)
HELD_MEANWHILE = gettext_noop("This account has meanwhile been put under a legal hold, or erased.")

STOP_SECONDS = 30
POLL_SECONDS = 0.2
BATCH = 500  # messages
# Models whose rows have names, titles or words of a person in Django's admin log.
PERSONAL = (ApiKey, Document, ExternalIdentity, MessageAllowance, ProofQuestion, User, VerifiedAnswer)
ERASED = "erased"  # replaces the name of a deleted row in Django's admin log
FORMER = "a former colleague"  # replaces the name of an erased person on answers that they verified


@dataclass(frozen=True, slots=True)
class ErasedAccount:
    """A line of the list of erased accounts, with numbers and times but no name.

    The list is outside the database, so that people can be erased again after an older backup is restored.
    """

    number: int  # number of the account
    joined: str  # when the account was created; needed because a restored database assigns numbers again
    documents_to: int | None  # number of the account that got the documents; None if they were deleted

    def person(self) -> User | None:
        """The account, if a restored backup contains it."""
        found = User.objects.filter(pk=self.number).first()
        return found if found and found.date_joined.isoformat() == self.joined else None

    def note(self) -> None:
        """Append the entry to the list durably; log an error if the list cannot be written."""
        path = Path(settings.ERASED_LIST)
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(json.dumps(asdict(self)).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            logger.error(
                "%s could not be written (%s): an older backup would restore erased people. Add the line %s",
                path,
                error,
                json.dumps(asdict(self)),
            )


class ErasureRefused(Exception):
    """Why a person cannot be erased now, as a message."""


@dataclass(frozen=True, slots=True)
class DataCounts:
    """How much data the site has of a person."""

    conversations: int
    messages: int
    documents: int
    documents_of_others: int  # those of `documents` that others can read
    verified_answers: int
    evaluation_questions: int
    api_keys: int
    files_left: int = 0  # files of deleted documents that the storage could not remove

    def __str__(self) -> str:
        """A summary in English, for the audit log."""
        with override("en"):
            return self.words()

    def words(self) -> str:
        """The counts as text; zeros are left out, except for conversations and messages."""
        count = self.conversations
        conversations = ngettext("%(count)s conversation", "%(count)s conversations", count)
        with_messages = ngettext(" with %(count)s message", " with %(count)s messages", self.messages)
        parts = [conversations % {"count": count} + with_messages % {"count": self.messages}]
        documents = ngettext("%(count)s document", "%(count)s documents", self.documents)
        by_others = gettext(" (%(count)s read by others)") % {"count": self.documents_of_others}
        others = [
            (self.documents, documents, by_others if self.documents_of_others else ""),
            (
                self.verified_answers,
                ngettext("%(count)s verified answer", "%(count)s verified answers", self.verified_answers),
                "",
            ),
            (
                self.evaluation_questions,
                ngettext(
                    "%(count)s evaluation question",
                    "%(count)s evaluation questions",
                    self.evaluation_questions,
                ),
                "",
            ),
            (self.api_keys, ngettext("%(count)s API key", "%(count)s API keys", self.api_keys), ""),
        ]
        parts += [words % {"count": number} + more for number, words, more in others if number]
        return ", ".join(parts)


def count_data(person: User) -> DataCounts:
    with reading_everything():
        return DataCounts(
            conversations=Conversation.objects.filter(owner=person).count(),
            messages=Message.objects.filter(conversation__owner=person).count(),
            documents=Document.objects.filter(owner=person).count(),
            documents_of_others=_read_by_others(person).count(),
            verified_answers=VerifiedAnswer.objects.filter(owner=person).count(),
            evaluation_questions=ProofQuestion.objects.filter(added_by=person).count(),
            api_keys=ApiKey.objects.filter(user=person).count(),
        )


def erase(
    person: User, *, actor: User | None, documents_to: User | None = None, delete_documents: bool = False
) -> DataCounts:
    """Delete the person with their data; the audit log keeps their number.

    Returns the counts of what the person had, with the number of files that could not be removed yet.
    Documents that only this person could read are deleted. Documents that others can read, verified answers
    and evaluation questions are given to `documents_to`, or deleted if `delete_documents` is set; evaluation
    questions in the person's own words (`asker`) are always deleted. Raises ErasureRefused before anything is
    deleted, for instance if `actor` may not give `documents_to` the right to read the documents. If the
    person is put under a legal hold or erased meanwhile, the documents may already be deleted.
    """
    had = count_data(person)
    if person.legal_hold:
        raise ErasureRefused(hold_in_words(person, actor))
    _check(person, had, actor, documents_to, delete_documents)
    # First make sure that nobody can ask as this person, and that none of their answers is running.
    User.objects.filter(pk=person.pk).update(is_active=False)
    end_sessions(person.pk)
    ApiKey.objects.owned_by_user(person.pk).revoke()
    _stop_answers(person, gettext("The account is switched off."))
    with reading_everything(), collect_unremoved() as left:
        try:
            if documents_to:
                for document in _read_by_others(person):
                    BulkItem.objects.filter(document=document).delete()
                    transfer_ownership(document, documents_to)
                VerifiedAnswer.objects.filter(owner=person).update(owner=documents_to)
                ProofQuestion.objects.filter(added_by=person).update(added_by=documents_to)
            documents = list(Document.objects.filter(owner=person))
            _delete_documents(documents)
        except OnHold:
            raise ErasureRefused(gettext(HELD_MEANWHILE)) from None
        _delete_account(person, had, actor, documents_to)
    return replace(had, files_left=len(left))


@retry_on_deadlock  # with a question that is just being stored
@transaction.atomic
def _delete_account(person: User, had: DataCounts, actor: User | None, documents_to: User | None) -> None:
    """Delete the account and all rows of the person except documents. Raises ErasureRefused."""
    # Lock the account, so that a concurrent legal hold is either respected or finds no account.
    locked = User.objects.select_for_update().filter(pk=person.pk).first()
    if locked is None or locked.legal_hold:
        raise ErasureRefused(gettext(HELD_MEANWHILE))
    line = ErasedAccount(person.pk, person.date_joined.isoformat(), documents_to.pk if documents_to else None)
    transaction.on_commit(line.note)
    _delete_rows(locked)
    subject: list[str | NamedPerson] = [f"person {person.pk}: {had}"]
    if documents_to:
        subject += ["; handed over to ", named(documents_to)]
    record(AuditEntry.Action.PERSON_ERASED, actor=actor, subject=subject)


def delete_own(person: User, *, documents: bool) -> int:
    """Delete a person's conversations and projects permanently.

    With `documents`, also deletes the documents that only they can read. Returns the number of files that
    could not be removed yet. Raises ErasureRefused before anything is deleted.
    """
    if person.legal_hold:
        raise ErasureRefused(gettext(ON_HOLD))
    _stop_answers(person)
    with reading_everything(), collect_unremoved() as left:
        _delete_own(person, documents=documents)
    return len(left)


def files_left_in_words(number: int) -> str:
    """A message about files that could not be removed; the nightly job tries again."""
    words = ngettext(
        "%(count)s file could not be removed, because the storage failed. The site tries again each night.",
        "%(count)s files could not be removed, because the storage failed. The site tries again each night.",
        number,
    )
    return words % {"count": number}


@retry_on_deadlock  # with a question that is just being stored
@transaction.atomic
def _delete_own(person: User, *, documents: bool) -> None:
    locked = User.objects.select_for_update().get(pk=person.pk)
    if locked.legal_hold:
        raise ErasureRefused(gettext(ON_HOLD))
    had = Conversation.objects.filter(owner=person).count()
    _delete_conversations(person)
    subject = f"{had} conversations of their own"
    if documents:
        mine = Document.objects.filter(owner=person)
        alone = list(mine.exclude(pk__in=_read_by_others(person).values("pk")))
        subject += f", {len(alone)} documents that nobody else could read"
        _delete_documents(alone)
    record(AuditEntry.Action.CONVERSATION_DELETED, actor=person, person=person, subject=subject)


def _delete_documents(documents: list[Document]) -> None:
    BulkItem.objects.filter(document__in=documents).delete()
    delete_documents(documents)


def erase_returned() -> list[str]:
    """Erase again the people whom an older backup restored; return descriptions of what was done."""
    said = []
    for erased, person in _returned():
        active = User.objects.filter(is_active=True)
        successor = active.filter(pk=erased.documents_to).first() if erased.documents_to else None
        try:
            erase(person, actor=None, documents_to=successor, delete_documents=successor is None)
        except ErasureRefused as refused:
            said.append(f"A backup restored person {erased.number}, who cannot be erased again: {refused}")
        else:
            said.append(f"Person {erased.number} was erased again, because a backup had restored them.")
    return said


def _returned() -> list[tuple[ErasedAccount, User]]:
    """People on the list who are in the database again because an older backup was restored."""
    try:
        lines = Path(settings.ERASED_LIST).read_text().splitlines()
    except FileNotFoundError:
        return []
    found: list[tuple[ErasedAccount, User]] = []
    for line in lines:
        try:
            erased = ErasedAccount(**json.loads(line))
        except (ValueError, TypeError):  # such as a line truncated by a crash
            logger.warning("A line of %s cannot be read.", settings.ERASED_LIST)
            continue
        if person := erased.person():
            found.append((erased, person))
    return found


def hold_in_words(person: User, actor: User | None) -> str:
    """A message that the person is under a legal hold; for superusers and commands, with the reason."""
    if actor and not actor.is_superuser:
        return gettext("This account is under a legal hold and stays as it is.")
    return gettext("This account is under a legal hold and stays as it is: %(hold)s") % {
        "hold": person.legal_hold
    }


def _check(
    person: User, had: DataCounts, actor: User | None, documents_to: User | None, delete_documents: bool
) -> None:
    if actor and actor.pk == person.pk:
        # The audit log would keep the name in the entry of the erasure itself.
        raise ErasureRefused(gettext("You cannot erase yourself. Ask another administrator."))
    if documents_to and (documents_to.pk == person.pk or not documents_to.is_active or documents_to.is_guest):
        raise ErasureRefused(gettext("Documents can be handed over only to another active account."))
    if documents_to and delete_documents:
        raise ErasureRefused(gettext("Either hand the documents over or delete them."))
    used = had.documents_of_others or had.verified_answers or had.evaluation_questions
    if used and not (documents_to or delete_documents):
        raise ErasureRefused(
            gettext(
                "Others use what this person owns (documents: %(documents)s, verified answers: "
                "%(answers)s, evaluation questions: %(questions)s). Hand them over to somebody, or "
                "delete them."
            )
            % {
                "documents": had.documents_of_others,
                "answers": had.verified_answers,
                "questions": had.evaluation_questions,
            }
        )
    if actor is None or documents_to is None or actor.has_perm("ingestion.change_document"):
        return
    # Without that permission, the actor can only hand over documents that the successor can already read.
    with reading_everything():
        readable = AccessEntry.lists_of(documents_to.pk)
        closed = _read_by_others(person).exclude(access_list__in=readable).count()
    if closed:
        raise ErasureRefused(
            ngettext(
                "%(name)s cannot read %(count)s of these documents. Choose somebody who can read it, "
                "or ask somebody who may change documents.",
                "%(name)s cannot read %(count)s of these documents. Choose somebody who can read "
                "them, or ask somebody who may change documents.",
                closed,
            )
            % {"name": documents_to.display_name(), "count": closed}
        )


def _stop_answers(person: User, done: str = "") -> None:
    """Stop all running answers of the person and wait for their end. Raises ErasureRefused."""
    running = Run.objects.unfinished().filter(owner=person)
    with transaction.atomic():
        running.update(stop_requested=True)
        identifiers = list(running.values_list("pk", flat=True))
        notifications.publish_on_commit(notifications.messages("stop", identifiers))
    deadline = time.monotonic() + STOP_SECONDS
    while running.exists():
        if time.monotonic() >= deadline:
            words = gettext("An answer is still being written."), done, gettext("Try again in a minute.")
            raise ErasureRefused(" ".join(filter(None, words)))
        time.sleep(POLL_SECONDS)


def _read_by_others(person: User) -> QuerySet[Document]:
    others = AccessEntry.objects.filter(access_list=models.OuterRef("access_list")).exclude(user=person)
    return Document.objects.filter(models.Exists(others), owner=person)


def _delete_conversations(person: User) -> None:
    """Delete the person's conversations and projects, table by table.

    Otherwise, Django would load each message to collect dependent rows.
    """
    theirs = Q(conversation__owner=person)
    # Two queries, so that each uses an index.
    for runs in (Run.objects.filter(owner=person), Run.objects.filter(theirs)):
        JournalEntry.objects.filter(run__in=runs.values("pk")).delete()
        Lease.objects.filter(run__in=runs.values("pk")).delete()
        runs.delete()
    UnansweredQuestion.objects.filter(owner=person).delete()
    Source.objects.filter(message__conversation__owner=person).delete()
    Feedback.objects.filter(message__conversation__owner=person).delete()
    OpenedShare.objects.filter(reader=person).delete()
    Share.objects.filter(theirs).delete()
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM history_message USING history_conversation AS mine"
            " WHERE history_message.conversation_id = mine.id AND mine.owner_id = %s",
            [person.pk],
        )
    Conversation.objects.filter(owner=person).delete()
    Project.objects.filter(owner=person).delete()


def _delete_rows(person: User) -> None:
    _delete_conversations(person)
    BulkChange.objects.filter(actor=person).delete()
    DismissedQuestion.objects.filter(dismissed_by=person).update(reason="")
    ProofRun.objects.filter(started_by=person, group=None).delete()
    ProofRun.objects.filter(started_by=person).update(note="")
    ProofQuestion.objects.filter(Q(added_by=person) | Q(asker=person)).delete()
    VerifiedAnswer.objects.filter(owner=person).delete()
    Look.objects.filter(reader=person).update(reason="")
    chain.forget(person.pk)
    BulkChange.objects.filter(reason=STOPPED_BY.format(person.get_username())).update(reason="")
    # Remove the name from other people's answers that came from this person's verified answers.
    signed_by = Message.objects.filter(verified__person=person.pk)
    for message in signed_by.only("pk", "verified", "thoughts").iterator(chunk_size=BATCH):
        verified = {**(message.verified or {}), "by": FORMER, "person": None}
        thoughts = [
            each | {"description": signed(verified), "props": each["props"] | {"by": FORMER}}
            if each.get("title") == VERIFIED_STEP
            else each
            for each in message.thoughts
        ]
        Message.objects.filter(pk=message.pk).update(verified=verified, thoughts=thoughts)
    person.delete()
    _forget_deleted_in_admin_log()


def _forget_deleted_in_admin_log() -> None:
    """Remove the names, titles and content of deleted rows from Django's admin log.

    This includes other people's rows that were deleted earlier, because nothing shows whose they were.
    """
    for model in PERSONAL:
        existing = model._default_manager.annotate(number=Cast("pk", models.TextField()))
        LogEntry.objects.filter(
            ~models.Exists(existing.filter(Q(number=models.OuterRef("object_id")))),
            content_type=ContentType.objects.get_for_model(model),
        ).exclude(object_repr=ERASED, change_message="").update(object_repr=ERASED, change_message="")
