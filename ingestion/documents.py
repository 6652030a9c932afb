"""The way of a document: file, reading, passages, vectors; and out again.

A document and the job that reads it commit together. Reading happens outside any transaction; what it found
replaces the former passages in one.
"""

import contextlib
import errno
import hashlib
import logging
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import Literal

from django.conf import settings
from django.core.files import File
from django.db import DatabaseError, InterfaceError, OperationalError, connection, transaction
from django.utils import timezone
from procrastinate.contrib.django import app
from procrastinate.contrib.django.models import ProcrastinateJob
from procrastinate.types import JSONValue

from chatsite.accounts.models import User
from ingestion.access.lists import (
    Audience,
    access_list_for,
)
from ingestion.embedding import EmbeddingError
from ingestion.indexing.passages import delete_passages
from ingestion.parsing.formats import format_of
from ingestion.parsing.sections import Unreadable

from . import file_names, quota
from .fair_queue import (
    job_priority,
    next_position,
)
from .file_names import (
    UploadRefused,
    category_name,
    file_name,
    folder_name,
)
from .indexing import reading
from .models import Document
from .storage import files

__all__ = [
    "TemporaryFailure",
    "UploadRefused",
    "add_document",
    "delete_document",
    "delete_documents",
    "read_document",
    "replace_file",
    "retry",
]

logger = logging.getLogger(__name__)

READING_LOCK = 0x696E6765  # first half of the advisory locks of documents that are being read
WAIT_SECONDS = 0.2
DELETE_BATCH = 100  # documents; more would hold their rows for too long
TASK = "ingestion.read"
QUEUE = "ingestion"

LOST = "The file is missing on the server. Add it again."
BROKEN = "It could not be read because of a fault on the server, which is in its log. Read it again later."
STORAGE_AWAY = "The files' storage does not answer, and nothing of this file is kept. Try again in a moment."
DELAYED = "Reading is delayed by a fault on the server and is tried again by itself."


class TemporaryFailure(Exception):
    """Something around the document failed, not the document: reading it later may succeed.

    Its text is the reason, in words for people; `retry_after` are the seconds that a server has asked for.
    """

    def __init__(self, reason: str, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


def add_document(
    upload: "File[bytes]",
    name: str,
    *,
    owner: User | None,
    audience: Audience,
    folder: str = "",
    category: str = "",
    within_quota: bool = False,
) -> Document:
    """Keep the file, and create its document together with the job that reads it.

    Raises UploadRefused, with `within_quota` also where it is too much for its owner.
    """
    name, folder = file_name(name), folder_name(folder)
    kind = format_of(name)
    stored = _store(upload)
    try:
        with transaction.atomic():
            if within_quota and owner:
                quota.claim(owner, stored.size)
            document = Document(
                owner=owner,
                access_list=access_list_for(audience, owner.pk if owner else None),
                folder=folder,
                name=name,
                category=category_name(category),
                file=stored.name,
                media_type=kind.media_type if kind else "application/octet-stream",
                size=stored.size,
                sha256=stored.sha256,
            )
            document.queue_position = next_position(document)
            document.save()
            _defer(document)
    except BaseException:
        with contextlib.suppress(OSError):  # what is left there goes with the orphans
            files.remove(stored.name)
        raise
    return document


def replace_file(
    document: Document, upload: "File[bytes]", *, within_quota: bool = False
) -> dict[str, str | int]:
    """Have another file read in the document's place; until that has succeeded it stays as it is.

    Returns what `read_document` takes as `replacement`. Raises UploadRefused.
    """
    stored = _store(upload)
    try:
        with transaction.atomic():
            if within_quota and document.owner:
                quota.claim(document.owner, stored.size, instead_of=document.size)
            _requeue(document, stored)
    except BaseException:
        with contextlib.suppress(OSError):  # what is left there goes with the orphans
            files.remove(stored.name)
        raise
    return asdict(stored)


def retry(document: Document) -> None:
    """Have the document read again; what is found in it until then stays."""
    with transaction.atomic():
        _requeue(document, None)


def delete_document(document: Document) -> None:
    """Delete rows, vectors, the file and the images of its pages."""
    delete_documents([document])


def delete_documents(documents: Iterable[Document]) -> None:
    """Delete them as `delete_document` does, DELETE_BATCH in a transaction."""
    identifiers = [document.pk for document in documents]
    for start in range(0, len(identifiers), DELETE_BATCH):
        with transaction.atomic():
            reading.allow_long_statements()
            batch = identifiers[start : start + DELETE_BATCH]
            for locked in Document.objects.select_for_update().filter(pk__in=batch).order_by("pk"):
                delete_passages(locked)
                locked.delete()
                transaction.on_commit(partial(files.remove, str(locked.file.name)), robust=True)


def read_document(document_id: int, replacement: dict[str, str | int] | None = None) -> None:
    """The job's work: read the file and put its passages in the place of the former ones.

    `replacement` (the fields of `files.Stored`) is the file to take the place of the document's own. What is
    wrong with the file ends as `failed` with a reason. Whoever else reads the document is waited for, and
    what they finished is not done again. Raises TemporaryFailure.
    """
    stored = files.Stored(**replacement) if replacement else None  # type: ignore[arg-type]
    with _alone(document_id):
        document = _to_read(document_id, stored)
        if document is None:
            return
        try:
            reading.read(document, stored)
        except (Unreadable, EmbeddingError) as error:
            if isinstance(error, EmbeddingError) and error.temporary:
                _delay(document_id, str(error))
                raise TemporaryFailure(str(error), error.retry_after) from error
            _fail(document_id, str(error), stored)
        except FileNotFoundError:
            _fail(document_id, LOST, stored)
        except (OperationalError, InterfaceError, OSError) as error:
            _delay(document_id, DELAYED)
            raise TemporaryFailure(BROKEN) from error
        except Exception:
            logger.exception("Reading a document failed.", extra={"document": document_id})
            _fail(document_id, BROKEN, stored)


def remove_jobs(document: Document, replacement: dict[str, str | int] | None) -> None:
    """Take this reading's jobs out of the queue: it was done here. What somebody asked for since stays."""
    lock, arguments = lock_name(document.pk), _arguments(document, replacement)
    jobs = ProcrastinateJob.objects.filter(lock=lock, status="todo", args=arguments)
    with transaction.atomic():  # whoever has the document read again changes its row first
        current = Document.objects.select_for_update().filter(pk=document.pk).first()
        if replacement is None and current and current.status in Document.UNFINISHED:
            return
        for job_id in jobs.values_list("pk", flat=True):
            app.job_manager.cancel_job_by_id(job_id, delete_job=True)


def give_up(document_id: int, replacement: dict[str, str | int] | None = None, reason: str = BROKEN) -> None:
    """End the attempts to read a document that something around it has prevented."""
    stored = files.Stored(**replacement) if replacement else None  # type: ignore[arg-type]
    _fail(document_id, reason, stored)


def _to_read(document_id: int, stored: files.Stored | None) -> Document | None:
    """The document, where this job's work is still to be done."""
    document = Document.objects.filter(pk=document_id).first()
    if document is None:
        if stored:
            files.remove(stored.name)
        return None
    if stored:
        # In place already, or refused already: a worker died between saying so and ending its job.
        refused = document.status == Document.Status.FAILED and not files.exists(stored.name)
        return None if refused or document.file.name == stored.name else document
    return document if document.status in Document.UNFINISHED else None


def _store(upload: "File[bytes]") -> files.Stored:
    limit = settings.DOCUMENT_MAX_BYTES
    try:
        return files.store(upload, limit)
    except files.StorageFault:
        logger.exception("The storage does not take a file.")
        raise UploadRefused("storage_away", STORAGE_AWAY) from None
    except files.TooLarge:
        raise UploadRefused(
            "too_large", f"The file is larger than {limit / 1_000_000:g} MB and was not taken."
        ) from None
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise UploadRefused("storage_full", "There is no room for the file on the server.") from error


def _requeue(document: Document, stored: files.Stored | None) -> None:
    # The caller holds the transaction.
    document.queue_position = next_position(document)
    document.status, document.reason = Document.Status.WAITING, ""  # also for who shows it next
    Document.objects.filter(pk=document.pk).update(
        status=document.status,
        reason=document.reason,
        queue_position=document.queue_position,
        progress_done=0,
        progress_total=0,
        changed_at=timezone.now(),
    )
    _defer(document, asdict(stored) if stored else None)


def _defer(document: Document, replacement: dict[str, str | int] | None = None) -> None:
    task = app.configure_task(
        TASK, queue=QUEUE, lock=lock_name(document.pk), priority=job_priority(document.queue_position)
    )
    task.defer(**_arguments(document, replacement))


def _arguments(document: Document, replacement: dict[str, str | int] | None) -> dict[str, JSONValue]:
    return {"document_id": document.pk, "replacement": {**replacement} if replacement else None}


def lock_name(document_id: int) -> str:
    """By which the queue knows the jobs of a document, and runs one at a time."""
    return f"document-{document_id}"


@contextlib.contextmanager
def _alone(document_id: int) -> Iterator[None]:
    """Wait until nobody else reads the document; PostgreSQL forgets the lock of whoever dies."""
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


def _fail(document_id: int, reason: str, stored: files.Stored | None) -> None:
    documents = Document.objects.filter(pk=document_id)
    unfinished = documents.filter(status__in=Document.UNFINISHED)
    if stored:
        reason = f"The new file was not taken, the former stays. {reason}"
        unfinished = documents.exclude(file=stored.name)  # taken after all: only the word of it was lost
    unfinished.update(
        status=Document.Status.FAILED, reason=reason[:300], progress_done=0, progress_total=0,
        changed_at=timezone.now(),
    )  # fmt: skip
    if stored:
        files.discard(stored, document_id)


def _delay(document_id: int, reason: str) -> None:
    with contextlib.suppress(DatabaseError, InterfaceError):  # the database may be what has failed
        documents = Document.objects.filter(pk=document_id, status__in=Document.UNFINISHED)
        documents.update(status=Document.Status.WAITING, reason=reason[:300])


@dataclass(frozen=True, slots=True)
class Put:
    """The document, what became of the file, and what `read_document` takes for a replacement."""

    document: Document
    outcome: Literal["added", "replaced", "unchanged"]
    replacement: dict[str, str | int] | None = None


def put_document(
    upload: "File[bytes]",
    name: str,
    *,
    owner: User | None,
    audience: Audience,
    folder: str = "",
    category: str = "",
    within_quota: bool = False,
) -> Put:
    """Add the file, or put it in the place of its earlier version. Raises UploadRefused."""
    owner_id = owner.pk if owner else None
    known = Document.objects.filter(
        folder=file_names.folder_name(folder),
        name=file_names.file_name(name),
        owner=owner_id,
        access_list=access_list_for(audience, owner_id),
    ).first()
    if known is None:
        document = add_document(
            upload,
            name,
            owner=owner,
            audience=audience,
            folder=folder,
            category=category,
            within_quota=within_quota,
        )
        return Put(document, "added")
    if known.sha256 != _digest(upload) or _another_comes(known):
        return Put(known, "replaced", replace_file(known, upload, within_quota=within_quota))
    if known.status == Document.Status.READY:
        return Put(known, "unchanged")
    retry(known)
    return Put(known, "replaced")


def _another_comes(known: Document) -> bool:
    """Whether a file waits, or is being read, to take the document's place: the last one given is to stay."""
    jobs = ProcrastinateJob.objects.filter(lock=lock_name(known.pk), status__in=("todo", "doing")).exclude(
        args__replacement=None
    )
    return known.status in Document.UNFINISHED and jobs.exists()


def _digest(upload: "File[bytes]") -> str:
    digest = hashlib.sha256()
    for chunk in upload.chunks():
        digest.update(chunk)
    upload.seek(0)
    return digest.hexdigest()
