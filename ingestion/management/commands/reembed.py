"""`manage.py reembed`: embed all documents with the model that the settings name."""

import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, InterfaceError

from chatsite.db.migration_state import demand_migrations
from ingestion.embedding import EmbeddingError
from ingestion.indexing.reembedding import (
    AlreadyRunning,
    Progress,
    configured_space,
    missing,
    reembed,
)
from ingestion.models import EmbeddingSpace, Passage

BAR_WIDTH = 30
TERMINAL_SECONDS = 0.1
LOG_SECONDS = 5.0
INTERRUPTED = 130  # the exit status of a program interrupted by Ctrl-C


class Command(BaseCommand):
    help = (
        "Embed all documents with the model that the settings name. Search uses the former model until this"
        " is complete. The command may be stopped at any time; the next run continues where it stopped."
    )
    requires_system_checks = ["chatsite"]  # checks the settings

    def handle(self, *args: Any, **options: Any) -> None:
        demand_migrations()
        former = EmbeddingSpace.objects.filter(active=True).first()
        space = configured_space()
        if former in (None, space) and not missing(space) and EmbeddingSpace.objects.count() == 1:
            self.stdout.write(f"The documents are embedded with {space}. There is nothing to do.")
            return
        display = ProgressDisplay(sys.stderr)
        try:
            for progress in reembed():
                display.show(progress)
        except AlreadyRunning:
            raise CommandError("Another “manage.py reembed” is already running.") from None
        except EmbeddingError as error:
            raise CommandError(f"{error} {self._state(space)}") from error
        except (DatabaseError, InterfaceError) as error:
            raise CommandError(
                "The database failed. Finished embeddings are kept: run “manage.py reembed” again."
            ) from error
        except KeyboardInterrupt:
            raise CommandError(f"Stopped. {self._state(space)}", returncode=INTERRUPTED) from None
        finally:
            display.clear()
        self.stdout.write(f"The documents are embedded with {space}: {Passage.objects.count():,} passages.")

    def _state(self, space: EmbeddingSpace) -> str:
        """Sentences about the progress so far, and about how to continue."""
        total = Passage.objects.count()
        active = EmbeddingSpace.objects.filter(active=True).first()
        searched = f" Search continues to use {active}." if active and active != space else ""
        return (
            f"{total - missing(space):,} of {total:,} passages are embedded with {space} and kept.{searched}"
            " Run “manage.py reembed” again to continue."
        )


class ProgressDisplay:
    """Shows progress: on a terminal, a line that changes; elsewhere, a line every few seconds."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._terminal = stream.isatty()
        self._words = ""
        self._began = 0.0
        self._first = 0
        self._shown = 0.0

    def show(self, progress: Progress) -> None:
        now = self._clock()
        if progress.words != self._words:
            self._words, self._began, self._first, self._shown = progress.words, now, progress.done, 0.0
        if self._shown and now - self._shown < (TERMINAL_SECONDS if self._terminal else LOG_SECONDS):
            return
        self._shown = now
        line = self._line(progress, now - self._began)
        self._stream.write(f"\r{line}\x1b[K" if self._terminal else f"{line}\n")
        self._stream.flush()

    def clear(self) -> None:
        if self._terminal:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def _line(self, progress: Progress, seconds: float) -> str:
        if not progress.total:
            return f"{progress.words} …"
        full = BAR_WIDTH * progress.done // progress.total
        bar = f"{'█' * full}{'░' * (BAR_WIDTH - full)} " if self._terminal else ""
        line = f"{bar}{progress.words} {progress.done:,}/{progress.total:,}"
        rate = (progress.done - self._first) / seconds if seconds > 0 else 0.0
        if rate <= 0:
            return line
        minutes, rest = divmod(round((progress.total - progress.done) / rate), 60)
        hours, minutes = divmod(minutes, 60)
        left = f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
        return f"{line}, {rate:,.0f} a second, {left} left"
