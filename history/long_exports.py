"""Limits for long exports: one at a time, and rights are checked again at the end."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from django.db.models import BigIntegerField, Count, F, Func, QuerySet, Sum

from chatsite.accounts.principal import Principal, still_valid
from chatsite.db.threads import release_connection
from chatsite.http import checked_transfer
from ingestion.models import Document

from .models import Message, Source

# Exports above either limit are long. Rendering thousands of messages or megabytes of text takes seconds of
# CPU time, so a process renders one long export at a time.
LONG_MESSAGES = 300
LONG_BYTES = 1_000_000
WAIT_SECONDS = 0.7  # longest wait for another long export, because a refusal must come within a second
_running = threading.Lock()


class Overloaded(Exception):
    """Another long export is being rendered."""


@contextmanager
def one_at_a_time(messages: QuerySet[Message] | None) -> Iterator[None]:
    """Let only one block at a time load and render a long export in this process.

    `messages` are those to export; None for a single answer, which counts as short. Raises Overloaded
    after WAIT_SECONDS.
    """
    if messages is None or not _are_long(messages):
        yield
        return
    release_connection()
    if not _running.acquire(timeout=WAIT_SECONDS):
        raise Overloaded
    try:
        yield
    finally:
        _running.release()


def _are_long(messages: QuerySet[Message]) -> bool:
    # PostgreSQL knows the number of bytes without reading the texts.
    size = Func(F("content"), function="octet_length", output_field=BigIntegerField())
    found = messages.aggregate(number=Count("pk"), size=Sum(size, default=0))
    return bool(found["number"] > LONG_MESSAGES or found["size"] > LONG_BYTES)


class SameRights:
    """The caller's rights when a response is begun, to check them again before it is sent."""

    def __init__(self, principal: Principal, conversation_id: UUID) -> None:
        self._begun = time.monotonic()
        self._principal, self._conversation_id = principal, conversation_id
        self._documents = self._readable()

    def hold(self) -> bool:
        """Whether at most CHECK_SECONDS have passed, or the caller still has these rights."""
        if time.monotonic() - self._begun <= checked_transfer.CHECK_SECONDS:
            return True
        return still_valid(self._principal) and self._readable() >= self._documents

    def _readable(self) -> set[int]:
        cited = Source.objects.filter(message__conversation=self._conversation_id).values("document")
        readable = Document.objects.visible_to(self._principal).filter(pk__in=cited)
        return set(readable.values_list("pk", flat=True))
