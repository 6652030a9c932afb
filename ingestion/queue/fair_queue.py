"""Start-time fair queueing of documents by owner.

Each waiting document has a queue position, and the document with the lowest position is read first. An
owner's next document gets the position after their last one, or after the position that is being served if
that is higher. The first document of an owner with no waiting documents is therefore read next, even if
another owner has ten thousand waiting documents. Positions start again at 1 when the queue is empty.

Positions count documents, so an owner of slow documents would still take up most of the time. Each worker
therefore measures how long it has read for each owner (`Shares`), and moves a document behind the next
document of an owner for whom it has read less.

Slow documents could still occupy every worker. Therefore, if an owner waits and none of their documents is
being read, one of those that are being read yields: the one whose job was queued last is moved back and
started again later. The one whose job was queued first never yields, so that every document is read
eventually.
"""

import logging
from collections.abc import Collection, Mapping
from typing import Any

from django.db import connection, transaction
from django.db.models.functions import Greatest
from django.utils import timezone
from procrastinate.contrib.django import app
from procrastinate.contrib.django.django_connector import DjangoConnector
from procrastinate.contrib.django.models import ProcrastinateJob
from procrastinate.jobs import JobDeferrer
from procrastinate.manager import JobManager
from procrastinate.types import JSONValue

from chatsite.db.threads import reading_everything
from ingestion.models import Document

logger = logging.getLogger(__name__)

TASK = "ingestion.read"
QUEUE = "ingestion"
MAX_COUNTED = 100  # limit when counting the documents ahead of another one
YIELD_SECONDS = 5.0  # how long all workers must be busy, and another owner wait, before a document yields
# Positions by which a yielding document moves back; with fewer, it would soon yield again.
YIELDED_POSITIONS = 10
MAX_INSPECTED = 100  # number of waiting jobs at the front of the queue whose owners are looked up

# The position being served, read from the jobs because row-level security hides other owners' documents.
CURRENT_POSITION = """
    SELECT coalesce(
        (SELECT max(-priority) FROM procrastinate_jobs WHERE status = 'doing'),
        (SELECT -priority - 1 FROM procrastinate_jobs WHERE status = 'todo' AND priority < 0
         ORDER BY priority DESC LIMIT 1),
        0
    )
"""
# Whether this job must end early: its document was deleted, or all running jobs have run for YIELD_SECONDS,
# this one was queued last among several, and an owner without a running job has waited for as long.
MUST_YIELD = """
    WITH active AS (
        SELECT job.id, coalesce(document.owner_id, 0) AS owner_id, EXISTS (
            SELECT FROM procrastinate_events AS event
            WHERE event.job_id = job.id AND event.at > now() - make_interval(secs => %(seconds)s)
        ) AS is_recent
        FROM procrastinate_jobs AS job
        LEFT JOIN ingestion_document AS document ON document.id = (job.args ->> 'document_id')::bigint
        WHERE job.status = 'doing' AND job.task_name = %(task)s
    ), waiting AS (
        SELECT id, (args ->> 'document_id')::bigint AS document_id
        FROM procrastinate_jobs
        WHERE status = 'todo' AND task_name = %(task)s AND (scheduled_at IS NULL OR scheduled_at < now())
        ORDER BY priority DESC, id LIMIT %(inspected)s
    )
    SELECT EXISTS (
        SELECT FROM active HAVING max(id) = %(job)s AND min(id) < %(job)s AND NOT bool_or(is_recent)
    ) AND EXISTS (
        SELECT FROM waiting JOIN ingestion_document AS document ON document.id = waiting.document_id
        WHERE coalesce(document.owner_id, 0) NOT IN (SELECT owner_id FROM active) AND NOT EXISTS (
            SELECT FROM procrastinate_events AS event
            WHERE event.job_id = waiting.id AND event.at > now() - make_interval(secs => %(seconds)s)
        )
    ) OR NOT EXISTS (
        SELECT FROM procrastinate_jobs AS job
        JOIN ingestion_document AS document ON document.id = (job.args ->> 'document_id')::bigint
        WHERE job.id = %(job)s
    ) AS yields
"""
# The position of each owner's first document among the next MAX_INSPECTED waiting ones.
FIRST_OF_OTHERS = """
    WITH waiting AS (
        SELECT id, priority, (args ->> 'document_id')::bigint AS document_id
        FROM procrastinate_jobs
        WHERE status = 'todo' AND task_name = %(task)s AND (scheduled_at IS NULL OR scheduled_at < now())
        ORDER BY priority DESC, id LIMIT %(inspected)s
    )
    SELECT coalesce(document.owner_id, 0), -max(waiting.priority)
    FROM waiting JOIN ingestion_document AS document ON document.id = waiting.document_id
    GROUP BY 1
"""
# A document moves back if the worker has read this much longer for its owner than for another owner with
# waiting documents.
MIN_DEBT_SECONDS = 2.0
MAX_OWNERS = 1_000  # owners whose times are remembered
MAX_LOST = 1_000
LOST = """
    SELECT document.id
    FROM ingestion_document AS document
    WHERE document.status = %s AND document.changed_at < now() - interval '1 minute' AND NOT EXISTS (
        SELECT FROM procrastinate_jobs AS job
        WHERE job.lock = 'document-' || document.id AND job.status IN ('todo', 'doing')
    )
    LIMIT %s
"""

COUNT_BEFORE = """
    SELECT wanted.position, (
        SELECT count(*) FROM (
            SELECT FROM procrastinate_jobs
            WHERE status = 'todo' AND priority < 0 AND priority > -wanted.position LIMIT %s
        ) AS earlier
    )
    FROM unnest(%s::int[]) AS wanted (position)
"""


class Shares:
    """How long this worker has read for each owner of waiting documents.

    A new or returning owner starts with at least the smallest time of the others, so that nobody is
    compensated for periods without documents.
    """

    def __init__(self) -> None:
        self._seconds: dict[int, float] = {}
        self._least = 0.0

    def add(self, owner_id: int, seconds: float) -> None:
        """Add the time that was spent on a document of this owner."""
        self._seconds[owner_id] = self.of(owner_id) + seconds

    def of(self, owner_id: int) -> float:
        return max(self._least, self._seconds.get(owner_id, 0.0))

    def position_behind(self, owner_id: int, positions: Mapping[int, int]) -> int | None:
        """The position to which a document of this owner must move; None if it is the owner's turn.

        The position is behind the first document of an owner for whom this worker has read less. `positions`
        has the position of each owner's first waiting document.
        """
        present = {owner_id, *positions}
        self._least = min(self.of(each) for each in present)
        if len(self._seconds) > MAX_OWNERS:
            self._seconds = {each: self._seconds[each] for each in present if each in self._seconds}
        debts = {each: self.of(owner_id) - self.of(each) for each in positions}
        owed = [positions[each] for each, debt in debts.items() if debt >= MIN_DEBT_SECONDS]
        return min(owed) + 1 if owed else None


def next_position(document: Document) -> int:
    """Return the position for a new waiting document. Call this in the transaction that saves it."""
    with connection.cursor() as cursor:
        cursor.execute(CURRENT_POSITION)
        served: int = cursor.fetchone()[0]
    # Consider all documents of the owner, including those that the caller may not read.
    with reading_everything():
        last = (
            Document.objects.filter(owner=document.owner_id, status__in=Document.UNFINISHED)
            .order_by("-queue_position")
            .values_list("queue_position", flat=True)
            .first()
        )
    return max(served, last or 0) + 1


def position_after_yielding(document: Document) -> int:
    """Return the position for a document that yields while it is being read."""
    return next_position(document) + YIELDED_POSITIONS


def put_behind(document_id: int, position: int) -> int:
    """Move a document to a later position, and return the new priority of its job.

    Jobs for later files of the same document are moved too: otherwise the older file would be read after a
    newer one, and replace it.
    """
    priority = job_priority(position)
    with transaction.atomic():
        # Lock the document's row first, so that a request that queues another file waits and comes later.
        Document.objects.filter(pk=document_id).update(queue_position=Greatest("queue_position", position))
        ProcrastinateJob.objects.filter(
            lock=lock_name(document_id), status="todo", priority__gt=priority
        ).update(priority=priority)
    return priority


def first_positions() -> dict[int, int]:
    """The position of each owner's first document among the next MAX_INSPECTED, by owner.

    Documents without an owner have the owner 0.
    """
    with connection.cursor() as cursor:
        cursor.execute(FIRST_OF_OTHERS, {"task": TASK, "inspected": MAX_INSPECTED})
        return dict(cursor.fetchall())


def job_priority(position: int) -> int:
    """Return the priority of a job; the highest comes first. Documents come after all other jobs."""
    return -position


def count_waiting_before(positions: Collection[int]) -> dict[int, int]:
    """Count the documents that will be read before each of these positions, up to MAX_COUNTED."""
    with connection.cursor() as cursor:
        cursor.execute(COUNT_BEFORE, [MAX_COUNTED, list(positions)])
        return dict(cursor.fetchall())


def lock_name(document_id: int) -> str:
    """The name of the lock for a document's jobs, which run one at a time."""
    return f"document-{document_id}"


def enqueue(document: Document, replacement: dict[str, str | int] | None = None) -> None:
    """Queue a job that reads a document. Call this in the transaction that saves the document."""
    task = app.configure_task(
        TASK, queue=QUEUE, lock=lock_name(document.pk), priority=job_priority(document.queue_position)
    )
    # Use Django's connection instead of procrastinate's: the job must be committed together with its
    # document. A worker that took the job earlier would find no document and end the job.
    deferrer = JobDeferrer(JobManager(DjangoConnector()), task.job)
    deferrer.defer(**job_arguments(document, replacement))


def requeue(document: Document, replacement: dict[str, str | int] | None) -> None:
    """Set the document to waiting and queue its reading again. Call this in a transaction."""
    document.queue_position = next_position(document)
    # Update the object too, because the caller may show it.
    document.status, document.reason = Document.Status.WAITING, ""
    Document.objects.filter(pk=document.pk).update(
        status=document.status,
        reason=document.reason,
        queue_position=document.queue_position,
        progress_done=0,
        progress_total=0,
        changed_at=timezone.now(),
    )
    enqueue(document, replacement)


def queue_lost() -> int:
    """Queue again the waiting documents that have no job, and return their number."""
    with connection.cursor() as cursor:
        cursor.execute(LOST, [Document.Status.WAITING, MAX_LOST])
        lost = [number for (number,) in cursor.fetchall()]
    for number in lost:
        with transaction.atomic():
            document = Document.objects.select_for_update().filter(pk=number, status=Document.Status.WAITING)
            if found := document.first():
                logger.warning("A document waited without a job.", extra={"document": number})
                requeue(found, None)
    return len(lost)


def job_arguments(document: Document, replacement: dict[str, str | int] | None) -> dict[str, JSONValue]:
    return {"document_id": document.pk, "replacement": {**replacement} if replacement else None}


def last_queued_file(document_id: int) -> dict[str, Any] | None:
    """The newest waiting or running replacement of the document's file, as its job describes it."""
    jobs = ProcrastinateJob.objects.filter(lock=lock_name(document_id), status__in=("todo", "doing"))
    newest = jobs.exclude(args__replacement=None).order_by("-pk").first()
    return newest.args["replacement"] if newest else None
