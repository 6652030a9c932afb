"""Reads a document: turns its file into passages and vectors, and stores these in one transaction."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone
from django.utils.module_loading import import_string

from ingestion.document_events import Event, announce, announce_access
from ingestion.embedding import (
    EmbeddingError,
    lock_active,
)
from ingestion.file_names import title_of
from ingestion.models import Document
from ingestion.parsing import process
from ingestion.parsing.formats import (
    CONTAINERS,
    FORMATS,
    ending_for,
    format_names,
)
from ingestion.parsing.sections import Unreadable
from ingestion.parsing.workspace import workspace
from ingestion.queue.fair_queue import last_queued_file
from ingestion.storage import files
from ingestion.suggested_questions import MAX_QUESTIONS, questions_about
from ingestion.versions import former_versions

from . import parts
from .passages import NewPassage, allow_long_statements
from .replacing import (
    PreparedVectors,
    prepare,
    write_passages,
)
from .splitting import passages_of

PROGRESS_SECONDS = 0.5
CANCEL_SECONDS = 5.0  # how long PostgreSQL may take to cancel a statement on request
SHOWN_CHARACTERS = 6_000  # characters of a document from which the language model writes questions
MAX_VERSIONS = 20  # versions that are listed
SWAP_ATTEMPTS = 3  # an attempt fails if the embedding model was changed meanwhile
SPACE_CHANGING = "The embedding model is being changed; the document is read again when that is done."


@dataclass(frozen=True, slots=True)
class NewAudience:
    """A new file's access list, used if the document's `audience_version` is still `version`."""

    access_list_id: int
    version: int


def read(
    document: Document,
    stored: files.StoredFile | None,
    audience: NewAudience | None = None,
    interruption: process.Interruption | None = None,
) -> None:
    """Read the document (or a replacement file), and swap its passages.

    Raises Unreadable, EmbeddingError, Interrupted, and any error of the database or the storage.
    """
    ending = ending_for(document.name, document.media_type)
    if stored:
        ending = stored.ending or ending
    if ending not in FORMATS:
        known = ", ".join(format_names())
        what = f"Files ending in {ending}" if ending else "Files without an ending"
        raise Unreadable(f"{what[:60]} cannot be read. Readable formats: {known}.")
    interruption = interruption or process.Interruption()
    progress = _Progress(document.pk)
    progress(Document.Status.READING, 0, 0)
    source = stored.name if stored else str(document.file.name)
    with workspace() as folder:
        takes_parts = FORMATS[ending].media_type in CONTAINERS and parts.depth_of(document) < parts.MAX_DEPTH
        with files.local_copy(source) as path:
            reading = process.read(
                path,
                ending,
                lambda done, total: progress(Document.Status.READING, done, total),
                interruption,
                folder=Path(folder) if takes_parts else None,
            )
        passages = list(passages_of(reading.sections))
        document.title = document.given_title or reading.title or title_of(document.name)
        document.language, document.page_count = reading.language, reading.pages
        new_parts = parts.store(document, reading, interruption)
    del reading  # frees memory: the passages have the same text

    def embedded(done: int) -> None:
        interruption.check()
        progress(Document.Status.INDEXING, done, len(passages))

    try:
        embedded(0)
        document.questions = _questions(document, passages)
        for _ in range(SWAP_ATTEMPTS):
            prepared = prepare(document, passages, document.title, embedded)
            if _swap(document, stored, passages, prepared, new_parts, audience, interruption):
                return
        raise EmbeddingError(SPACE_CHANGING, temporary=True)
    except (
        Unreadable,
        EmbeddingError,
        process.Interrupted,
    ):  # after any other error, the swap may have succeeded
        new_parts.discard()
        raise


def _questions(document: Document, passages: list[NewPassage]) -> list[str]:
    """The questions given with a new document, or else generated ones.

    Rules, and the language model if QUESTION_WRITER is set, generate questions from the text.
    """
    if document.questions and not document.version:
        return list(document.questions)
    found = questions_about(
        document.title, document.language, ((passage.heading, passage.content) for passage in passages)
    )
    if settings.QUESTION_WRITER:
        text = "\n\n".join(f"{passage.heading}\n{passage.content}" for passage in passages[:40])
        found = [*import_string(settings.QUESTION_WRITER)(document.title, text[:SHOWN_CHARACTERS]), *found]
    return list(dict.fromkeys(found))[:MAX_QUESTIONS]


def _swap(
    document: Document,
    stored: files.StoredFile | None,
    passages: list[NewPassage],
    prepared: PreparedVectors,
    new_parts: parts.NewParts,
    audience: NewAudience | None,
    interruption: process.Interruption,
) -> bool:
    """Replace the passages, and the file if there is a new one, in one transaction.

    Returns False, without a change, if another embedding model has become active meanwhile. Otherwise returns
    True, even if the document was deleted or another process has read it. Can be interrupted while the
    passages are written, which takes minutes for the largest documents.
    """
    with transaction.atomic():
        if not lock_active(prepared.space):
            return False
        allow_long_statements()
        if new_parts.stored:
            parts.lock(document)
        current = (
            Document.objects.select_for_update().filter(pk=document.pk, version=document.version).first()
        )
        if current is None:  # deleted, or read by another process, meanwhile
            if stored:
                transaction.on_commit(lambda: files.discard(stored, document.pk), robust=True)
            transaction.on_commit(new_parts.discard, robust=True)
            return True
        if stored and stored.sha256 != current.sha256:
            former_versions.keep(current)
        with interruption.ending(_Statement()):
            write_passages(document, passages, prepared)
        changes: dict[str, Any] = {}
        if stored:
            changes = {"file": stored.name, "size": stored.size, "sha256": stored.sha256}
            if stored.ending in FORMATS:
                changes["media_type"] = FORMATS[stored.ending].media_type
        waits = _is_read_again(current, document, stored)
        if audience and current.audience_version == audience.version:
            changes["access_list_id"] = audience.access_list_id
        Document.objects.filter(pk=document.pk).update(
            title=document.title, language=document.language, page_count=document.page_count,
            version=document.version + 1, reason="", changed_at=timezone.now(),
            status=Document.Status.WAITING if waits else Document.Status.READY,
            progress_done=0, progress_total=0, questions=document.questions,
            left_out=new_parts.left_out[: parts.MAX_LEFT_OUT],
            versions=_versions(current, document, stored, len(passages)), **changes,
        )  # fmt: skip
        widened = "access_list_id" in changes and changes["access_list_id"] != current.access_list_id
        if new_parts.stored or current.parts.exists():
            parts.replace(Document.objects.get(pk=document.pk), new_parts, widened=widened)
        if audience and "access_list_id" in changes:
            announce_access(current, current.access_list_id, audience.access_list_id)
        if not waits:
            announce(Event.DOCUMENT_READY, current, changes.get("access_list_id", current.access_list_id))
        if stored:  # if the storage fails after the commit, the nightly job removes the former file
            files.remove_on_commit(str(current.file.name))
    return True


def _is_read_again(current: Document, document: Document, stored: files.StoredFile | None) -> bool:
    """Whether another job will read the document again.

    This is the case if another file is queued, or if the title was changed meanwhile and is not in the search
    index yet.
    """
    queued = last_queued_file(document.pk)
    return current.given_title != document.given_title or (
        queued is not None and (stored is None or queued["name"] != stored.name)
    )


def _versions(
    current: Document, document: Document, stored: files.StoredFile | None, passages: int
) -> list[dict[str, Any]]:
    """The list of versions, with the new one."""
    version = {
        "version": document.version + 1,
        "sha256": stored.sha256 if stored else current.sha256,
        "size": stored.size if stored else current.size,
        "page_count": document.page_count,
        "passage_count": passages,
        "read_at": timezone.now().isoformat(),
    }
    return [*current.versions, version][-MAX_VERSIONS:]


class _Statement:
    """The running statement of this thread's connection, which another thread can cancel."""

    def __init__(self) -> None:
        self._connection = connection.connection

    def end(self) -> None:
        self._connection.cancel_safe(timeout=CANCEL_SECONDS)


class _Progress:
    """Stores the progress at the start and end of a status, and up to twice a second between."""

    def __init__(self, document_id: int) -> None:
        self._document_id = document_id
        self._status = ""
        self._written = 0.0

    def __call__(self, status: str, done: int, total: int) -> None:
        soon = time.monotonic() - self._written < PROGRESS_SECONDS
        if status == self._status and done < total and soon:
            return
        self._status, self._written = status, time.monotonic()
        Document.objects.filter(pk=self._document_id, status__in=Document.UNFINISHED).update(
            status=status, progress_done=done, progress_total=total
        )
