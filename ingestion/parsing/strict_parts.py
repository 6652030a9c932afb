"""Packages in Office's strict formats, read as if in the usual (transitional) ones.

Office can save a file as “Strict Open XML”. The parts that the readers use differ from the usual ones only
in their namespaces and the types of their relationships (ISO/IEC 29500-1 and -4).
"""

import io
import zipfile
from typing import IO, Any

RELATIONS = "_rels/.rels"
STRICT = b"http://purl.oclc.org/ooxml/"
USUAL = b"http://schemas.openxmlformats.org/"
FAMILIES = (b"wordprocessingml/", b"spreadsheetml/", b"presentationml/", b"drawingml/", b"officeDocument/")
LONGEST = max(len(STRICT + family) for family in FAMILIES)
ENDINGS = (".xml", ".rels")


class OfficePackage(zipfile.ZipFile):
    """A package whose parts have the usual namespaces, even if it is strict."""

    def __init__(self, file: Any) -> None:
        super().__init__(file)
        self._is_strict = False
        self._is_strict = RELATIONS in self.namelist() and STRICT in self.read(RELATIONS)

    def open(self, name: Any, *arguments: Any, **options: Any) -> IO[bytes]:
        part = super().open(name, *arguments, **options)
        if not self._is_strict or not getattr(name, "filename", name).endswith(ENDINGS):
            return part
        return io.BufferedReader(_Usual(part))


class _Usual(io.RawIOBase):
    """A part with the usual namespaces instead of the strict ones, read in one pass."""

    def __init__(self, part: IO[bytes]) -> None:
        self.name = part.name
        self._part = part
        self._kept = b""  # the end of the text so far: perhaps a part of a namespace
        self._ready = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            chunk = self._part.read(io.DEFAULT_BUFFER_SIZE)
            text = self._kept + chunk
            for family in FAMILIES:
                text = text.replace(STRICT + family, USUAL + family + b"2006/")
            kept = LONGEST - 1 if chunk else 0
            self._ready, self._kept = text[: len(text) - kept], text[max(len(text) - kept, 0) :]
            if not chunk:
                break
        size = min(len(buffer), len(self._ready))
        buffer[:size], self._ready = self._ready[:size], self._ready[size:]
        return size

    def close(self) -> None:
        self._part.close()
        super().close()
