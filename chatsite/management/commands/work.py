"""`manage.py work`: run only ingestion workers, on a machine that does not serve the site."""

import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand
from django.db import connections

from chatsite.db.migration_state import unapplied_migrations
from chatsite.server import database_setup
from chatsite.server.pooler import check_sessions
from chatsite.server.processes import (
    Child,
    Children,
)
from chatsite.server.refusal import StartRefused
from ingestion.search.dictionary import prepare_dictionary


def processes(least: int) -> Callable[[str], int]:
    """An argument type for a number of processes, which must be at least `least`."""

    def number(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise ArgumentTypeError(f"must be a whole number of at least {least}, not “{text}”.")
        return int(text)

    return number


class Command(BaseCommand):
    help = (
        "Start ingestion workers for a site that runs elsewhere. They need access to its database and files."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--workers", type=processes(1), default=1, help="Ingestion worker processes.")
        parser.add_argument(
            "--alive-file",
            type=Path,
            help="File to touch every second while all workers are running, for health checks.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            database_setup.connect(database_setup.parameters()).close()
            check_sessions()
            prepare_dictionary()
        except StartRefused as error:
            sys.exit(str(error))
        if unapplied_migrations():
            sys.exit("The database is not migrated to this version: start the site first.")
        connections.close_all()
        children = Children()
        alive_file: Path | None = options["alive_file"]

        def touch() -> None:
            if alive_file:
                try:
                    alive_file.touch()
                except OSError as error:
                    sys.exit(f"{alive_file} cannot be written ({error.strerror}).")

        def check() -> None:
            if all(child.process for child in children.children):
                touch()

        try:
            touch()  # fails now, not later, if the file is not writable
            children.add(workers(options["workers"]))
            children.keep_running(check)
        finally:
            children.close()


def workers(number: int) -> list[Child]:
    """Create this many workers, without starting them."""
    return [Child("ingestion worker", "chatsite.server.worker") for _ in range(number)]
