"""The files of documents on disk: kept under generated names, with the images of their pages beside them."""

import hashlib
import os
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.core.files import File

from .models import Document
from .parsing import process

FOLDER = "documents"
CHUNK_BYTES = 1_000_000


class TooLarge(Exception):
    """The file is larger than the limit."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A file on disk: its generated name below the media folder, its size in bytes, its digest."""

    name: str
    size: int
    sha256: str


def store(upload: "File[bytes]", limit: int) -> Stored:
    """Write the upload to disk, durably, under a name that says nothing about it.

    Raises TooLarge; then, and when writing fails, nothing is left behind.
    """
    token = secrets.token_hex(16)
    name = f"{FOLDER}/{token[:2]}/{token}"
    path = path_of(name)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    digest = hashlib.sha256()
    size = 0
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as target:
            for chunk in upload.chunks(CHUNK_BYTES):
                size += len(chunk)
                if size > limit:
                    raise TooLarge
                digest.update(chunk)
                target.write(chunk)
            target.flush()
            os.fsync(target.fileno())
        _sync_folder(path.parent)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return Stored(name, size, digest.hexdigest())


def remove(name: str) -> None:
    """Remove a stored file and the images of its pages; nothing happens where they are gone."""
    if name:
        path_of(name).unlink(missing_ok=True)
        shutil.rmtree(_images(name), ignore_errors=True)


def path_of(name: str) -> Path:
    """Where a stored file lies."""
    return Path(settings.MEDIA_ROOT) / name


def open_file(document: Document) -> "File[bytes]":
    """The document's file. Raises FileNotFoundError where it was lost."""
    return File(path_of(str(document.file.name)).open("rb"), name=document.name)


def page_image(document: Document, page: int) -> bytes:
    """A page (from 1) of a PDF as PNG, kept for the next time. Raises Unreadable where there is none."""
    cached = _images(str(document.file.name)) / f"{page:d}.png"
    try:
        return cached.read_bytes()
    except FileNotFoundError:
        pass
    image = process.render(path_of(str(document.file.name)), page)
    cached.parent.mkdir(mode=0o700, exist_ok=True)
    temporary = cached.with_suffix(f".{secrets.token_hex(4)}")
    temporary.write_bytes(image)
    temporary.rename(cached)
    return image


def names_older_than(seconds: float, now: float) -> list[str]:
    """Generated names of all files that have lain on disk for that long."""
    root = path_of(FOLDER)
    return [
        f"{FOLDER}/{path.parent.name}/{path.name}"
        for path in root.glob("??/*")
        if path.is_file() and path.stat().st_mtime < now - seconds
    ]


def _images(name: str) -> Path:
    path = path_of(name)
    return path.with_name(f"{path.name}.pages")


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
