"""The files of documents: under generated names in Django's default storage, images of pages beside them.

A storage may be a folder or somewhere else; nothing here knows paths but `local_copy`.
"""

import contextlib
import hashlib
import json
import secrets
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.core.exceptions import SuspiciousOperation
from django.core.files import File
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.utils import timezone

from ingestion.models import Document
from ingestion.parsing import process
from ingestion.parsing.workspace import workspace

FOLDER = "documents"
IMAGES = ".pages"
CHUNK_BYTES = 1_000_000


class TooLarge(Exception):
    """The file is larger than the limit."""


class StorageFault(OSError):
    """The storage does not answer as it should; later it may."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A file in the storage: its generated name, its size in bytes, its digest."""

    name: str
    size: int
    sha256: str


def store(upload: "File[bytes]", limit: int) -> Stored:
    """Keep the upload, durably, under a name that says nothing about it.

    Raises TooLarge; then, and when writing fails, nothing is left behind.
    """
    token = secrets.token_hex(16)
    name = f"{FOLDER}/{token[:2]}/{token}"
    measured = _Measured(upload, limit)
    try:
        with _answering():
            name = default_storage.save(name, measured)
    except BaseException:
        with contextlib.suppress(OSError):  # what is left there goes with the orphans
            remove(name)
        raise
    return Stored(name, measured.total, measured.digest.hexdigest())


def remove(name: str) -> None:
    """Remove a stored file and the images of its pages; nothing happens where they are gone."""
    if name:
        with _answering():
            default_storage.delete(name)
            _remove_images(name)


def discard(stored: Stored, document_id: int) -> None:
    """Remove a file that was to take the document's place, unless it has."""
    if not Document.objects.filter(pk=document_id, file=stored.name).exists():
        remove(stored.name)


def exists(name: str) -> bool:
    """Whether the storage holds the file."""
    with _answering():
        return default_storage.exists(name)


@contextlib.contextmanager
def local_copy(name: str) -> Iterator[Path]:
    """A path at which the file can be read while the block lasts. Raises FileNotFoundError."""
    try:
        path = default_storage.path(name)
    except NotImplementedError:
        with workspace() as folder:  # swept by the next worker where this one is killed
            copy = Path(folder) / "file"
            with _answering(), default_storage.open(name) as source, copy.open("wb") as target:
                shutil.copyfileobj(source, target, CHUNK_BYTES)
            yield copy
    else:
        yield Path(path)


def open_file(document: Document) -> "File[bytes]":
    """The document's file. Raises FileNotFoundError where it was lost."""
    with _answering():
        return default_storage.open(str(document.file.name))


def page_image(document: Document, page: int) -> bytes:
    """A page (from 1) of a PDF as PNG, kept for the next time. Raises Unreadable where there is none."""
    return _kept(document, f"{page:d}.png", lambda path: process.render(path, page))


def page_characters(document: Document, page: int) -> dict[str, Any]:
    """Where the characters of the page stand on its image, kept as the image is. Raises Unreadable."""
    found: dict[str, Any] = json.loads(
        _kept(document, f"{page:d}.json", lambda path: process.characters(path, page))
    )
    return found


def _kept(document: Document, part: str, make: Callable[[Path], bytes]) -> bytes:
    """What is made of a file once, and removed with it."""
    name = str(document.file.name)
    cached = f"{name}{IMAGES}/{part}"
    with contextlib.suppress(FileNotFoundError), _answering(), default_storage.open(cached) as file:
        return bytes(file.read())
    with local_copy(name) as path:
        made = make(path)
    with _answering():
        default_storage.save(cached, ContentFile(made))
        if not default_storage.exists(name):  # deleted meanwhile, and its images before this one
            _remove_images(name)
    return made


def names_older_than(age: timedelta) -> list[str]:
    """Generated names of everything that has been in the storage for that long."""
    before = timezone.now() - age
    with _answering():
        return [name for name, moment in _everything() if moment < before]


def _everything() -> Iterator[tuple[str, datetime]]:
    """Each file with the time it was written, and each folder of images by the name of its file."""
    for group in _listed(FOLDER)[0]:
        folder = f"{FOLDER}/{group}"
        folders, names = _listed(folder)
        for name in names:
            yield f"{folder}/{name}", default_storage.get_modified_time(f"{folder}/{name}")
        for inner in folders:
            for image in _listed(f"{folder}/{inner}")[1][:1]:
                moment = default_storage.get_modified_time(f"{folder}/{inner}/{image}")
                yield f"{folder}/{inner.removesuffix(IMAGES)}", moment


def _remove_images(name: str) -> None:
    folder = f"{name}{IMAGES}"
    images = _listed(folder)[1]
    for image in images:
        default_storage.delete(f"{folder}/{image}")
    if images:
        with contextlib.suppress(OSError):  # another image came just now
            default_storage.delete(folder)


def _listed(folder: str) -> tuple[list[str], list[str]]:
    """Folders and files in a folder; none where it does not exist."""
    try:
        return default_storage.listdir(folder)
    except FileNotFoundError:
        return [], []


@contextlib.contextmanager
def _answering() -> Iterator[None]:
    """Storages of others fail with errors of their own: they become StorageFault."""
    try:
        yield
    except (OSError, TooLarge, SuspiciousOperation):
        raise
    except Exception as error:
        raise StorageFault("The storage does not answer.") from error


class _Measured(File):  # type: ignore[type-arg]
    """A file that is counted and digested while a storage reads it, once and from its beginning."""

    def __init__(self, upload: "File[bytes]", limit: int) -> None:
        assert upload.file is not None
        super().__init__(upload.file, upload.name)
        self.source = upload.file
        self.limit = limit
        self.total = 0
        self.digest = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        # One byte beyond the limit is enough to know.
        most = self.limit - self.total + 1
        data = self.source.read(most if size < 0 else min(size, most))
        self.total += len(data)
        self.digest.update(data)
        if self.total > self.limit:
            raise TooLarge
        return data

    def seek(self, position: int, whence: int = 0) -> int:
        if position or whence:
            raise OSError("It is read once, from its beginning.")
        self.total, self.digest = 0, hashlib.sha256()
        return self.source.seek(0) or 0

    def seekable(self) -> bool:
        return False

    def chunks(self, chunk_size: int | None = None) -> Iterator[bytes]:
        self.seek(0)
        while data := self.read(chunk_size or CHUNK_BYTES):
            yield data

    def close(self) -> None:
        """The caller's file stays open: it is theirs."""

    def __iter__(self) -> Any:
        return self.chunks()
