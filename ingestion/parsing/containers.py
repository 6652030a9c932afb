"""Transfers the files in an archive or a message, which become separate documents.

The child process sends each file as a line `{"part": path}`, then lines `{"bytes": n}`, each followed by n
bytes, and `{"end": reason}`; the reason is empty if the file is complete.
"""

import json
import lzma
import re
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath
from typing import IO, Any

from .formats import DAMAGED, FORMATS, ending_of
from .packages import DAMAGE
from .sections import Limits, Unreadable, clean

PATH_CHARACTERS = 1_000
SHOWN_CHARACTERS = 150
CHUNK_BYTES = 256 * 1024
LINE_BYTES = 10_000
TOO_DEEP = "it is nested too deeply"
NOT_A_FORMAT = "files of this kind cannot be read"
LEADS_OUT = "its name leads out of the file that it is in"
NO_NAME = "it has no name"
LONG_NAME = f"its name is longer than {PATH_CHARACTERS:,} characters"
DRIVE = re.compile(r"[A-Za-z]:")
MAX_FILES = 1_000


def part_path(name: str) -> str:
    """The cleaned path of a file in an archive. Raises Unreadable.

    It has no empty components, control characters or direction marks.
    """
    given = name.replace("\\", "/").split("/")
    if ".." in given or (name and not given[0]) or DRIVE.match(name) or "\0" in name:
        raise Unreadable(LEADS_OUT)
    steps = [step.strip() for step in clean(name).replace("\n", " ").replace("\\", "/").split("/")]
    path = "/".join(step for step in steps if step.strip(". "))
    if not path:
        raise Unreadable(NO_NAME)
    if len(path) > PATH_CHARACTERS:
        raise Unreadable(LONG_NAME)
    return path


class PartSender:
    """The child's side: sends the files under distinct paths."""

    def __init__(self, limits: Limits, send: Callable[[dict[str, Any]], None], output: IO[bytes]) -> None:
        self.sent = 0
        self.left_out: list[str] = []
        self._limits = limits
        self._send = send
        self._output = output
        self._paths: set[str] = set()

    def leave_out(self, name: str, reason: str) -> None:
        shown = clean(name).replace("\n", " ")[-SHOWN_CHARACTERS:].strip() or "file"
        self.left_out.append(f"{shown} ({reason})")
        self._send({"left_out": [shown, reason]})

    def add(self, name: str, chunks: Iterable[bytes]) -> None:
        try:
            path = self._unique(part_path(name))
            if ending_of(path) not in FORMATS:
                raise Unreadable(NOT_A_FORMAT)
            if not self._limits.with_parts:
                raise Unreadable(TOO_DEEP)
        except Unreadable as error:
            self.leave_out(name, str(error))
            return
        self._send({"part": path})
        reason = ""
        try:
            for chunk in chunks:
                self._send({"bytes": len(chunk)})
                self._output.write(chunk)
        except (*DAMAGE, zlib.error, lzma.LZMAError, OSError, RuntimeError):
            reason = DAMAGED.rstrip(".").lower()
            self.left_out.append(f"{path[-SHOWN_CHARACTERS:]} ({reason})")
        self._send({"end": reason})
        self.sent += not reason

    def _unique(self, path: str) -> str:
        """The path, with a number if the archive has the same path several times."""
        at, number = PurePosixPath(path), 1
        while path in self._paths:
            number += 1
            path = str(at.with_name(f"{at.stem} ({number}){at.suffix}"))
        if len(path) > PATH_CHARACTERS:
            raise Unreadable(LONG_NAME)
        self._paths.add(path)
        return path


def receive(output: IO[bytes], target: Path, most: int) -> tuple[int, str]:
    """Write the next file, of up to `most` bytes, to `target`; returns its size and a reason.

    The reason says why the file is incomplete, and is empty otherwise. Raises Unreadable and OSError. The
    child's output is not trusted, because a hostile file may have taken over the child.
    """
    size = 0
    with target.open("wb") as file:
        while (line := output.readline(LINE_BYTES)).endswith(b"\n"):
            message = json.loads(line)
            if "end" in message:
                return size, str(message["end"])
            left = int(message["bytes"])
            size += left
            if left < 0 or size > most:
                raise Unreadable(f"The files in it are larger than is allowed ({most / 1_000_000:g} MB).")
            while left:
                data = output.read(min(left, CHUNK_BYTES))
                if not data:
                    break
                file.write(data)
                left -= len(data)
    raise Unreadable(DAMAGED)
