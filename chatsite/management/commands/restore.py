"""`manage.py restore`: restore a site from a backup, or only rehearse it.

The checksum of each file in the backup is verified first; each restored table is compared with the backup.
"""

import secrets
import shutil
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from chatsite import environment
from chatsite.db.migration_state import known_migrations
from chatsite.server.backup import backup_file, database
from chatsite.server.backup.backup_file import BadBackup, Source
from chatsite.server.embedded_postgres import write_secret
from chatsite.server.product_version import product_version

COPY_BYTES = 1_000_000
FOLDER = "documents"  # the folder of all documents' files


class Command(BaseCommand):
    help = "Restore a backup into an empty site. If anything fails, nothing is changed."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", help="The backup: a path, or s3://BUCKET/NAME.")
        parser.add_argument(
            "--verify",
            action="store_true",
            help="Only rehearse the restore, in a temporary database; the site may be running.",
        )
        parser.add_argument(
            "--passphrase-file", type=Path, help="A file whose first line is the passphrase of the backup."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        source = backup_file.location_of(options["file"])
        try:
            passphrase = ""
            if backup_file.is_encrypted(source):
                if options["passphrase_file"] is None:
                    raise BadBackup("The backup is encrypted: add --passphrase-file.")
                passphrase = backup_file.read_passphrase(options["passphrase_file"])
            head = backup_file.checked(source, passphrase)
            _demand_known(head)
            if options["verify"]:
                with database.connect() as session, database.throwaway(session) as name:
                    database.restore(_parts(source, passphrase), _tables(head), name)
            else:
                _restore(source, passphrase, head)
        except BadBackup as error:
            raise CommandError(f"{error} Nothing was changed.") from None
        except (ValueError, KeyError, TypeError):
            raise CommandError("The backup is damaged: its description cannot be read.") from None
        except OSError as error:
            raise CommandError(f"The backup could not be restored: {error}. Nothing was changed.") from None
        tables = head["tables"].values()
        rows = sum(table["rows"] for table in tables)
        done = (
            "The backup is complete; it was restored into a temporary database"
            if options["verify"]
            else "Restored"
        )
        self.stdout.write(
            f"{done}: {len(tables)} tables with {rows} rows, each as it was at {head['made_at']}"
            f" (version {head['version']}); {len(head['files'])} files."
        )
        for line in () if options["verify"] else _advice(source, passphrase, head):
            self.stdout.write(line)


def _demand_known(head: Mapping[str, Any]) -> None:
    """Raise CommandError for a backup of a newer version."""
    known = {f"{app}.{name}" for app, name in known_migrations()}
    labels = {name.partition(".")[0] for name in known}
    # Ignore migrations of apps that are not installed: an older version of the site may have had these apps.
    if any(name not in known and name.partition(".")[0] in labels for name in head["migrations"]):
        raise CommandError(
            f"The backup was made by version {head['version']}, which is newer than this one,"
            f" {product_version()}: restore it with that version. Nothing was changed."
        )


def _restore(source: Source, passphrase: str, head: Mapping[str, Any]) -> None:
    root = Path(settings.MEDIA_ROOT)
    with database.connect() as session:
        if not database.is_empty(session):
            raise CommandError(
                "The database is not empty. Restore into a new one: another DATABASE_URL, or for the embedded"
                " database another CHATSITE_DATA_DIR."
            )
    if any((root / FOLDER).glob("*")):
        raise CommandError(f"{root / FOLDER} is not empty: move it away, or choose another folder.")
    secret = "" if environment.text("CHATSITE_SECRET_KEY") else _secret(source, passphrase)
    with _placed_files(source, passphrase, root):
        database.restore(_parts(source, passphrase), _tables(head))
    if secret:
        path = settings.DATA_DIR / "secret_key"
        try:
            write_secret(path, secret)
        except OSError as error:
            raise CommandError(
                f"The database and the files were restored, but not the site's secret key: {path} cannot be"
                f" written ({error.strerror}). Without this key, stored secrets cannot be read, and everyone"
                " must sign in again."
            ) from None


@contextmanager
def _placed_files(source: Source, passphrase: str, root: Path) -> Iterator[None]:
    """Put all files of the backup in place; remove them if the block fails."""
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    staged = root / f".restore-{secrets.token_hex(4)}"
    placed = False
    try:
        with backup_file.members(source, passphrase) as every:
            for name, file in every:
                if name.startswith(f"{backup_file.FILES}{FOLDER}/"):
                    target = staged / name.removeprefix(backup_file.FILES)
                    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                    with target.open("xb") as copy:
                        target.chmod(0o600)
                        shutil.copyfileobj(file, copy, COPY_BYTES)
        if staged.exists():
            if (root / FOLDER).is_dir():
                (root / FOLDER).rmdir()  # the folder is empty
            (staged / FOLDER).rename(root / FOLDER)
            placed = True
        yield
    except BaseException:
        if placed:
            shutil.rmtree(root / FOLDER)
        raise
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _parts(source: Source, passphrase: str) -> Iterator[bytes]:
    """The dump of the database."""
    with backup_file.members(source, passphrase) as every:
        for name, file in every:
            if name.startswith(backup_file.DATABASE):
                while data := file.read(COPY_BYTES):
                    yield data


def _secret(source: Source, passphrase: str) -> str:
    with backup_file.members(source, passphrase) as every:
        for name, file in every:
            if name == backup_file.SECRET:
                return file.read(10_000).decode()
    raise BadBackup("The backup has no secret key.")


def _tables(head: Mapping[str, Any]) -> dict[str, database.Table]:
    return {name: database.Table(**known) for name, known in head["tables"].items()}


def _advice(source: Source, passphrase: str, head: Mapping[str, Any]) -> Iterator[str]:
    """The remaining steps, for the operator."""
    if head["storage"] != "FILESYSTEM":
        yield f"The backup lists {len(head['files'])} files without their contents: they are in its bucket."
    elif settings.STORAGE != "FILESYSTEM" and head["files"]:
        yield (
            "This site keeps its files in a bucket, but those of the backup are in a folder: copy"
            f" {Path(settings.MEDIA_ROOT) / FOLDER} to the bucket, within CHATSITE_S3_PREFIX if that is set."
        )
    if (given := environment.text("CHATSITE_SECRET_KEY")) and given != _secret(source, passphrase):
        yield "CHATSITE_SECRET_KEY is not that of the backup: everybody has to sign in again."
    if not Path(settings.ERASED_LIST).exists():
        yield (
            f"There is no list of erased accounts, {settings.ERASED_LIST}. If anybody was erased since the"
            " backup, copy the list of the former site there before the first start, which erases them again."
        )
    yield "Start the site, which migrates the database to this version."
