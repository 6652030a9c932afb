"""Reads files and renders pages of PDFs in child processes.

The module's only dependency on Django is the settings.
"""

import contextlib
import json
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from django.conf import settings

from . import containers
from .forkserver import (
    Child,
    forked,
)
from .formats import DAMAGED
from .sections import TOO_MUCH_MEMORY, Section, Unreadable
from .workspace import workspace

TOO_SLOW = "Reading took longer than is allowed ({seconds:g} s)."
FAILED = "The file could not be read: it is damaged, or it makes its reader crash."
IMAGE_SECONDS = 30
IMAGE_BYTES = 30_000_000
PNG_ENDS = (b"\x89PNG", b"IEND\xae\x42\x60\x82")
CHARACTERS_BYTES = 5_000_000
LINE_BYTES = 12  # maximum number of bytes of JSON for one character; most need at most 6
AT_ONCE = threading.BoundedSemaphore(2)  # limits the children of `render` and `characters` together


@dataclass(frozen=True, slots=True)
class Part:
    """A file in an archive or a message.

    `path` is its path there; `file` is a copy in the folder that was passed to `read`.
    """

    path: str
    file: Path


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of reading a file.

    `title` may be empty; `language` is from `language.language_of`. `left_out` lists files within the file
    that were not read, with reasons.
    """

    title: str
    language: str
    pages: int | None
    sections: tuple[Section, ...]
    parts: tuple[Part, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()


class TooSlow(Unreadable):
    """Reading exceeded the time limit; a retry may succeed when the machine is less busy."""


class Interrupted(Exception):
    """Another thread has stopped the reading; the file is not the cause."""


class Stoppable(Protocol):
    """Work that can be stopped: a child process that reads a file, or SQL that writes passages."""

    def end(self) -> object: ...


class Interruption:
    """Lets another thread stop a reading by ending the work that the reading waits for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._awaited: Stoppable | None = None
        self._requested = False

    def request(self) -> None:
        with self._lock:
            self._requested = True
            if self._awaited:
                self._awaited.end()

    def check(self) -> None:
        """Raise Interrupted if an interruption was requested."""
        if self._requested:
            raise Interrupted

    @contextlib.contextmanager
    def ending(self, awaited: Stoppable) -> Iterator[None]:
        """Raise Interrupted if an interruption was requested before or within the block.

        A request within the block ends `awaited`.
        """
        with self._lock:
            self._awaited = awaited
        try:
            self.check()
            yield
        finally:
            with self._lock:
                self._awaited = None
            self.check()


def read(
    path: Path,
    ending: str,
    on_progress: Callable[[int, int], None],
    interruption: Interruption | None = None,
    *,
    folder: Path | None = None,
) -> Reading:
    """Read a file in the format of the extension `ending`, such as ".pdf".

    Files within an archive or a message are written to `folder`; without a folder, they are left out. Raises
    Unreadable, FileNotFoundError, and Interrupted.
    """
    path.stat()
    interruption = interruption or Interruption()
    sizes = (
        settings.DOCUMENT_MAX_PAGES,
        settings.DOCUMENT_MAX_CHARACTERS,
        settings.DOCUMENT_MAX_UNPACKED_BYTES,
    )
    arguments = [ending, *map(str, sizes), settings.OCR_LANGUAGES, *(["parts"] if folder else [])]
    sections: list[Section] = []
    parts: list[Part] = []
    left_out: list[tuple[str, str]] = []
    unpacked = settings.DOCUMENT_MAX_UNPACKED_BYTES
    with (
        _child("read", path, settings.READING_SECONDS, arguments) as child,
        interruption.ending(child),
    ):
        for line in _lines(child.output, settings.DOCUMENT_MAX_CHARACTERS * LINE_BYTES):
            message = json.loads(line)
            if "progress" in message:
                on_progress(*message["progress"])
            elif "scans" in message:
                child.set_deadline(max(settings.READING_SECONDS, settings.OCR_SECONDS))
            elif "section" in message:
                sections.append(Section(*message["section"]))
            elif "part" in message and folder:
                part = Part(containers.part_path(message["part"]), folder / f"part{len(parts)}")
                size, reason = containers.receive(child.output, part.file, unpacked)
                unpacked -= size
                if reason:
                    left_out.append((part.path, reason))
                else:
                    parts.append(part)
            elif "left_out" in message:
                name, reason = message["left_out"]
                left_out.append((str(name), str(reason)))
            elif "unreadable" in message:
                raise Unreadable(message["unreadable"])
            else:
                return Reading(
                    sections=tuple(sections), parts=tuple(parts), left_out=tuple(left_out), **message["done"]
                )
        raise Unreadable(FAILED)


def render(path: Path, page: int) -> bytes:
    """A page (from 1) of a PDF as PNG. Raises Unreadable, for example if there is no such page."""
    with AT_ONCE, _child("render", path, IMAGE_SECONDS, [str(page)]) as child:
        image = child.output.read(IMAGE_BYTES)
        if not (image.startswith(PNG_ENDS[0]) and image.endswith(PNG_ENDS[1])):
            raise Unreadable(DAMAGED)
    return image


def characters(path: Path, page: int) -> bytes:
    """The result of `readers.pdf.characters` for a page (from 1), as JSON. Raises Unreadable."""
    with AT_ONCE, _child("characters", path, IMAGE_SECONDS, [str(page)]) as child:
        output = child.output.read(CHARACTERS_BYTES)
        if not output.startswith(b'{"width"') or not output.endswith(b"\n"):
            raise Unreadable(DAMAGED)
    return output


def _lines(output: IO[bytes], limit: int) -> Iterator[bytes]:
    """Yield complete lines, up to `limit` bytes in total."""
    while limit > 0 and (line := output.readline(limit)):
        limit -= len(line)
        if line.endswith(b"\n"):
            yield line


@contextlib.contextmanager
def _child(command: str, path: Path, seconds: float, arguments: Sequence[str]) -> Iterator[Child]:
    """A running child process, which ends with the block.

    An Unreadable raised in the block is replaced by a specific one if a time or memory limit ended the child.
    """
    processor_seconds = int(max(seconds, settings.OCR_SECONDS)) + 1
    limits = [str(settings.READING_MEMORY_BYTES), str(processor_seconds)]
    with workspace() as folder, forked([command, str(path), *limits, *arguments], folder, seconds) as child:
        try:
            yield child
        except Unreadable:
            # A child that is still writing gets a broken pipe instead of blocking forever.
            child.output.close()
            status = child.wait()
            if child.expired or -status == signal.SIGXCPU:
                raise TooSlow(TOO_SLOW.format(seconds=child.seconds)) from None
            if -status in (
                signal.SIGABRT,
                signal.SIGKILL,
            ):  # a library (SIGABRT) or the kernel (SIGKILL) has detected that the child ran out of memory
                megabytes = settings.READING_MEMORY_BYTES / 1_000_000
                raise Unreadable(TOO_MUCH_MEMORY.format(megabytes=megabytes)) from None
            raise  # the child has not exceeded a limit
