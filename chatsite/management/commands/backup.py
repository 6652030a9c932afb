"""`manage.py backup`: database, local files and signing key in one file while the site runs."""

import errno
import json
import sys
from argparse import ArgumentParser
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.files.storage import default_storage
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from chatsite.db.dropping import Session
from chatsite.db.migration_state import demand_migrations
from chatsite.server.backup import backup_file, database
from chatsite.server.backup.backup_bucket import BucketObject
from chatsite.server.diagnosis import note_backup
from chatsite.server.product_version import product_version

# Files of documents, and of replacements that have not been read yet.
FILES = """
    SELECT file, size, sha256 FROM ingestion_document WHERE file <> ''
    UNION
    SELECT args -> 'replacement' ->> 'name', (args -> 'replacement' ->> 'size')::bigint,
           args -> 'replacement' ->> 'sha256'
    FROM procrastinate_jobs
    WHERE status IN ('todo', 'doing') AND args -> 'replacement' ->> 'name' IS NOT NULL
    ORDER BY 1
"""
MIGRATIONS = "SELECT app || '.' || name FROM django_migrations ORDER BY 1"


class Command(BaseCommand):
    help = "Write the database, the files and the signing key to one file while the site runs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "file", help="Where to write the backup: a path or s3://BUCKET/NAME, at which nothing exists yet."
        )
        parser.add_argument(
            "--passphrase-file",
            type=Path,
            help="Encrypt the backup with the first line of this file, in the format of age.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        place = backup_file.location_of(options["file"])
        passphrase = backup_file.read_passphrase(options["passphrase_file"])
        if isinstance(place, BucketObject) and not passphrase:
            raise CommandError("A backup that leaves this machine must be encrypted: add --passphrase-file.")
        demand_migrations()
        try:
            if place.exists():
                raise CommandError(f"{place} exists: choose another name.")
            if isinstance(place, Path) and not place.parent.is_dir():
                raise CommandError(f"{place.parent} is not a folder: create it first.")
            with database.connect() as session, backup_file.written(place, passphrase) as target:
                summary, missing = _write(session, target)
        except OSError as error:
            is_full = error.errno in {errno.ENOSPC, errno.EDQUOT}
            reason = "the disk is full" if is_full else error.strerror or str(error)
            # In a bucket, parts may be left; if only the last response was lost, the upload even succeeded.
            left = " No part of it was kept." if isinstance(place, Path) else ""
            raise CommandError(f"The backup could not be written to {place}: {reason}.{left}") from None
        note_backup(timezone.now(), place)
        lost = _still_needed(missing)
        encrypted = ", encrypted" if passphrase else ""
        self.stdout.write(f"{place}: {summary}, {target.size / 1e6:.1f} MB{encrypted}.")
        if removed := len(missing) - len(lost):
            self.stdout.write(
                f"Documents that were deleted or replaced while the backup was made: {removed}. After a"
                " restore, they have their text, but their files cannot be opened."
            )
        for name in lost:
            self.stderr.write(
                f"The file {name} is missing from the storage, or differs from what was uploaded."
            )
        if lost:
            sys.exit(2)


def _write(session: Session, target: backup_file.Archive) -> tuple[str, list[str]]:
    """Write all members; returns a summary, and the names of missing or changed files."""
    with database.snapshot(session) as name:
        tables = database.tables(session)
        files = {row[0]: row[1:] for row in session.execute(FILES).fetchall()}
        head = {
            "format": backup_file.FORMAT,
            "version": product_version(),
            "made_at": timezone.now().isoformat(timespec="seconds"),
            "postgresql": session.info.server_version,
            "migrations": [row[0] for row in session.execute(MIGRATIONS).fetchall()],
            "tables": {table: asdict(known) for table, known in tables.items()},
            "storage": settings.STORAGE,
            "files": {file: {"size": size, "sha256": digest} for file, (size, digest) in files.items()},
        }
        target.add(backup_file.HEAD, json.dumps(head).encode())
        target.add(backup_file.SECRET, settings.SECRET_KEY.encode())
        # Copy the files before the dump, which takes a long time: deleting a document meanwhile also deletes
        # its file.
        missing = _write_files(target, files) if settings.STORAGE == "FILESYSTEM" else []
        for number, part in enumerate(database.dumped(session, name)):
            target.add(f"{backup_file.DATABASE}{number:06d}", part)
    rows = sum(table.rows for table in tables.values())
    kept = "files" if settings.STORAGE == "FILESYSTEM" else "names of files in the bucket"
    return f"{len(tables)} tables with {rows} rows, {len(files) - len(missing)} {kept}", missing


def _write_files(target: backup_file.Archive, files: Mapping[str, tuple[int, str]]) -> list[str]:
    missing = []
    for name, (size, digest) in files.items():
        try:
            with default_storage.open(name) as file:
                found = target.add_file(backup_file.FILES + name, file, size) if file.size == size else ""
        except FileNotFoundError:
            found = ""
        if found != digest:
            missing.append(name)
    return missing


def _still_needed(missing: list[str]) -> list[str]:
    """The missing files that documents or queued jobs still refer to.

    The others were removed after the snapshot, because their documents were deleted or replaced.
    """
    if not missing:
        return []
    with database.connect() as session:
        needed = {row[0] for row in session.execute(FILES).fetchall()}
    return [name for name in missing if name in needed]
