"""The file of a backup: a tar archive, encrypted if there is a passphrase.

Its members, in this order:

- `backup.json`: the version, the migrations, the rows and checksum of each table, and the size and SHA-256 of
  each file
- `secret_key`: the site's secret key, which signs sessions and encrypts webhook secrets
- `files/…`: the documents' files under their names in the storage; none if they are in a bucket
- `database/000000` and so on: parts of pg_dump's custom format, to be joined
- `checksums.json`: SHA-256 of each other member; an archive without this member was cut off
"""

import fcntl
import hashlib
import io
import json
import os
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Literal, Protocol

from django.core.management.base import CommandError

from . import age
from .backup_bucket import SCHEME, BucketObject

FORMAT = 1
HEAD, SECRET, FILES, DATABASE, CHECKSUMS = (
    "backup.json",
    "secret_key",
    "files/",
    "database/",
    "checksums.json",
)
MAX_HEAD_BYTES = 50_000_000
PARTIAL = ".backup-partial"  # ending of an unfinished backup's name
COPY_BYTES = 1_000_000
MIN_PASSPHRASE_CHARACTERS = 12


class BadBackup(Exception):
    """The backup cannot be used; the text is one line with the reason."""


class Source(Protocol):
    """The location of an archive to read: a path, or an object in a bucket."""

    def open(self, mode: Literal["rb"], /) -> IO[bytes]: ...


class HashingReader:
    """A file object that computes a digest of what is read."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source, self.digest = source, hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self._source.read(size)
        self.digest.update(data)
        return data


class Archive:
    """An archive that is being written."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self.checksums: dict[str, str] = {}
        self.size = 0  # in bytes, known at the end

    def add(self, name: str, data: bytes) -> None:
        self.add_file(name, io.BytesIO(data), len(data))

    def add_file(self, name: str, source: IO[bytes], size: int) -> str:
        """Add a file and return its SHA-256. Raises OSError if the file is shorter than `size`."""
        member = tarfile.TarInfo(name)
        member.size, member.mode, member.mtime = size, 0o600, int(time.time())
        reader = HashingReader(source)
        self._tar.addfile(member, reader)
        self.checksums[name] = reader.digest.hexdigest()
        return self.checksums[name]


@contextmanager
def written(target: Path | BucketObject, passphrase: str) -> Iterator[Archive]:
    """Write an archive that appears at `target` only if the block succeeds."""
    with new_file(target) if isinstance(target, Path) else target.writing() as file:
        encrypted = age.Writer(file, passphrase) if passphrase else None
        to: Any = encrypted or file  # tarfile only calls `write`
        with tarfile.open(fileobj=to, mode="w|", format=tarfile.PAX_FORMAT) as tar:
            archive = Archive(tar)
            yield archive
            archive.add(CHECKSUMS, json.dumps(archive.checksums).encode())
        if encrypted:
            encrypted.close()
        archive.size = file.tell()


def location_of(address: str) -> Path | BucketObject:
    """The location of a backup, from its address: a path, or an object in a bucket.

    Raises CommandError for a bucket's URL that names no object, or if boto3 is not installed.
    """
    return BucketObject(address) if address.startswith(SCHEME) else Path(address).absolute()


def read_passphrase(path: Path | None) -> str:
    """The first line of the file, or an empty text if no file is given. Raises CommandError.

    The passphrase comes from a file, because other users can often see arguments and environment variables.
    """
    if path is None:
        return ""
    try:
        passphrase = (path.read_text(encoding="utf-8").splitlines() or [""])[0].strip()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"The passphrase cannot be read from {path}: {error}") from None
    if len(passphrase) < MIN_PASSPHRASE_CHARACTERS:
        raise CommandError(
            f"The passphrase in {path} is too short: write at least {MIN_PASSPHRASE_CHARACTERS} characters."
        )
    return passphrase


@contextmanager
def new_file(path: Path) -> Iterator[IO[bytes]]:
    """Write a file that appears at `path` only if the block succeeds.

    Also removes what killed backups have left in the folder.
    """
    for left in path.parent.glob(f".*{PARTIAL}"):
        with suppress(OSError), left.open("rb") as unfinished:
            fcntl.flock(unfinished, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while its writer lives
            left.unlink()
    partial = path.with_name(f".{path.name}.{os.getpid()}{PARTIAL}")
    try:
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            with suppress(OSError):  # some network file systems have no locks
                fcntl.flock(file, fcntl.LOCK_EX)
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.rename(path)
    finally:
        partial.unlink(missing_ok=True)


def is_encrypted(source: Source) -> bool:
    with source.open("rb") as file:
        return file.read(len(age.MAGIC)) == age.MAGIC


@contextmanager
def members(source: Source, passphrase: str) -> Iterator[Iterator[tuple[str, IO[bytes]]]]:
    """The members of an archive in order. Read each one before requesting the next. Raises BadBackup."""
    with source.open("rb") as file:
        try:
            plain: Any = age.Reader(file, passphrase) if passphrase else file
            with tarfile.open(fileobj=plain, mode="r|") as tar:
                yield _named(tar)
        except age.WrongPassphrase:
            raise BadBackup("The passphrase is wrong.") from None
        except age.Damaged as error:
            raise BadBackup(f"The backup is damaged. {error}") from None
        except (tarfile.TarError, EOFError):
            raise BadBackup("This is not a backup, or it is damaged: it cannot be read to its end.") from None


def _named(tar: tarfile.TarFile) -> Iterator[tuple[str, IO[bytes]]]:
    for member in tar:
        inside = tar.extractfile(member)
        if not member.isreg() or inside is None or ".." in member.name.split("/") or member.name[:1] == "/":
            raise BadBackup(f"The backup contains “{member.name}”, which does not belong in a backup.")
        yield member.name, inside


def checked(source: Source, passphrase: str) -> dict[str, Any]:
    """Verify all checksums; returns the content of `backup.json`. Raises BadBackup."""
    found: dict[str, str] = {}
    head: dict[str, Any] | None = None
    expected: dict[str, str] | None = None
    with members(source, passphrase) as every:
        for name, file in every:
            if name in {HEAD, CHECKSUMS}:
                data = file.read(MAX_HEAD_BYTES)
                if name == CHECKSUMS:
                    expected = json.loads(data)
                    continue
                head = json.loads(data)
                found[name] = hashlib.sha256(data).hexdigest()
                continue
            reader = HashingReader(file)
            while reader.read(COPY_BYTES):
                pass
            found[name] = reader.digest.hexdigest()
    if expected is None:
        raise BadBackup("The backup is cut off: its end is missing.")
    if head is None or head.get("format") != FORMAT:
        raise BadBackup("The backup has another format: it was made by another version.")
    if wrong := sorted(name for name in {*expected, *found} if expected.get(name) != found.get(name)):
        raise BadBackup(f"The backup is damaged: {wrong[0]} has changed since it was written.")
    return head
