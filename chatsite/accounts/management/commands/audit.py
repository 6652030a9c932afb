"""`manage.py audit`: verify, export or shorten the audit log."""

import os
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any, TextIO

from django.conf import settings
from django.core.management import BaseCommand, CommandError
from django.utils import timezone
from django.utils.dateparse import parse_date

from chatsite.accounts.audit import audit_export, chain, record_before
from chatsite.accounts.models import AuditEntry
from chatsite.db.migration_state import demand_migrations

WRITERS = {"csv": audit_export.write_csv, "jsonl": audit_export.write_lines}


class Command(BaseCommand):
    """Verify, export or shorten the audit log."""

    help = "Verify the audit log, export it, or remove entries older than CHATSITE_AUDIT_DAYS."

    def add_arguments(self, parser: ArgumentParser) -> None:
        acts = parser.add_subparsers(dest="act", required=True)
        verify = acts.add_parser("verify", help="Compare every entry with the chain of hashes.")
        verify.add_argument("--expect", default="", metavar="HASH", help="A hash that was noted earlier.")
        export = acts.add_parser("export", help="Write the log to a new file; - is standard output.")
        export.add_argument("file")
        export.add_argument("--format", choices=WRITERS, default="jsonl", help="jsonl has OCSF events.")
        export.add_argument("--since", type=_day, help="YYYY-MM-DD, in the site's time zone.")
        export.add_argument("--until", type=_day, help="YYYY-MM-DD, the day after the last one.")
        acts.add_parser("trim", help="Remove entries older than CHATSITE_AUDIT_DAYS now.")

    def handle(self, *args: Any, **options: Any) -> None:
        demand_migrations()
        chain.seal_new()
        if options["act"] == "verify":
            self._verify(options["expect"])
        elif options["act"] == "trim":
            if not settings.AUDIT_DAYS:
                raise CommandError("CHATSITE_AUDIT_DAYS is not set: entries are never deleted.")
            self.stdout.write(f"Removed {chain.trim(settings.AUDIT_DAYS)} entries.")
        else:
            words = f"To a file, as {options['format']}"
            record_before(AuditEntry.Action.LOG_EXPORTED, actor=None, subject=words)
            with _new_file(options["file"]) as target:
                count = WRITERS[options["format"]](target, options["since"], options["until"])
            self.stderr.write(f"{count} entries.")

    def _verify(self, expected: str) -> None:
        verdict = chain.verify(expected)
        if verdict.broken:
            raise CommandError(f"{verdict.broken} The {verdict.checked} entries before it are unchanged.")
        self.stdout.write(f"{verdict.checked} entries are unchanged.")
        if verdict.anonymized:
            ranges = []  # consecutive numbers become a range: “4”, “7–9”
            for _, group in groupby(enumerate(sorted(verdict.anonymized)), lambda item: item[1] - item[0]):
                first, *others = [number for _, number in group]
                ranges.append(f"{first}–{others[-1]}" if others else str(first))
            self.stdout.write(
                f"{len(verdict.anonymized)} of them named people who were erased. These names can no longer"
                f" be verified: {', '.join(ranges)}."
            )
        self.stdout.write(f"Newest hash (keep a copy outside the site): {verdict.newest}")


def _day(text: str) -> datetime:
    day = parse_date(text)
    if day is None:
        raise ValueError(text)
    return timezone.make_aware(datetime(day.year, day.month, day.day))


@contextmanager
def _new_file(path: str) -> Iterator[TextIO]:
    """A new file that only its owner may read; “-” is the standard output. Raises CommandError.

    After an error, no part of the file is kept.
    """
    if path == "-":
        yield sys.stdout
        return
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}.") from error
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as target:
            yield target
    except BaseException as error:
        Path(path).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise CommandError(f"{path} cannot be written: {error.strerror or error}.") from error
        raise
