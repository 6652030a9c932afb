"""`manage.py sync`: mirror a folder tree as documents."""

import contextlib
import errno
import hashlib
import os
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from chatsite.db.migration_state import demand_migrations
from ingestion.management import document_options
from ingestion.management.progress import Bar, counted, failed_parts, read_now, shown
from ingestion.models import Document
from ingestion.sources import mirror
from ingestion.sources.folder_rights import (
    FolderRights,
    Rights,
)

FEW = 10  # up to this many deletions never need --most-gone
SYNC_LOCK = 0x73796E63
SOURCE_CHARACTERS = 500


class Command(BaseCommand):
    help = "Mirror a folder: add new files, replace changed ones, and delete the documents of deleted files."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, metavar="FOLDER")
        document_options.add_arguments(parser)
        parser.add_argument(
            "--prefix",
            default="",
            metavar="FOLDER",
            help="Folder on the site in which to list the documents.",
        )
        parser.add_argument(
            "--source", default="", metavar="NAME", help="Name of the source; by default the folder's path."
        )
        parser.add_argument("--dry-run", action="store_true", help="Only list what would be done.")
        parser.add_argument(
            "--now", action="store_true", help="Read the files in this process instead of in a worker."
        )
        parser.add_argument(
            "--allow-empty", action="store_true", help="Continue even if the folder is empty."
        )
        parser.add_argument(
            "--most-gone", type=int, default=50, metavar="PERCENT",
            help="Refuse if more than ten files, and more than this share of the known files, are gone (50).",
        )  # fmt: skip

    def handle(self, *args: Any, **options: Any) -> None:
        demand_migrations()
        source = _source(options)
        with _sync_lock(source.name):
            differences = mirror.compare(source)
            _guard(differences, options)
            if options["dry_run"]:
                self._list(differences)
            else:
                self._follow(source, differences, options["now"])
        self._summarise(differences, options["dry_run"])

    def _follow(self, source: mirror.Source, differences: mirror.Differences, now: bool) -> None:
        bar = Bar(sys.stderr, len(differences))
        taken = []
        for done, each in enumerate(mirror.follow(source, differences)):
            bar.show(done, each.document.name if each else "")
            if each:
                taken.append(each)
        for done, each in enumerate(taken if now else []):
            bar.show(done, each.document.name)
            read_now(each.document, each.replacement)
        bar.clear()
        if now:
            ids = [each.document.pk for each in taken]
            failed = Document.objects.filter(pk__in=ids, status=Document.Status.FAILED)
            differences.problems += [
                (document.name, document.reason) for document in [*failed, *failed_parts(ids)]
            ]

    def _list(self, differences: mirror.Differences) -> None:
        named = (("new", differences.new), ("changed", differences.changed), ("moved", differences.moved))
        for word, found in named:
            for each in found:
                self.stdout.write(f"{word}: {shown(each.found.path)}")
        for row in differences.gone:
            self.stdout.write(f"gone: {shown(row.path)}")

    def _summarise(self, differences: mirror.Differences, dry: bool) -> None:
        numbers = [
            (len(differences.new), "new"),
            (len(differences.changed), "changed"),
            (len(differences.moved), "with other readers or another place"),
            (len(differences.gone), "gone"),
            (differences.unchanged, "unchanged"),
            (differences.failed, "of these failed"),
        ]
        words = [f"{number:,} {word}" for number, word in numbers if number] or ["No files"]
        skipped = [(differences.hidden, "hidden file"), (differences.links, "link")]
        words += [f"{counted(number, word)} skipped" for number, word in skipped if number]
        self.stdout.write(f"{'Nothing is done. ' if dry else ''}{'; '.join(words)}.")
        for path, reason in differences.problems:
            self.stdout.write(f"  {shown(path)}: {reason}")
        if differences.problems:
            raise CommandError(f"{counted(len(differences.problems), 'problem')}, see above.")


def _source(options: dict[str, Any]) -> mirror.Source:
    try:
        root = options["folder"].resolve(strict=True)
    except (OSError, RuntimeError) as error:
        # Before Python 3.13, links that lead back to themselves raise RuntimeError.
        reason = error.strerror if isinstance(error, OSError) else os.strerror(errno.ELOOP)
        raise CommandError(f"{shown(options['folder'])} cannot be opened: {reason}.") from error
    if not root.is_dir():
        raise CommandError(f"{shown(options['folder'])} is not a folder.")
    given = document_options.parse(options)
    default = Rights(given.audience, given.category) if given.audience else None
    name = options["source"] or str(root)
    if len(name) > SOURCE_CHARACTERS:
        raise CommandError("The folder's path is too long for a source name: choose one with --source.")
    rights = FolderRights(root, default, given.category)
    return mirror.Source(root, name, options["prefix"], given.owner, rights)


def _guard(differences: mirror.Differences, options: dict[str, Any]) -> None:
    """Raise CommandError if more files are gone than the options allow.

    Perhaps the folder is not mounted.
    """
    gone, documents = len(differences.gone), differences.documents
    reason = next((reason for path, reason in differences.problems if path == "."), "")
    if reason and not differences.files:
        raise CommandError(f"The folder could not be read, and nothing was done. {reason}")
    if documents and not differences.files and not options["allow_empty"]:
        raise CommandError(
            f"The folder is empty, and {counted(documents, 'document')} came from it. Nothing was done;"
            " to delete them, add --allow-empty."
        )
    many = gone > FEW and gone * 100 > documents * options["most_gone"]
    if many and not (options["allow_empty"] and not differences.files):
        raise CommandError(
            f"{gone:,} of {counted(documents, 'known file')} are gone. Nothing was done;"
            " to delete them, add --most-gone 100."
        )


@contextlib.contextmanager
def _sync_lock(name: str) -> Iterator[None]:
    """Hold the lock of the source. Raises CommandError if another process is synchronising it."""
    key = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], signed=True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", [SYNC_LOCK, key])
        if not cursor.fetchone()[0]:
            raise CommandError("This folder is already being synchronised.")
        try:
            yield
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s, %s)", [SYNC_LOCK, key])
