"""Runs the child that reads a file, and turns whatever happens to it into sections or into a reason.

Uses no more of Django than its settings.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from django.conf import settings

from .sections import TOO_MUCH_MEMORY, Section, Unreadable
from .sniffing import DAMAGED
from .workspace import workspace

TOO_SLOW = "Reading took longer than is allowed ({seconds:g} s)."
FAILED = "The file could not be read: it is damaged, or built in a way that its reader does not survive."
IMAGE_SECONDS = 30
IMAGE_BYTES = 30_000_000
INHERITED = ("PATH", "LD_LIBRARY_PATH", "TESSDATA_PREFIX")
LINE_BYTES = 8  # of JSON for one character, at the most
AT_ONCE = threading.BoundedSemaphore(2)  # children drawing pages


@dataclass(frozen=True, slots=True)
class Reading:
    """A file as read. `title` may be empty, `language` is a text-search configuration."""

    title: str
    language: str
    pages: int | None
    sections: tuple[Section, ...]


def read(path: Path, ending: str, on_progress: Callable[[int, int], None]) -> Reading:
    """Read a file of the format that `ending` (".pdf") names. Raises Unreadable, and FileNotFoundError."""
    path.stat()
    sizes = (
        settings.DOCUMENT_MAX_PAGES,
        settings.DOCUMENT_MAX_CHARACTERS,
        settings.DOCUMENT_MAX_UNPACKED_BYTES,
    )
    arguments = [ending, *map(str, sizes), settings.OCR_LANGUAGES]
    sections: list[Section] = []
    with _child("read", path, settings.READING_SECONDS, arguments) as (output, deadline):
        for line in _lines(output, settings.DOCUMENT_MAX_CHARACTERS * LINE_BYTES):
            message = json.loads(line)
            if "progress" in message:
                on_progress(*message["progress"])
            elif "scans" in message:
                deadline.set(max(settings.READING_SECONDS, settings.OCR_SECONDS))
            elif "section" in message:
                sections.append(Section(*message["section"]))
            elif "unreadable" in message:
                raise Unreadable(message["unreadable"])
            else:
                return Reading(sections=tuple(sections), **message["done"])
        raise Unreadable(FAILED)


def render(path: Path, page: int) -> bytes:
    """A page (from 1) of a PDF as PNG. Raises Unreadable where there is none."""
    with AT_ONCE, _child("render", path, IMAGE_SECONDS, [str(page)]) as (output, _):
        image = output.read(IMAGE_BYTES)
    if not image.startswith(b"\x89PNG"):
        raise Unreadable(DAMAGED)
    return image


def _lines(output: IO[bytes], limit: int) -> Iterator[bytes]:
    """Whole lines, up to `limit` bytes of them in all."""
    while limit > 0 and (line := output.readline(limit)):
        limit -= len(line)
        if line.endswith(b"\n"):
            yield line


@contextlib.contextmanager
def _child(
    command: str, path: Path, seconds: float, arguments: Sequence[str]
) -> Iterator[tuple[IO[bytes], "_Deadline"]]:
    """The child's output, and what ends it in time.

    It is gone when the block ends, and its death is Unreadable, in words.
    """
    processor_seconds = int(max(seconds, settings.OCR_SECONDS)) + 1
    with workspace() as folder:
        process = subprocess.Popen(  # noqa: S603 - our own program, no shell
            [sys.executable, "-m", "ingestion.parsing.child", command, str(path),
             str(settings.READING_MEMORY_BYTES), str(processor_seconds), *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            cwd=folder, env=_environment(folder), start_new_session=True,
        )  # fmt: skip
        deadline = _Deadline(process, seconds)
        try:
            assert process.stdout is not None
            yield process.stdout, deadline
            # Nobody reads on: a child that still writes gets a broken pipe instead of waiting for ever.
            process.stdout.close()
            process.wait()
        except Unreadable:
            if reason := _death(process, deadline):
                raise Unreadable(reason) from None
            raise
        finally:
            deadline.cancel()
            _kill(process)
            if process.stdout:
                process.stdout.close()
            process.wait()


def _environment(folder: str) -> dict[str, str]:
    """Nothing of ours: no key, no address of a database."""
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return inherited | {
        "PYTHONPATH": str(settings.BASE_DIR),
        "LANG": "C.UTF-8",
        "HOME": folder,
        "TMPDIR": folder,
        "RAYON_NUM_THREADS": "1",
        "TOKIO_WORKER_THREADS": "1",
    }


class _Deadline:
    """Kills the child when its time is over."""

    def __init__(self, process: subprocess.Popen[bytes], seconds: float) -> None:
        self.expired = False
        self._process = process
        self._timer: threading.Timer | None = None
        self.set(seconds)

    def set(self, seconds: float) -> None:
        """From now on."""
        self.cancel()
        self.seconds = seconds
        self._timer = threading.Timer(seconds, self._expire)
        self._timer.start()

    def cancel(self) -> None:
        if self._timer:
            self._timer.cancel()

    def _expire(self) -> None:
        self.expired = True
        _kill(self._process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _death(process: subprocess.Popen[bytes], deadline: _Deadline) -> str:
    """Why the child did not answer, or "" where it ended by itself."""
    try:
        status = process.wait(1)
    except subprocess.TimeoutExpired:
        return ""
    if deadline.expired or -status == signal.SIGXCPU:
        return TOO_SLOW.format(seconds=deadline.seconds)
    if -status in (signal.SIGABRT, signal.SIGKILL):  # out of memory, seen by a library or by the kernel
        return TOO_MUCH_MEMORY.format(megabytes=settings.READING_MEMORY_BYTES / 1_000_000)
    return ""
