"""Progress of commands, and reading documents within a command."""

import time
from collections.abc import Collection
from typing import TextIO

from ingestion import documents
from ingestion.models import Document
from ingestion.parsing.sections import clean
from ingestion.queue.fair_queue import last_queued_file

ATTEMPTS = 3
BAR_WIDTH = 30
LINE_WIDTH = 79


class Bar:
    """A progress bar; prints nothing unless the output is a terminal."""

    def __init__(self, stream: TextIO, total: int) -> None:
        self._stream = stream
        self._total = total
        self._shown = stream.isatty()

    def show(self, done: int, name: str) -> None:
        if self._shown:
            full = BAR_WIDTH * done // max(self._total, 1)
            bar = "█" * full + "░" * (BAR_WIDTH - full)
            self._write(f"{bar} {done}/{self._total} {clean(name)}"[:LINE_WIDTH])

    def clear(self) -> None:
        if self._shown:
            self._write("")

    def _write(self, text: str) -> None:
        self._stream.write(f"\r{text}\x1b[K")
        self._stream.flush()


def read_now(document: Document, replacement: dict[str, str | int] | None = None) -> None:
    """Read the document and its parts in this process, and delete the jobs of those that were read.

    Waits for a worker that is reading the document, and skips documents that a worker has finished.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            documents.read_document(document.pk, replacement)
        except documents.TemporaryFailure:
            time.sleep(attempt)
        else:
            documents.remove_jobs(document, replacement)
            break
    for part in Document.objects.filter(part_of=document, status__in=Document.UNFINISHED).order_by("pk"):
        read_now(part, last_queued_file(part.pk))


def failed_parts(documents: Collection[int]) -> list[Document]:
    """The parts of these documents that failed."""
    found = Document.objects.filter(pk__in=documents).with_parts().exclude(pk__in=documents)
    return list(found.filter(status=Document.Status.FAILED).order_by("pk"))


def counted(number: int, word: str) -> str:
    """A number with its noun, such as “1 document” or “2,000 documents”."""
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def shown(path: object) -> str:
    """A path on one line, without control characters."""
    return clean(str(path)).replace("\n", " ")
