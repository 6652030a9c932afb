"""Temporary folders for the child processes that read files.

A killed process leaves its folder, which a later process removes.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

YOUNG_SECONDS = 60  # a folder is locked right after its creation, so an older one without a lock is abandoned
PREFIX = "chatsite-reading-"


@contextlib.contextmanager
def workspace() -> Iterator[str]:
    """An empty folder, which is removed when the block ends, and is locked until then."""
    _sweep_once()
    with tempfile.TemporaryDirectory(prefix=PREFIX) as folder, _locked(Path(folder)):
        yield folder


def sweep() -> None:
    """Remove this account's folders that are not new and not locked: their process is dead."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError), _locked(folder):
            status = folder.stat()
            own = status.st_uid == os.geteuid()  # other accounts may also create folders here
            if own and time.time() - status.st_mtime > YOUNG_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)


_sweep_once = cache(sweep)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, which the kernel releases when the process ends.

    Raises OSError if another process holds it.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)
