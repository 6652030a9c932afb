"""Collects static files under hashed names whenever their sources have changed."""

import fcntl
import hashlib
import os
from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command

from .refusal import StartRefused


def collect() -> None:
    """Fill STATIC_ROOT if it is out of date. Raises StartRefused."""
    root = Path(settings.STATIC_ROOT)
    wanted = fingerprint()
    try:
        root.mkdir(parents=True, exist_ok=True)
        with (root / ".sources").open("a+") as mark:
            os.fchmod(mark.fileno(), 0o600)  # other accounts must not be able to hold the lock
            fcntl.flock(mark, fcntl.LOCK_EX)
            mark.seek(0)
            if mark.read() == wanted:
                return
            call_command("collectstatic", interactive=False, verbosity=0)
            mark.truncate(0)
            mark.write(wanted)  # last, so that an interrupted collection is repeated
    except OSError as error:
        raise StartRefused(f"Static files cannot be written to {root}: {error.strerror}.") from error


def fingerprint() -> str:
    """A digest of the storage class and of each source file's name, size and modification time."""
    digest = hashlib.sha256(settings.STORAGES["staticfiles"]["BACKEND"].encode())
    for finder in get_finders():
        for name, storage in finder.list([]):
            status = Path(storage.path(name)).stat()
            digest.update(f"{name}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    return digest.hexdigest()
