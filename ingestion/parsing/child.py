"""The child process that reads a file or renders a page.

`forkserver` forks it for the module `process`. Its output depends on the command: for `render` the image; for
`characters` one line of JSON; for `read` JSON lines `{"progress": [done, total]}`, `{"scans": true}`,
`{"section": [anchor, page, heading, text]}`, files within the file as described in `containers`,
`{"left_out": [name, reason]}` for each of them that is not read, and at the end `{"done": {"title",
"language", "pages"}}` or `{"unreadable": "a sentence"}`.
"""

import ctypes
import json
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from . import readers
from .containers import PartSender
from .formats import (
    DAMAGED,
    FORMATS,
)
from .language import language_of
from .sections import (
    TOO_MUCH_MEMORY,
    Limits,
    Unreadable,
)
from .titles import first_title

NO_TEXT = "No text was found in the file."
NO_READER = "The server lacks the software for this kind of file{package}. Tell the operator of the site."
PROGRESS_SECONDS = 0.2
PR_SET_PDEATHSIG = 1  # linux/prctl.h
LANGUAGE_SAMPLE = 60_000


def exit_with_parent() -> None:
    """Ask the kernel to kill this process when its parent ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def limit_resources(memory: int, seconds: int) -> None:
    """Limit memory, CPU time and file sizes of this process; the parent limits elapsed time."""
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_FSIZE, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def read(
    path: Path, ending: str, limits: Limits, send: Callable[[dict[str, Any]], None], output: BinaryIO
) -> None:
    """Read the file, and write its sections and the files that it contains. Raises Unreadable."""
    parts = PartSender(limits, send, output)
    contents = readers.read_file(path, ending, limits, _Progress(send), parts)
    sections = contents.sections
    has_text = any(character.isalnum() for section in sections for character in section.text)
    if not (has_text or parts.sent):
        raise Unreadable(NO_TEXT)
    for section in sections:
        send({"section": [section.anchor, section.page, section.heading, section.text]})

    title = first_title(contents.title)
    sample: list[str] = []
    size = 0
    for section in sections:
        sample.append(section.text)
        size += len(section.text)
        if size > LANGUAGE_SAMPLE:
            break
    send({"done": {"title": title, "language": language_of(" ".join(sample)), "pages": contents.pages}})


def load(arguments: list[str]) -> None:
    """Import the reader that `main` will need for these arguments. Raises ImportError."""
    ending = arguments[4] if arguments[0] == "read" else ".pdf"
    readers.load(readers.READERS[FORMATS[ending].family][0])


class _Progress:
    """Reports finished pages a few times a second."""

    def __init__(self, send: Callable[[dict[str, Any]], None]) -> None:
        self._send = send
        self._reported_at = 0.0

    def __call__(self, done: int, total: int) -> None:
        if time.monotonic() - self._reported_at > PROGRESS_SECONDS or done == total:
            self._reported_at = time.monotonic()
            self._send({"progress": [done, total]})

    def scans(self) -> None:
        """Report that the reader now recognises text in images, which may take longer."""
        self._send({"scans": True})


def main(arguments: list[str], output: BinaryIO) -> None:
    """Run as a child process.

    `arguments` are: read, render or characters; the path; bytes of memory; seconds of CPU time; then for
    `read` the file extension and the values of `Limits` (the last one is “parts”, or left out), otherwise
    the page number.
    """
    command, path, memory, seconds, *rest = arguments
    exit_with_parent()
    limit_resources(int(memory), int(seconds))

    def send(message: dict[str, Any]) -> None:
        output.write(json.dumps(message).encode() + b"\n")
        output.flush()

    try:
        if command == "render":
            output.write(readers.load("pdf").render(Path(path), int(rest[0])))
        elif command == "characters":
            send(readers.load("pdf").characters(Path(path), int(rest[0])))
        else:
            ending, pages, characters, unpacked, languages, *with_parts = rest
            limits = Limits(int(pages), int(characters), int(unpacked), languages, bool(with_parts))
            read(Path(path), ending, limits, send, output)
    except Unreadable as error:
        if command != "read":
            sys.exit(1)
        send({"unreadable": str(error)})
    except MemoryError:
        send({"unreadable": TOO_MUCH_MEMORY.format(megabytes=int(memory) / 1_000_000)})
    except ImportError as error:  # an error of the installation, not of the file
        send({"unreadable": NO_READER.format(package=f" ({error.name})" if error.name else "")})
    except Exception as error:  # parsers may raise anything for a hostile file; its owner gets a sentence
        sys.stderr.write(f"{type(error).__name__}: {error}"[:500])
        send({"unreadable": DAMAGED})
    output.flush()
