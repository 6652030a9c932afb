"""The periodic jobs of the worker that concern answers."""

from procrastinate.contrib.django import app

from ingestion.documents import QUEUE

from .overview.counting import count_ended_runs


@app.periodic(cron="*/5 * * * *")
@app.task(name="chat.count_ended_runs", queue=QUEUE, queueing_lock="count-ended-runs")
def count_runs(timestamp: int) -> None:
    """Bring the figures of the admin's first page up to date."""
    count_ended_runs()
