"""The worker process: reads one document at a time, and runs short jobs concurrently."""

import argparse
import asyncio
import contextlib
import gc
import os
import signal
import sys

gc.disable()  # off until everything is loaded: collections would scan all loaded modules again and again

# isort: split

import django  # noqa: E402

from chatsite.db.threads import (  # noqa: E402
    read_everything_by_default,
    release_connection,
)

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsite.settings")
# This must precede the settings, which choose the database connection by `default_reader`.
read_everything_by_default()
django.setup(set_prefix=False)

from django.db import DatabaseError  # noqa: E402
from procrastinate.contrib.django import app  # noqa: E402
from procrastinate.contrib.django.django_connector import DjangoConnector  # noqa: E402
from procrastinate.exceptions import ConnectorException  # noqa: E402

from chatsite import traces  # noqa: E402
from chatsite.accounts.webhooks.dispatching import send_while_running  # noqa: E402
from chatsite.db import side_jobs  # noqa: E402
from chatsite.db.availability import unavailability  # noqa: E402
from ingestion.queue import fair_queue  # noqa: E402
from ingestion.tasks import recover_stalled_jobs, requeue_active_jobs, yield_to_others  # noqa: E402

from . import metrics_page  # noqa: E402
from .lifeline import exit_with_parent  # noqa: E402

QUEUES = (
    (fair_queue.QUEUE, 1),
    (side_jobs.QUEUE, 2),
)  # each queue with its number of concurrent jobs
GRACE_SECONDS = 2  # time after SIGTERM until unfinished documents return to the queue


def main() -> None:
    gc.freeze()
    gc.enable()
    parser = argparse.ArgumentParser()
    parser.add_argument("--parent", type=int, required=True)
    exit_with_parent(parser.parse_args().parent)
    try:
        recover_stalled_jobs()  # requeue jobs of workers that were killed
        release_connection()
        recorder = metrics_page.start("worker")
        traces.start("worker")
        asyncio.run(work())
        if recorder:
            recorder.stop()
        traces.stop()
    except (ConnectorException, DatabaseError) as error:
        if reason := unavailability(error):
            sys.exit(f"The ingestion worker cannot reach its database: {reason}")
        raise


async def work() -> None:
    """Run jobs until SIGTERM or SIGINT.

    Procrastinate's Django app releases connections after each job.
    """
    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    assert isinstance(app.connector, DjangoConnector)
    with app.replace_connector(app.connector.get_worker_connector()) as worker_app:
        async with worker_app.open_async():
            workers = {
                asyncio.create_task(
                    worker_app.run_worker_async(
                        queues=[queue],
                        concurrency=concurrency,
                        install_signal_handlers=False,
                        delete_jobs="successful",
                    )
                )
                for queue, concurrency in QUEUES
            }
            beside = [asyncio.create_task(yield_to_others()), asyncio.create_task(send_while_running())]
            asked = asyncio.create_task(stopping.wait())
            await asyncio.wait({*workers, asked}, return_when=asyncio.FIRST_COMPLETED)
            asked.cancel()
            for task in beside:
                task.cancel()
            for worker in workers:
                worker.cancel()  # it finishes its current jobs and takes no new ones
            _, unfinished = await asyncio.wait(workers, timeout=GRACE_SECONDS)
            if unfinished:
                # Requeue the documents that are still being read. When this process exits, PostgreSQL rolls
                # back their transactions.
                try:
                    await asyncio.wait_for(requeue_active_jobs(), GRACE_SECONDS)
                finally:
                    os._exit(0)
            for worker in workers:
                with contextlib.suppress(asyncio.CancelledError):
                    await worker


if __name__ == "__main__":
    main()
