"""Jobs of the worker: read and change documents, recover killed workers' jobs, clean up."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from asgiref.sync import async_to_sync, sync_to_async
from django.db import InterfaceError, OperationalError, connection
from procrastinate import JobContext, RetryDecision, RetryStrategy
from procrastinate.contrib.django import app
from procrastinate.contrib.django.models import ProcrastinateJob
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job, Status

from chatsite import metrics, traces
from chatsite.db import side_jobs
from chatsite.db.threads import release_connection
from ingestion.bulk import changes
from ingestion.indexing.replacing import delete_stale_prepared

from . import documents
from .models import Document
from .parsing.process import Interruption
from .queue import fair_queue
from .storage import files
from .versions import former_versions

logger = logging.getLogger(__name__)

ATTEMPTS = 3
MAX_RETRY_SECONDS = 3_600  # longest pause, even if an embedding server asks for more


class ReadRetryStrategy(RetryStrategy):
    """Waits longer with each attempt, and at least as long as an embedding server asks for.

    A document that has yielded is retried when its new position is reached.
    """

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision | None:
        if isinstance(exception, documents.Yielded):
            return RetryDecision(retry_at=datetime.now(UTC), priority=exception.priority)
        decision = super().get_retry_decision(exception=exception, job=job)
        asked = getattr(exception, "retry_after", None)
        if decision is None or decision.retry_at is None or not asked:
            return decision
        earliest = datetime.now(UTC) + timedelta(seconds=min(asked, MAX_RETRY_SECONDS))
        return RetryDecision(retry_at=max(decision.retry_at, earliest))


READ_RETRIES = ReadRetryStrategy(
    max_attempts=ATTEMPTS, exponential_wait=15, retry_exceptions=[documents.TemporaryFailure]
)
# A bulk change fails, for example, if another process has locked one of the documents.
BULK_RETRIES = RetryStrategy(max_attempts=10, exponential_wait=2)
ORPHAN_AGE = timedelta(days=1)
ORPHAN_FAULTS = 3  # number of files that cannot be removed, after which the job stops
WORKER_DIED = "Each attempt to read it ended the worker, so it is not tried again automatically."
GRACE_SECONDS = 5  # longest time between taking a job and locking its document; usually milliseconds
ABANDONED = """
    SELECT job.id
    FROM procrastinate_jobs AS job
    WHERE job.status = 'doing'
      AND job.task_name = %(task)s
      AND NOT EXISTS (
          SELECT FROM procrastinate_events AS event
          WHERE event.job_id = job.id AND event.type = 'started'
            AND event.at > now() - make_interval(secs => %(grace)s)
      )
      AND NOT EXISTS (
          SELECT FROM pg_locks AS lock
          WHERE lock.locktype = 'advisory' AND lock.objsubid = 2 AND lock.classid = %(key)s::bigint
            AND lock.objid = (job.args ->> 'document_id')::bigint %% 2147483648
            AND lock.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      )
"""
REQUEUE = """
    UPDATE procrastinate_jobs SET status = 'todo', worker_id = NULL
    WHERE id = ANY(%(jobs)s) AND status = 'doing'
"""
# Correct the number of attempts: procrastinate counts yielding as a failed attempt.
TAKE_BACK_ATTEMPT = "UPDATE procrastinate_jobs SET attempts = attempts - 1 WHERE id = %s"
YIELD_CHECK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class _ActiveJob:
    interruption: Interruption = field(default_factory=Interruption)
    started: float = field(default_factory=time.monotonic)


_active_jobs: dict[int, _ActiveJob] = {}  # running jobs of this process that read documents, by id
_shares = fair_queue.Shares()  # how long this process has read for each owner


@app.task(name=fair_queue.TASK, queue=fair_queue.QUEUE, retry=READ_RETRIES, pass_context=True)
def read(context: JobContext, document_id: int, replacement: dict[str, str | int] | None = None) -> None:
    """Read one document; after external failures, try again after 15 and after 225 seconds."""
    job_id = context.job.id
    assert job_id is not None
    active = _active_jobs[job_id] = _ActiveJob()
    owner_id = None
    try:
        owner_id = documents.take_turn(document_id, _shares)
        documents.read_document(document_id, replacement, active.interruption)
    except documents.Yielded:
        metrics.DOCUMENTS_READ.add("yielded")
        logger.debug(
            "A document yields to another person's document, or was deleted.", extra={"document": document_id}
        )
        # If the database is unavailable, yielding uses up one attempt, but the job is retried.
        with contextlib.suppress(OperationalError, InterfaceError), connection.cursor() as cursor:
            cursor.execute(TAKE_BACK_ATTEMPT, [job_id])
        raise
    except documents.TemporaryFailure as fault:
        if context.job.attempts + 1 < ATTEMPTS:
            metrics.DOCUMENTS_READ.add("put off")
            raise
        metrics.DOCUMENTS_READ.add("given up")
        logger.exception("Reading a document was given up.", extra={"document": document_id})
        documents.give_up(document_id, replacement, str(fault))
    else:
        metrics.DOCUMENTS_READ.add("ended")
    finally:
        if owner_id is not None:
            _shares.add(owner_id, time.monotonic() - active.started)
        traces.record("read document", time.monotonic() - active.started, chatsite__document=document_id)
        del _active_jobs[job_id]


async def yield_to_others() -> None:
    """While the worker runs, interrupt this process's readings that must yield."""
    while True:
        await asyncio.sleep(YIELD_CHECK_SECONDS)
        for job_id, active in list(_active_jobs.items()):
            if time.monotonic() - active.started < fair_queue.YIELD_SECONDS:
                continue
            try:
                row = await app.connector.execute_query_one_async(
                    fair_queue.MUST_YIELD,
                    job=job_id,
                    task=fair_queue.TASK,
                    seconds=fair_queue.YIELD_SECONDS,
                    inspected=fair_queue.MAX_INSPECTED,
                )
            except ConnectorException:
                logger.warning("The owners who wait for a worker could not be looked up", exc_info=True)
                continue
            if row["yields"]:
                active.interruption.request()


async def requeue_active_jobs() -> None:
    """Return the reading jobs of this process to the queue when the worker shuts down.

    This does not count as an attempt. The caller must exit at once, because the next workers wait for this
    process's locks on the documents.
    """
    await app.connector.execute_query_async(REQUEUE, jobs=[*_active_jobs])


@app.task(name=changes.TASK, queue=side_jobs.QUEUE, retry=BULK_RETRIES)
def bulk_change(change_id: int) -> None:
    """Continue a bulk change for a while, and queue another job for the rest."""
    if changes.work(change_id):
        changes.defer(change_id)


@app.periodic(cron="47 3 * * *")
@app.task(name="ingestion.delete_old_changes", queue=side_jobs.QUEUE, queueing_lock="delete-old-changes")
def delete_old_changes(timestamp: int) -> None:
    changes.delete_old()


@app.periodic(cron="52 3 * * *")
@app.task(name="ingestion.purge_versions", queue=side_jobs.QUEUE, queueing_lock="purge-versions")
def purge_versions(timestamp: int) -> None:
    former_versions.purge()


@app.periodic(cron="* * * * *")
@app.task(name="ingestion.recover_stalled_jobs", queue=side_jobs.QUEUE, queueing_lock="recover-stalled-jobs")
async def recover(timestamp: int) -> None:
    await _retry_stalled_jobs()
    await sync_to_async(changes.queue_lost)()
    await sync_to_async(fair_queue.queue_lost)()


@app.periodic(cron="17 3 * * *")
@app.task(name="ingestion.remove_orphans", queue=fair_queue.QUEUE, queueing_lock="remove-orphans")
def remove_orphans(timestamp: int) -> None:
    """Remove files without a document, for example those that a killed process left behind.

    Also deletes stale prepared vectors. The job continues after a file that cannot be removed, and fails in
    the end. It stops at ORPHAN_FAULTS such files: the storage is probably unavailable, and each further file
    would cost another timeout.
    """
    jobs = ProcrastinateJob.objects.filter(task_name=fair_queue.TASK, status__in=["todo", "doing"])
    # Query jobs before documents, so that a file that moves from a job to its document meanwhile is found.
    kept = {
        (arguments.get("replacement") or {}).get("name") for arguments in jobs.values_list("args", flat=True)
    }
    kept |= set(Document.objects.values_list("file", flat=True))
    delete_stale_prepared(ORPHAN_AGE)
    faults: list[OSError] = []
    for name in files.names_older_than(ORPHAN_AGE):
        if name not in kept:
            try:
                files.remove(name)
            except OSError as fault:
                faults.append(fault)
                if len(faults) == ORPHAN_FAULTS:
                    break
    if faults:
        raise faults[0]


def recover_stalled_jobs(grace_seconds: float = GRACE_SECONDS) -> int:
    """Return the jobs of dead workers to the queue, or give them up; return their number.

    Called when a worker starts; the job `recover` does the same every minute. Use `grace_seconds=0` if no
    other worker can be running.
    """
    return async_to_sync(_retry_stalled_jobs)(grace_seconds)


async def _retry_stalled_jobs(grace_seconds: float = GRACE_SECONDS) -> int:
    # A missed heartbeat is only detected after half a minute, but a dead worker's lock on its document is
    # released at once.
    without_heartbeat = await app.job_manager.get_stalled_jobs()
    stalled = {job.id for job in without_heartbeat if job.id is not None}
    rows = await app.connector.execute_query_all_async(
        ABANDONED, task=fair_queue.TASK, grace=grace_seconds, key=documents.READING_LOCK
    )
    stalled |= {row["id"] for row in rows}
    given_up = await sync_to_async(_fail_deadly)(stalled)
    for job_id in given_up:
        await app.job_manager.finish_job_by_id_async(job_id, Status.FAILED, delete_job=True)
    for job_id in stalled - given_up:
        await app.job_manager.retry_job_by_id_async(job_id, retry_at=datetime.now(UTC))
    return len(stalled)


def _fail_deadly(job_ids: Collection[int]) -> set[int]:
    """Give up documents whose final attempt ended a worker; return the ids of their jobs.

    Other jobs would otherwise wait behind these.
    """
    deadly = ProcrastinateJob.objects.filter(
        pk__in=job_ids, task_name=fair_queue.TASK, attempts__gte=ATTEMPTS - 1
    )
    found = dict(deadly.values_list("pk", "args"))
    for arguments in found.values():
        logger.error(
            "Gave up reading a document, because it ended several workers.", extra={"arguments": arguments}
        )
        documents.give_up(**arguments, reason=WORKER_DIED)
    release_connection()
    return set(found)
