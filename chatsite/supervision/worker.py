"""The ingestion worker process: one document at a time."""

import argparse
import asyncio
import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsite.settings")
django.setup(set_prefix=False)

from procrastinate.contrib.django import app  # noqa: E402
from procrastinate.contrib.django.django_connector import DjangoConnector  # noqa: E402

from chatsite.database import read_everything_by_default, release_connection  # noqa: E402
from chatsite.supervision.lifeline import die_with  # noqa: E402
from ingestion.tasks import recover_stalled_jobs  # noqa: E402

GRACE_SECONDS = 2  # what is still being read then is read again by the next worker


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--parent", type=int, required=True)
    die_with(parser.parse_args().parent)
    read_everything_by_default()
    recover_stalled_jobs()  # what a killed worker left
    release_connection()
    asyncio.run(work())


async def work() -> None:
    """Run jobs until SIGTERM. Procrastinate's Django app gives connections back after each."""
    assert isinstance(app.connector, DjangoConnector)
    with app.replace_connector(app.connector.get_worker_connector()) as worker_app:
        async with worker_app.open_async():
            await worker_app.run_worker_async(
                concurrency=1, shutdown_graceful_timeout=GRACE_SECONDS, delete_jobs="successful"
            )


if __name__ == "__main__":
    main()
