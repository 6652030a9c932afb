"""Files within a file, read in turn within its remaining limits."""

import tempfile
from dataclasses import replace
from pathlib import Path

from .formats import DAMAGED, FORMATS, ending_of
from .packages import DAMAGE
from .readers import read_file
from .sections import ANCHOR_CHARACTERS, Contents, Limits, Progress, Unreadable, anchor, one_line

NAME_CHARACTERS = 150
TOO_DEEP = "it is nested too deeply"
NOT_A_FORMAT = "files of this kind cannot be read"


class Container:
    """Adds the files in a file to its `contents`; `left_out` has the reasons for skipped ones."""

    def __init__(self, contents: Contents, limits: Limits, progress: Progress, word: str) -> None:
        self.contents = contents
        self.left_out: list[str] = []
        self._limits = limits
        self._progress = progress
        self._word = word  # what such a file is called in citations

    def add(self, name: str, data: bytes) -> None:
        """Read one more file. An unreadable one is recorded with its reason; others can still be read."""
        shown = one_line(name, NAME_CHARACTERS) or "file"
        ending = ending_of(shown)
        try:
            if ending not in FORMATS:
                raise Unreadable(NOT_A_FORMAT)
            if not self._limits.nested:
                raise Unreadable(TOO_DEEP)
            limits = replace(
                self._limits,
                nested=self._limits.nested - 1,
                characters=self._limits.characters - self.contents.characters,
            )
            with tempfile.NamedTemporaryFile() as file:
                file.write(data)
                file.flush()
                found = read_file(Path(file.name), ending, limits, self._progress)
        except Unreadable as error:
            self.left_out.append(f"{shown} ({str(error).rstrip('.')})")
            return
        except (*DAMAGE, OSError, RecursionError, AttributeError, TypeError, IndexError):
            self.left_out.append(f"{shown} ({DAMAGED.rstrip('.')})")
            return
        for section in found.sections:
            place = f"{self._word}={shown}" + (f"/{section.anchor}" if section.anchor else "")
            heading = " › ".join(filter(None, [shown, section.heading]))
            self.contents.add(anchor(place)[:ANCHOR_CHARACTERS], None, heading, section.text)
