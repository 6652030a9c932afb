"""The ingestion worker process: one document at a time."""

import argparse
import os

from django.core.management import execute_from_command_line

from chatsite.supervision.lifeline import die_with

GRACE_SECONDS = "2"  # a document that is being read then goes back to the queue


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--parent", type=int, required=True)
    die_with(parser.parse_args().parent)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsite.settings")
    execute_from_command_line(
        [
            "manage.py",
            "procrastinate",
            "worker",
            "--concurrency=1",
            f"--shutdown-graceful-timeout={GRACE_SECONDS}",
        ]
    )


if __name__ == "__main__":
    main()
