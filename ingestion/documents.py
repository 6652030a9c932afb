"""The life of a document: stored file, reading, passages, vectors, deletion.

A document and the job that reads it are committed together. Reading happens outside of a transaction; one
transaction then replaces the former passages.
"""

import contextlib
import errno
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.core.files import File
from django.db import (
    DatabaseError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    connection,
    transaction,
)
from django.db.models import F
from django.utils import timezone
from procrastinate.contrib.django import app
from procrastinate.contrib.django.models import ProcrastinateJob

from chatsite.accounts.holds import DOCUMENT_ON_HOLD, OnHold, is_on_hold
from chatsite.accounts.models import User
from chatsite.db.threads import reading_everything, release_connection
from ingestion.access.lists import (
    Audience,
    access_list_for,
    audience_of,
)
from ingestion.embedding import EmbeddingError
from ingestion.parsing.formats import format_of
from ingestion.parsing.process import Interrupted, Interruption
from ingestion.parsing.sections import Unreadable

from . import quota
from .deletion import delete_document, delete_documents
from .details import Details, columns
from .document_events import Event, announce, announce_access
from .document_identity import Upload, UpsertResult, origin_of
from .file_names import (
    UploadRefused,
    category_name,
    file_name,
    folder_name,
)
from .indexing import reading
from .models import MAX_REASON, Document, ExternalId
from .queue.fair_queue import (
    Shares,
    first_positions,
    job_arguments,
    lock_name,
    position_after_yielding,
    put_behind,
    requeue,
)
from .storage import files

__all__ = [
    "DocumentExists",
    "TemporaryFailure",
    "UploadRefused",
    "change_details",
    "delete_document",
    "delete_documents",
    "read_document",
    "replace_file",
    "retry",
    "transfer_ownership",
    "upsert",
]

logger = logging.getLogger(__name__)

READING_LOCK = 0x696E6765  # first half of the key of advisory locks on documents that are being read
WAIT_SECONDS = 0.2
UPSERT_ATTEMPTS = 5
GONE = "The document was deleted or changed its owner meanwhile, so the file was not saved."

LOST = "The file is missing on the server. Add it again."
BROKEN = "It could not be read because of a fault on the server, which was logged. Read it again later."
STORAGE_AWAY = "The file storage does not respond, and nothing of this file was kept. Try again in a moment."
DELAYED = "Reading is delayed by a fault on the server and is tried again automatically."


class TemporaryFailure(Exception):
    """A temporary failure that is not the document's fault: reading it later may succeed.

    The text is the reason to show; `retry_after` is the number of seconds that a server has asked for.
    """

    def __init__(self, reason: str, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class DocumentExists(Exception):
    """The document already exists, but may not be replaced."""


class Yielded(Exception):
    """The document yields to another owner's, or was deleted; its job has a new `priority`."""

    def __init__(self, priority: int) -> None:
        super().__init__(priority)
        self.priority = priority


def upsert(
    file: "File[bytes]",
    name: str,
    *,
    owner: User | None,
    audience: Audience,
    folder: str = "",
    category: str = "",
    within_quota: bool = False,
    mirrored: bool = False,
    external_id: str = "",
    details: Details | None = None,
    may_replace: bool = True,
    check_sender: Callable[[], None] = lambda: None,
    replaces: Document | None = None,
) -> UpsertResult:
    """Store a file as a new document, or as the next version of an existing document.

    An uploaded document is identified by its owner, folder and name, with a unique constraint, so that a file
    becomes one document even if several callers send it at once. The last call sets the audience. Added
    readers see the document after the new file has been read; removed readers lose access at once. A document
    with an `external_id` is identified by its owner and that id, so that its folder and name may change. With
    `replaces`, the file replaces that document of the owner, whose folder and name may change, too. A
    `mirrored` document is identified by its SourceFile, and this function always adds it. Members missing
    from `details` keep their values. Raises UploadRefused, for example if another document has the new folder
    and name; with `within_quota`, also if the file exceeds the owner's quota. Without `may_replace`, raises
    DocumentExists if the document exists already, and stores nothing.
    `check_sender` is called before and after the file is stored; nothing of the file is kept if it raises.
    """
    check_sender()
    name, folder = file_name(name), folder_name(folder)
    kind = format_of(name)
    document = Document(
        origin=None if mirrored or external_id else origin_of(owner),
        owner=owner,
        access_list=access_list_for(audience, owner.pk if owner else None),
        folder=folder,
        name=name,
        category=category_name(category),
        media_type=kind.media_type if kind else "application/octet-stream",
        **(given_details := columns(details or {})),
    )
    upload = Upload(document, external_id, given_details, replaces.pk if replaces else None)
    if may_replace and not mirrored and (unchanged := upload.unchanged(file)):
        return unchanged
    stored = _store(file)
    document.file, document.size, document.sha256 = stored.name, stored.size, stored.sha256
    with _removed_on_error(stored), reading_everything():
        check_sender()
        for _ in range(UPSERT_ATTEMPTS):
            if done := _stored_or_kept(
                upload, stored, may_exist=not mirrored, may_replace=may_replace, within_quota=within_quota
            ):
                return done
    raise RuntimeError("Other callers inserted and deleted the document at each attempt.")


@transaction.atomic
def _stored_or_kept(
    upload: Upload, stored: files.StoredFile, *, may_exist: bool, may_replace: bool, within_quota: bool
) -> UpsertResult | None:
    """Insert or replace the document, or keep it if it has this file already.

    None if another caller has inserted the document meanwhile. Raises DocumentExists and UploadRefused.
    """
    owner = upload.document.owner if within_quota else None
    if owner:
        quota.lock(owner)
    known = upload.existing().select_for_update(no_key=True).first() if may_exist else None
    if upload.replaces and not known:
        raise UploadRefused("document_gone", GONE)
    if known and not may_replace:
        raise DocumentExists
    if known and (kept := upload.keep(known, stored.sha256)):
        # Another caller has sent the same file at the same time.
        files.remove_on_commit(stored.name)
        return kept
    if known and is_on_hold(known.owner_id):
        raise UploadRefused("on_hold", DOCUMENT_ON_HOLD)
    if owner:
        quota.claim(owner, stored.size, instead_of=known.size if known else None)
    if known:
        return upload.replace(known, stored)
    return UpsertResult(upload.document, "added") if upload.insert() else None


def replace_file(document: Document, upload: "File[bytes]") -> dict[str, str | int]:
    """Queue another file for the document, which does not change until that file has been read.

    Returns the `replacement` for `read_document`. Raises UploadRefused.
    """
    if is_on_hold(document.owner_id):
        raise UploadRefused("on_hold", DOCUMENT_ON_HOLD)
    stored = _store(upload)
    with _removed_on_error(stored), transaction.atomic():
        replacement: dict[str, str | int] = asdict(stored)
        Document.objects.filter(pk=document.pk).update(audience_version=F("audience_version") + 1)
        requeue(document, replacement)
    return replacement


def change_details(document: Document, details: Details) -> dict[str, Any]:
    """Change a document's details, and return the changed columns.

    If the title changes, the document is read again, because the search index contains the title.
    """
    with transaction.atomic():
        known = Document.objects.select_for_update(no_key=True).get(pk=document.pk)
        changed = {name: value for name, value in columns(details).items() if getattr(known, name) != value}
        if changed:
            Document.objects.filter(pk=known.pk).update(**changed, changed_at=timezone.now())
        if "given_title" in changed:
            requeue(known, None)
    return changed


def transfer_ownership(document: Document, to: User) -> None:
    """Make `to` the owner, and remove the former owner from the readers.

    The former owner's uploads no longer find the document by its folder and name or by an external id. These
    now identify it among the documents of `to`, unless another document of `to` has them already. Raises
    OnHold.
    """
    if is_on_hold(document.owner_id):
        raise OnHold(DOCUMENT_ON_HOLD)
    with transaction.atomic():
        known = Document.objects.select_for_update(no_key=True).filter(pk=document.pk).first()
        if known is None or known.part_of_id:
            return  # a part has the readers of the enclosing document
        rows = Document.objects.filter(pk=known.pk)
        before = audience_of(known)
        audience = Audience(before.everyone, before.user_ids - {to.pk}, before.group_ids, before.guests)
        former, access_list = known.access_list_id, access_list_for(audience, to.pk)
        if known.origin is not None:
            try:
                with transaction.atomic():
                    rows.update(origin=origin_of(to))
            except IntegrityError:
                rows.update(origin=None)
        if known.owner_id != to.pk:
            taken = ExternalId.objects.filter(owner=to).values("external_id")
            ids = ExternalId.objects.filter(document=known).exclude(owner=to)
            ids.filter(owner=known.owner_id).exclude(external_id__in=taken).update(owner=to)
            ExternalId.objects.filter(document=known).exclude(owner=to).delete()
        rows.update(owner=to, access_list=access_list, audience_version=F("audience_version") + 1)
        announce_access(known, former, access_list.pk)


def retry(document: Document) -> None:
    """Queue the document to be read again; its current passages remain until then."""
    with transaction.atomic():
        requeue(document, None)


def take_turn(document_id: int, shares: Shares) -> int | None:
    """Return the id of the document's owner (0 if it has none) if it is that owner's turn.

    None if the document was deleted. Raises Yielded if another owner's document comes first, and
    TemporaryFailure if the database is unavailable.
    """
    try:
        row = Document.objects.filter(pk=document_id).values_list("owner_id").first()
        if row is None:
            return None
        owner_id = row[0] or 0
        position = shares.position_behind(owner_id, first_positions())
        priority = put_behind(document_id, position) if position is not None else None
    except (OperationalError, InterfaceError) as error:
        raise TemporaryFailure(BROKEN) from error
    if priority is not None:
        raise Yielded(priority)
    return owner_id


def read_document(
    document_id: int,
    replacement: dict[str, str | int] | None = None,
    interruption: Interruption | None = None,
) -> None:
    """The job: read the file and replace the document's passages.

    `replacement` has the fields of `files.StoredFile` for a file that will replace the document's file, and
    the new access list if it changes. For an unreadable file, the status becomes `failed`, with a reason.
    Waits for other jobs that read the same document, and does not repeat finished work. Raises
    TemporaryFailure, and Yielded after an interruption.
    """
    stored = stored_file(replacement)
    try:
        with _reading_lock(document_id):
            document = _to_read(document_id, stored)
            if document is not None:
                audience = None
                if replacement and "access_list_id" in replacement:
                    audience = reading.NewAudience(
                        int(replacement["access_list_id"]), int(replacement["audience_version"])
                    )
                _read(document, stored, audience, interruption)
    except (OperationalError, InterfaceError, OSError) as error:
        # If the outcome could not be stored, the next attempt checks what is left to do.
        raise TemporaryFailure(BROKEN) from error


def _read(
    document: Document,
    stored: files.StoredFile | None,
    audience: reading.NewAudience | None,
    interruption: Interruption | None,
) -> None:
    """Read the document and record the outcome."""
    try:
        reading.read(document, stored, audience, interruption)
    except Interrupted:
        with transaction.atomic():
            Document.objects.filter(pk=document.pk, status__in=Document.UNFINISHED).update(
                status=Document.Status.WAITING, progress_done=0, progress_total=0
            )
            priority = put_behind(document.pk, position_after_yielding(document))
        raise Yielded(priority) from None
    except (Unreadable, EmbeddingError) as error:
        if isinstance(error, EmbeddingError) and error.temporary:
            if _was_deleted(document.pk, stored):
                return
            _delay(document.pk, str(error))
            raise TemporaryFailure(str(error), error.retry_after) from error
        _fail(document.pk, str(error), stored)
    except FileNotFoundError:
        _fail(document.pk, LOST, stored)
    except (OperationalError, InterfaceError, OSError) as error:
        if _was_deleted(document.pk, stored):
            return
        _delay(document.pk, DELAYED)
        raise TemporaryFailure(BROKEN) from error
    except Exception as error:
        # Passages cannot be stored for a document that was deleted while it was read.
        if not isinstance(error, IntegrityError) or not _was_deleted(document.pk, stored):
            logger.exception("Reading a document failed.", extra={"document": document.pk})
        _fail(document.pk, BROKEN, stored)


def remove_jobs(document: Document, replacement: dict[str, str | int] | None) -> None:
    """Remove the jobs of a document that this process has read; jobs for later requests remain."""
    lock, arguments = lock_name(document.pk), job_arguments(document, replacement)
    jobs = ProcrastinateJob.objects.filter(lock=lock, status="todo", args=arguments)
    # A later request to read the document changes the row first, so it waits for this lock.
    with transaction.atomic():
        current = Document.objects.select_for_update().filter(pk=document.pk).first()
        if replacement is None and current and current.status in Document.UNFINISHED:
            return
        for job_id in jobs.values_list("pk", flat=True):
            app.job_manager.cancel_job_by_id(job_id, delete_job=True)


def give_up(document_id: int, replacement: dict[str, str | int] | None = None, reason: str = BROKEN) -> None:
    """Stop trying to read a document after attempts that failed or that ended the worker."""
    _fail(document_id, reason, stored_file(replacement))


def stored_file(replacement: dict[str, str | int] | None) -> files.StoredFile | None:
    """The stored file that a job's `replacement` describes; None without one."""
    if replacement is None:
        return None
    return files.StoredFile(
        str(replacement["name"]),
        int(replacement["size"]),
        str(replacement["sha256"]),
        str(replacement.get("ending", "")),  # missing in jobs that an earlier version has queued
    )


def _to_read(document_id: int, stored: files.StoredFile | None) -> Document | None:
    """The document, unless this job's work is already done."""
    document = Document.objects.filter(pk=document_id).first()
    if document is None:
        if stored:
            files.remove(stored.name)
        return None
    if stored:
        # If a worker died before it could end its job, the file may already be in place or refused.
        return None if document.file.name == stored.name or _is_removed(document, stored) else document
    return document if document.status in Document.UNFINISHED else None


def _is_removed(document: Document, stored: files.StoredFile) -> bool:
    """Whether the queued file was refused, or removed after a later one was read.

    If the file is missing and no other job is queued for the document, the file is lost, not removed.
    """
    if files.exists(stored.name):
        return False
    if document.status not in Document.UNFINISHED:
        return True
    jobs = ProcrastinateJob.objects.filter(lock=lock_name(document.pk), status__in=("todo", "doing"))
    queued = [job.args["replacement"] for job in jobs]
    return any(file is None or file["name"] != stored.name for file in queued)


def _store(upload: "File[bytes]") -> files.StoredFile:
    limit = settings.DOCUMENT_MAX_BYTES
    release_connection()  # access to the storage may take a long time
    try:
        return files.store(upload, limit)
    except files.StorageFault as fault:
        logger.error("The storage did not accept a file: %s", type(fault.__cause__).__name__)
        raise UploadRefused("storage_away", STORAGE_AWAY) from None
    except files.TooLarge:
        raise UploadRefused(
            "too_large", f"The file is larger than {limit / 1_000_000:g} MB and was not accepted."
        ) from None
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise UploadRefused(
            "storage_full", "The server's disk is full, so the file was not saved."
        ) from error


@contextlib.contextmanager
def _removed_on_error(stored: files.StoredFile) -> Iterator[None]:
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):  # the nightly job removes remaining files
            files.remove(stored.name)
        raise


@contextlib.contextmanager
def _reading_lock(document_id: int) -> Iterator[None]:
    """Hold the lock for reading the document, after waiting for any other holder.

    PostgreSQL releases the lock of a process that dies.
    """
    key = [READING_LOCK, document_id % 2**31]
    with connection.cursor() as cursor:
        while True:
            cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", key)
            if cursor.fetchone()[0]:
                break
            time.sleep(WAIT_SECONDS)
    try:
        yield
    finally:
        with contextlib.suppress(DatabaseError, InterfaceError), connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s, %s)", key)


def _was_deleted(document_id: int, stored: files.StoredFile | None) -> bool:
    """Whether the document was deleted while it was read, which is no error.

    If it was, removes its new file.
    """
    try:
        if Document.objects.filter(pk=document_id).exists():
            return False
    except (OperationalError, InterfaceError):
        return False  # unknown: the database is unavailable
    logger.info("A document was deleted while it was read.", extra={"document": document_id})
    if stored:
        files.discard(stored, document_id)
    return True


def _fail(document_id: int, reason: str, stored: files.StoredFile | None) -> None:
    documents = Document.objects.filter(pk=document_id)
    unfinished = documents.filter(status__in=Document.UNFINISHED)
    if stored:
        reason = f"The new file was not accepted; the former one remains. {reason}"
        # if the file is in place, the swap was committed, and only its acknowledgement was lost
        unfinished = documents.exclude(file=stored.name)
    with transaction.atomic():
        failed = unfinished.update(
            status=Document.Status.FAILED, reason=reason[:MAX_REASON], progress_done=0, progress_total=0,
            changed_at=timezone.now(),
        )  # fmt: skip
        if failed:
            announce(Event.DOCUMENT_FAILED, documents.get())
    if stored:
        files.discard(stored, document_id)


def _delay(document_id: int, reason: str) -> None:
    with contextlib.suppress(DatabaseError, InterfaceError):  # the database itself may be the cause
        documents = Document.objects.filter(pk=document_id, status__in=Document.UNFINISHED)
        documents.update(status=Document.Status.WAITING, reason=reason[:MAX_REASON])
