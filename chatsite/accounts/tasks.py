"""Jobs of the worker that send webhooks."""

from uuid import UUID

from procrastinate import RetryStrategy
from procrastinate.contrib.django import app

from chatsite.accounts import webhooks
from chatsite.accounts.webhooks import sending

RETRIES = RetryStrategy(
    max_attempts=10, exponential_wait=3
)  # after faults of our own, such as a database away


@app.task(name=webhooks.TASK, queue=webhooks.QUEUE, retry=RETRIES)
def deliver_webhook(delivery_id: str) -> None:
    """Make one attempt; the next one is a job of its own."""
    sending.deliver(UUID(delivery_id))


@app.periodic(cron="29 3 * * *")
@app.task(
    name="accounts.delete_old_deliveries", queue=webhooks.SIDE_QUEUE, queueing_lock="delete-old-deliveries"
)
def delete_old_deliveries(timestamp: int) -> None:
    sending.delete_old()


@app.periodic(cron="*/10 * * * *")
@app.task(name="accounts.queue_lost_deliveries", queue=webhooks.SIDE_QUEUE, queueing_lock="lost-deliveries")
def queue_lost_deliveries(timestamp: int) -> None:
    """Queue the deliveries again whose jobs were lost: a worker of another version did not know them."""
    sending.queue_lost()
