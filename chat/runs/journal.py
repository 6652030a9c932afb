"""The journal of running answers in PostgreSQL: synchronous reads and writes, no event loop.

The journal never contains the text of passages. Sources are separate rows, which are deleted with their
document and read with the reader's rights each time.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models import Subquery
from django.db.models.functions import Now

from chat import events
from chat.announcements import ANNOUNCED
from chat.events import ContextReady, Event, MessageDone, MessageStarted, TitleChanged
from chat.models import JournalEntry, Run
from chat.sources import SourceView, captions_from_json
from chatsite.accounts.principal import Principal
from chatsite.db.sql_files import (
    rows,
    rows_of_each,
    statement,
)
from chatsite.db.threads import reading_everything
from history import recording
from history.recording import TurnIds

from . import notifications

SQL = Path(__file__).parent / "sql"
# Time for which a journal is kept after the run, for slow readers in other processes.
JOURNAL_TTL = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Batch:
    """New events of one run.

    `first` is the number of the first of them, counted from 1 in the run.
    """

    run_id: UUID
    first: int
    events: Sequence[Event]
    # Open pages of this conversation may wait for a question from another page, and are notified too.
    conversation_id: UUID | None = None
    first_word_ms: int | None = None  # stored only when the run ends


@dataclass(frozen=True, slots=True)
class EndedRun:
    """A run that has just ended, and its messages that are still unfinished.

    `webhooks` says whether an active webhook subscribes to one of the events ANNOUNCED, `titled` whether the
    conversation got the model's title.
    """

    owner_id: int
    answer_id: UUID
    unfinished: tuple[UUID, ...]
    webhooks: bool
    titled: bool


def _entry(batch: Batch) -> dict[str, Any]:
    without_passages = (
        replace(event, sources=()) if isinstance(event, ContextReady) else event for event in batch.events
    )
    return {
        "run_id": str(batch.run_id),
        "first": batch.first,
        "last": batch.first + len(batch.events) - 1,
        "events": events.list_to_json(without_passages),
    }


def change_messages(batches: Sequence[Batch]) -> list[str]:
    """The notifications for these batches."""
    conversations = [batch.conversation_id for batch in batches if batch.conversation_id]
    return notifications.messages("news", [*(batch.run_id for batch in batches), *conversations])


def _array(values: Iterable[object]) -> str:
    """A PostgreSQL array literal of numbers or ids, which the driver handles faster than a list."""
    return f"{{{','.join(map(str, values))}}}"


def flush(runs: Iterable[UUID], batches: Sequence[Batch]) -> dict[UUID, bool]:
    """Renew leases and append events.

    Returns, for each run whose lease this process still holds, whether the run must stop.
    """
    parameters: dict[str, Any] = {
        "lease": settings.LEASE_SECONDS,
        "runs": _array(runs),
        "entries": json.dumps([_entry(batch) for batch in batches]),
    }
    return {row["id"]: row["stop"] for row in rows("flush", parameters, SQL)}


def end_run(rest: Batch, title: str = "", run: TurnIds | None = None) -> EndedRun | None:
    """Write the last events of a run and end it, in the caller's transaction.

    A `title` is stored in the conversation of `run` unless the owner has chosen a title; its event precedes
    the last event. Returns None if the run had ended before; the caller must then roll the title back.
    """
    entry = _entry(rest)
    parameters: dict[str, Any] = {
        "run": rest.run_id,
        "first": entry["first"],
        "last": entry["last"],
        "events": json.dumps(entry["events"]),
        "first_word_ms": rest.first_word_ms,
        "webhook_events": ANNOUNCED,
        "conversation": None,
        "title": None,
        "titled_last": None,
        "titled_events": None,
    }
    texts = [statement("end_run", SQL)]
    if title and run:
        titled = _entry(replace(rest, events=[*rest.events[:-1], TitleChanged(title), rest.events[-1]]))
        parameters |= {"titled_last": titled["last"], "titled_events": json.dumps(titled["events"])}
        parameters |= recording.title_values(run.principal.user_id, run.conversation_id, title)
        # Lock the lease before the conversation, to avoid a deadlock: a process that considers this one dead
        # locks them in the same order.
        texts = [statement("lock_lease", SQL), recording.SET_TITLE, *texts]
    *_, found = rows_of_each(texts, parameters)
    return EndedRun(**found[0] | {"unfinished": tuple(found[0]["unfinished"])}) if found else None


def read(run_id: UUID, after: int = 0, most: int | None = None) -> list[tuple[int, Event]]:
    """The events with a number above `after`, in order, without the passages of ContextReady.

    With `most`, returns about that many events: an entry of the journal, which may have several events, is
    read as a whole.
    """
    entries = JournalEntry.objects.filter(run_id=run_id, last__gt=after).order_by("first")
    if most is not None:
        # Count from the next entry instead of `after`, because finish.UNWRITTEN leaves a gap in the numbers.
        entries = entries.filter(first__lt=Subquery(entries.values("first")[:1]) + most)
    found: list[tuple[int, Event]] = []
    for entry in entries:
        for number, event in enumerate(events.list_from_json(entry.events), start=entry.first):
            if event is not None and number > after:
                found.append((number, event))
    if entries and not found:  # all of these events are from a newer version of the software
        return read(run_id, entries[len(entries) - 1].last, most)
    return found


def visible_sources(principal: Principal, answer_id: UUID) -> tuple[SourceView, ...]:
    """The sources of an answer that the reader may open now."""
    parameters: dict[str, Any] = {"message_id": answer_id, "user_id": principal.user_id}
    with connection.cursor() as cursor:
        cursor.execute(statement("visible_sources", SQL), parameters)
        columns = [column.name for column in cursor.description or ()]
        rows = [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]
    return tuple(
        SourceView(
            sourcefile=row["label"].partition("#")[0],
            captions=captions_from_json(json.loads(row.pop("captions"))),
            **row,
        )
        for row in rows
    )


def count_readable_sources(answers: Sequence[tuple[Principal, UUID]]) -> dict[UUID, int]:
    """The number of sources of each answer that its owner may open now.

    Answers without readable sources are missing.
    """
    if not answers:
        return {}
    parameters: dict[str, Any] = {
        "messages": _array(answer_id for _, answer_id in answers),
        "users": _array(principal.user_id for principal, _ in answers),
    }
    # Read with all rights, because the statement checks the rights of several people itself.
    with reading_everything(), connection.cursor() as cursor:
        cursor.execute(statement("readable_sources", SQL), parameters)
        return dict(cursor.fetchall())


def purge() -> int:
    """Delete the journals of runs that ended a while ago, because their messages are complete."""
    old = Run.objects.filter(finished_at__lt=Now() - JOURNAL_TTL)
    return JournalEntry.objects.filter(run__in=old).delete()[0]


def whole_run(principal: Principal, conversation_id: UUID) -> UUID | None:
    """The unfinished run of the caller's conversation, if its text is complete according to the journal.

    None for a team's run.
    """
    runs = Run.objects.owned_by(principal).unfinished().filter(conversation=conversation_id)
    run_id = runs.values_list("pk", flat=True).first()
    if run_id is None:
        return None
    kinds = {type(event) for _, event in read(run_id)}
    return run_id if MessageDone in kinds and MessageStarted not in kinds else None
