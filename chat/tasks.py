"""The jobs of the worker that concern answers and the audit log."""

from django.conf import settings
from procrastinate import RetryStrategy
from procrastinate.contrib.django import app

from chatsite.accounts.audit import chain, streaming
from chatsite.db import side_jobs

from . import announcements, retention  # noqa: F401  (what webhooks are sent is looked up there)
from .overview.counting import count_ended_runs
from .proof import running


@app.periodic(cron="*/5 * * * *")
@app.task(name="chat.count_ended_runs", queue=side_jobs.QUEUE, queueing_lock="count-ended-runs")
def count_runs(timestamp: int) -> None:
    """Bring the figures of the admin's first page up to date."""
    count_ended_runs()


@app.periodic(cron="* * * * *")
@app.task(name="chat.seal_audit_log", queue=side_jobs.QUEUE, queueing_lock="seal-audit-log")
def seal_audit_log(timestamp: int) -> None:
    """Chain the new entries of the audit log, and send them where an operator wants them."""
    chain.seal_new()
    streaming.deliver()


@app.periodic(cron="41 2 * * *")
@app.task(name="chat.trim_audit_log", queue=side_jobs.QUEUE, queueing_lock="trim-audit-log")
def trim_audit_log(timestamp: int) -> None:
    """Remove the entries whose time is over, if they have one."""
    if settings.AUDIT_DAYS:
        chain.seal_new()
        chain.trim(settings.AUDIT_DAYS)


@app.periodic(cron="17 3 * * *")
@app.task(name="chat.apply_retention", queue=side_jobs.QUEUE, queueing_lock="apply-retention")
def apply_retention(timestamp: int) -> None:
    """Delete what is older than the rules of the admin allow."""
    retention.apply()


@app.task(name=running.TASK, queue=side_jobs.QUEUE, retry=RetryStrategy(max_attempts=5, exponential_wait=3))
def prove(run_id: int) -> None:
    """Ask the next questions of a run of the proof."""
    running.continue_run(run_id)


@app.periodic(cron="*/5 * * * *")
@app.task(name="chat.queue_lost_proofs", queue=side_jobs.QUEUE, queueing_lock="queue-lost-proofs")
def queue_lost_proofs(timestamp: int) -> None:
    """Go on with a run of the proof that a fault of the database has interrupted."""
    running.queue_lost()
