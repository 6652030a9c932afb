"""Files of documents and images of their pages, under generated names in the default storage.

The storage may be a folder or remote; only `local_copy` handles paths.
"""

import contextlib
import hashlib
import json
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from io import BufferedReader
from pathlib import Path
from typing import Any

from django.core.exceptions import SuspiciousOperation
from django.core.files import File
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import transaction
from django.utils import timezone

from ingestion.models import Document
from ingestion.parsing import process
from ingestion.parsing.workspace import workspace

FOLDER = "documents"
IMAGES = ".pages"
CHUNK_BYTES = 1_000_000
_unremoved: ContextVar[list[str] | None] = ContextVar("unremoved", default=None)


class TooLarge(Exception):
    """The file is larger than the limit."""


class StorageFault(OSError):
    """The storage failed or did not respond; a retry may succeed."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A stored file: its generated name, its size in bytes, its digest.

    `ending` is the extension of a file that replaces one of a possibly different format; otherwise empty.
    """

    name: str
    size: int
    sha256: str
    ending: str = ""


def store(upload: "File[bytes]", limit: int) -> StoredFile:
    """Store an upload durably under a random name. Raises TooLarge and StorageFault.

    After a failure, an incomplete file is removed at once, or later by the job that removes orphans.
    """
    token = secrets.token_hex(16)
    name = f"{FOLDER}/{token[:2]}/{token}"
    measured = _DigestingFile(upload, limit)
    try:
        with _storage_faults():
            name = default_storage.save(name, measured)
    except StorageFault:
        raise  # removing the file now would take another timeout; the job that removes orphans does it later
    except BaseException:
        with contextlib.suppress(OSError):  # the job that removes orphans tries again
            remove(name)
        raise
    return StoredFile(name, measured.total, measured.digest.hexdigest())


def digest(file: BufferedReader) -> str:
    """The SHA-256 of a file, in the form that `StoredFile` uses."""
    return hashlib.file_digest(file, "sha256").hexdigest()


def remove(name: str) -> None:
    """Remove a stored file and its page images; missing ones are ignored."""
    if name:
        with _storage_faults():
            default_storage.delete(name)
            _remove_images(name)


def remove_on_commit(*names: str) -> None:
    """Remove stored files when the transaction is committed.

    After a failure, which is logged, the remaining files are left to the job that removes orphans, because
    each of them might cost another timeout; `collect_unremoved` collects their names.
    """
    # Not a functools.partial: Django fails to log an exception of a partial, and then drops later callbacks.
    transaction.on_commit(lambda: _remove_each(names), robust=True)


def _remove_each(names: Sequence[str]) -> None:
    for place, name in enumerate(names):
        try:
            remove(name)
        except OSError:
            if (left := _unremoved.get()) is not None:
                left.extend(filter(None, names[place:]))
            raise


@contextlib.contextmanager
def collect_unremoved() -> Iterator[list[str]]:
    """Collect the names of the files that `remove_on_commit` fails to remove, or skips, within the block."""
    left: list[str] = []
    token = _unremoved.set(left)
    try:
        yield left
    finally:
        _unremoved.reset(token)


def discard(stored: StoredFile, document_id: int) -> None:
    """Remove a stored file unless it has become the document's file."""
    if not Document.objects.filter(pk=document_id, file=stored.name).exists():
        remove(stored.name)


def exists(name: str) -> bool:
    """Whether the storage has the file."""
    with _storage_faults():
        return default_storage.exists(name)


@contextlib.contextmanager
def local_copy(name: str) -> Iterator[Path]:
    """A path at which the file can be read within the block.

    Raises FileNotFoundError if a remote storage does not have the file.
    """
    try:
        path = default_storage.path(name)
    except NotImplementedError:
        with workspace() as folder:  # if this process is killed, a later one removes the folder
            copy = Path(folder) / "file"
            with _storage_faults(), default_storage.open(name) as source, copy.open("wb") as target:
                shutil.copyfileobj(source, target, CHUNK_BYTES)
            yield copy
    else:
        yield Path(path)


def open_file(document: Document) -> "File[bytes]":
    """The document's file. Raises FileNotFoundError if it is missing."""
    with _storage_faults():
        return default_storage.open(str(document.file.name))


def size_of(file: "File[bytes]") -> int:
    """The size of an open file. Raises StorageFault."""
    with _storage_faults():
        return file.size


def read_piece(file: "File[bytes]", size: int) -> bytes:
    """The next bytes of an open file. Raises StorageFault, for example if a remote file ends early."""
    with _storage_faults():
        return bytes(file.read(size))


def page_image(document: Document, page: int) -> bytes:
    """A page (from 1) of a PDF as PNG, cached in the storage.

    Raises Unreadable, for example if there is no such page.
    """
    return _derived(document, f"{page:d}.png", lambda path: process.render(path, page))


def page_characters(document: Document, page: int) -> dict[str, Any]:
    """The positions of the page's characters on its image, cached like the image.

    Raises Unreadable.
    """
    found: dict[str, Any] = json.loads(
        _derived(document, f"{page:d}.rows.json", lambda path: process.characters(path, page))
    )
    return found


def _derived(document: Document, part: str, make: Callable[[Path], bytes]) -> bytes:
    """The contents of a file that is made once from the document's file, and removed together with it."""
    name = str(document.file.name)
    cached = f"{name}{IMAGES}/{part}"
    with contextlib.suppress(FileNotFoundError), _storage_faults(), default_storage.open(cached) as file:
        return bytes(file.read())
    with local_copy(name) as path:
        made = make(path)
    with _storage_faults():
        default_storage.save(cached, ContentFile(made))
        # If the document's file and images were deleted meanwhile, the file made here must go, too.
        if not default_storage.exists(name):
            _remove_images(name)
    return made


def names_older_than(age: timedelta) -> list[str]:
    """Names of document files that are older than this, or whose page images are.

    A file with page images may itself be missing.
    """
    before = timezone.now() - age
    found = []
    with _storage_faults():
        for group in _listed(FOLDER)[0]:
            folder = f"{FOLDER}/{group}"
            folders, names = _listed(folder)
            for name in names:
                if default_storage.get_modified_time(f"{folder}/{name}") < before:
                    found.append(f"{folder}/{name}")
            for inner in folders:  # folders of images are named after the documents' files
                for image in _listed(f"{folder}/{inner}")[1][:1]:
                    if default_storage.get_modified_time(f"{folder}/{inner}/{image}") < before:
                        found.append(f"{folder}/{inner.removesuffix(IMAGES)}")
    return found


def _remove_images(name: str) -> None:
    folder = f"{name}{IMAGES}"
    images = _listed(folder)[1]
    for image in images:
        default_storage.delete(f"{folder}/{image}")
    if images:
        with contextlib.suppress(OSError):  # another image may have been added meanwhile
            default_storage.delete(folder)


def _listed(folder: str) -> tuple[list[str], list[str]]:
    """Folders and files in a folder; empty if it does not exist."""
    try:
        return default_storage.listdir(folder)
    except FileNotFoundError:
        return [], []


@contextlib.contextmanager
def _storage_faults() -> Iterator[None]:
    """Translate errors of third-party storages into StorageFault.

    Errors of this machine have an errno; they are passed on, except connection errors and timeouts. HTTP
    libraries also raise OSErrors, but without an errno.
    """
    try:
        yield
    except (StorageFault, FileNotFoundError, TooLarge, SuspiciousOperation):
        raise
    except Exception as error:
        is_local = isinstance(error, OSError) and error.errno is not None
        if is_local and not isinstance(error, ConnectionError | TimeoutError):
            raise
        raise StorageFault(_reason(error)) from error


def _reason(error: Exception) -> str:
    """Why a remote storage failed, for the log: errors of a bucket that has answered contain a code."""
    answered = getattr(error, "response", None)
    code = answered.get("Error", {}).get("Code") if isinstance(answered, dict) else None
    return f"The storage refused the request: {code}." if code else "The storage does not respond."


class _DigestingFile(File):  # type: ignore[type-arg]
    """A file wrapper that counts and digests the bytes while a storage reads the file once."""

    def __init__(self, upload: "File[bytes]", limit: int) -> None:
        assert upload.file is not None
        super().__init__(upload.file, upload.name)
        self.source = upload.file
        self.limit = limit
        self.total = 0
        self.digest = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        # Read one byte beyond the limit to notice that it is exceeded.
        most = self.limit - self.total + 1
        data = self.source.read(most if size < 0 else min(size, most))
        self.total += len(data)
        self.digest.update(data)
        if self.total > self.limit:
            raise TooLarge
        return data

    def seek(self, position: int, whence: int = 0) -> int:
        if position or whence:
            raise OSError("The file can be read only once, from its beginning.")
        self.total, self.digest = 0, hashlib.sha256()
        return self.source.seek(0) or 0

    def seekable(self) -> bool:
        return False

    def chunks(self, chunk_size: int | None = None) -> Iterator[bytes]:
        self.seek(0)
        while data := self.read(chunk_size or CHUNK_BYTES):
            yield data

    def close(self) -> None:
        """Do nothing: the caller closes the wrapped file."""

    def __iter__(self) -> Any:
        return self.chunks()
