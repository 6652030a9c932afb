"""The worker's jobs for usage figures, questions, the audit log, retention and evaluation."""

from django.conf import settings
from procrastinate import RetryStrategy
from procrastinate.contrib.django import app

from chatsite.accounts.audit import audit_stream, chain
from chatsite.db import side_jobs

from . import announcements, retention_rules  # noqa: F401  (registers the webhook events of answers)
from .evaluation import running
from .overview.counting import count_ended_runs
from .unanswered.question_judging import judge_new


@app.periodic(cron="* * * * *")  # as often as questions are judged, because the admin's start page shows both
@app.task(name="chat.count_ended_runs", queue=side_jobs.QUEUE, queueing_lock="count-ended-runs")
def count_runs(timestamp: int) -> None:
    """Update the usage figures of the admin's overview."""
    count_ended_runs()


@app.periodic(cron="* * * * *")
@app.task(name="chat.judge_questions", queue=side_jobs.QUEUE, queueing_lock="judge-questions")
def judge_questions(timestamp: int) -> None:
    """Judge the questions of people for whom something has changed, and group the unanswered ones."""
    judge_new()


@app.periodic(cron="29 3 * * *")
@app.task(name="chat.judge_all_questions", queue=side_jobs.QUEUE, queueing_lock="judge-all-questions")
def judge_all_questions(timestamp: int) -> None:
    """Judge all questions of the last 30 days again.

    Conversations also change without a new answer, for example by deletion.
    """
    judge_new(everything=True)


@app.periodic(cron="* * * * *")
@app.task(name="chat.seal_audit_log", queue=side_jobs.QUEUE, queueing_lock="seal-audit-log")
def seal_audit_log(timestamp: int) -> None:
    """Seal new entries of the audit log, and send them to the configured server."""
    chain.seal_new()
    audit_stream.deliver()


@app.periodic(cron="41 2 * * *")
@app.task(name="chat.trim_audit_log", queue=side_jobs.QUEUE, queueing_lock="trim-audit-log")
def trim_audit_log(timestamp: int) -> None:
    """Remove expired entries, if the operator has set a limit."""
    if settings.AUDIT_DAYS:
        chain.seal_new()
        chain.trim(settings.AUDIT_DAYS)


@app.periodic(cron="17 3 * * *")
@app.task(name="chat.apply_retention", queue=side_jobs.QUEUE, queueing_lock="apply-retention")
def apply_retention(timestamp: int) -> None:
    """Apply the retention rules that managers set in the admin."""
    retention_rules.apply()


@app.task(name=running.TASK, queue=side_jobs.QUEUE, retry=RetryStrategy(max_attempts=5, exponential_wait=3))
def prove(run_id: int) -> None:
    """Ask the next questions of an evaluation run."""
    running.continue_run(run_id)


@app.periodic(cron="*/5 * * * *")
@app.task(name="chat.queue_lost_proofs", queue=side_jobs.QUEUE, queueing_lock="queue-lost-proofs")
def queue_lost_proofs(timestamp: int) -> None:
    """Queue a job for each unfinished evaluation run that has none, as after a database failure."""
    running.queue_lost()
