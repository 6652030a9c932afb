"""Periodic jobs of the worker for webhook deliveries."""

from procrastinate.contrib.django import app

from chatsite.accounts.webhooks import sending
from chatsite.db import side_jobs


@app.periodic(cron="29 3 * * *")
@app.task(name="accounts.delete_old_deliveries", queue=side_jobs.QUEUE, queueing_lock="delete-old-deliveries")
def delete_old_deliveries(timestamp: int) -> None:
    sending.delete_old()


@app.periodic(cron="*/10 * * * *")
@app.task(name="accounts.give_up_deliveries", queue=side_jobs.QUEUE, queueing_lock="give-up-deliveries")
def give_up_deliveries(timestamp: int) -> None:
    sending.give_up_oldest()
