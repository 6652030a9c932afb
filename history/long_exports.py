"""Exports of long conversations take seconds: one at a time, and their rights are checked again."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from chatsite.accounts.principal import Principal, still_valid
from chatsite.db.threads import release_connection
from chatsite.http import checked_transfer
from ingestion.models import Document

from .models import Source

# Rendering thousands of messages takes seconds of CPU time, so a process renders one long export at a time.
LONG_MESSAGES = 300
WAIT_SECONDS = 0.7  # longest wait for another long export, because a refusal must come within a second
_running = threading.Lock()


class Overloaded(Exception):
    """Another long export is being rendered."""


@contextmanager
def one_at_a_time(messages: int) -> Iterator[None]:
    """Load and render an export of about this many messages. Raises Overloaded."""
    if messages <= LONG_MESSAGES:
        yield
        return
    release_connection()
    if not _running.acquire(timeout=WAIT_SECONDS):
        raise Overloaded
    try:
        yield
    finally:
        _running.release()


class SameRights:
    """The rights with which an export begins; a long one takes longer than a withdrawal may take effect."""

    def __init__(self, principal: Principal, conversation_id: UUID) -> None:
        self._begun = time.monotonic()
        self._principal, self._conversation_id = principal, conversation_id
        self._documents = self._readable()

    def hold(self) -> bool:
        """Whether the export was short, or the caller and the cited documents are still admitted."""
        if time.monotonic() - self._begun <= checked_transfer.CHECK_SECONDS:
            return True
        return still_valid(self._principal) and self._readable() >= self._documents

    def _readable(self) -> set[int]:
        cited = Source.objects.filter(message__conversation=self._conversation_id).values("document")
        readable = Document.objects.visible_to(self._principal).filter(pk__in=cited)
        return set(readable.values_list("pk", flat=True))
