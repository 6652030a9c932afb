"""Folders of test runs, and removing what killed runs have left: sites, servers, mounts, files.

A run holds a lock on each of its folders. The kernel releases it when the run ends or is killed.
"""

import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import psutil

PREFIX = "chatsite-tests-"
YOUNG_SECONDS = 10  # a folder may be a moment older than its lock
_held = []  # until this process ends


def temporary_folder():
    """A data directory with a short path that PostgreSQL's own account can pass through."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    folder.chmod(0o711)
    _held.append(os.open(folder, os.O_RDONLY))
    fcntl.flock(_held[-1], fcntl.LOCK_EX)
    return folder


def keep(folder):
    """Lock the folder, so that no other run removes it while this process lives."""
    _held.append(os.open(folder, os.O_RDONLY))
    fcntl.flock(_held[-1], fcntl.LOCK_SH)


def clear():
    """Stop and remove what dead runs have left; return their folders."""
    return [folder for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*") if _cleared(folder)]


def _cleared(folder):
    with contextlib.suppress(OSError):  # its run is alive, or another run has removed it
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if time.time() - folder.stat().st_mtime < YOUNG_SECONDS:
                return False
            _end(folder)
            return True
        finally:
            os.close(descriptor)
    return False


def _end(folder):
    processes = [process for process in psutil.process_iter() if _belongs(process, str(folder))]
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(processes, 10)
    for inside in folder.iterdir():
        if inside.is_mount():
            subprocess.run(["umount", "-l", str(inside)], check=False)
    shutil.rmtree(folder, ignore_errors=True)


def _belongs(process, folder):
    """Whether a process uses the folder: a site as its data directory, or a server on its command line."""
    with contextlib.suppress(psutil.Error):
        if any(folder in word for word in process.cmdline()):
            return True
        return process.environ().get("CHATSITE_DATA_DIR") == folder
    return False
