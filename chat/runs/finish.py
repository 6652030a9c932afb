"""Ends each run exactly once, and stores the whole texts of its messages.

Leases are compared only with the database's clock, because the clocks of machines may differ.
"""

import time
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models.functions import Now

from chat.announcements import announce_end
from chat.citations import cited_labels
from chat.events import Event, Failed, Finished, Json, RunMessage, RunResult, TitleChanged
from chat.models import Lease
from chat.statements import to_rows
from chat.verification import verify_or_log
from chatsite import metrics
from chatsite.db.availability import breaker
from chatsite.db.threads import reading_everything
from history import recording
from history.models import Conversation, Message, Source
from history.recording import AnswerOutcome, TurnIds

from . import (
    journal,
    notifications,
)
from .journal import Batch, EndedRun

# If a process has died, the end of its run gets a number this far above the last event in the journal.
# Readers may have received events that were not in the journal yet, but never this many.
UNWRITTEN = 1_000_000
# A process only counts as dead if its lease is still expired this long after it was first seen expired. After
# a pause of PostgreSQL or a jump of its clock, all leases expire at once, and living processes renew theirs
# within this time.
SECOND_LOOK_SECONDS = 1.0
UP_FOR = "SELECT pg_postmaster_start_time() < now() - make_interval(secs => %s)"

_suspected: dict[tuple[UUID, datetime], float] = {}  # expired leases, and when this process first saw them
executing: set[UUID] = set()  # runs of this process: alive even if their leases were not renewed in time


def _close_messages(run_id: UUID, ended: EndedRun, every: Sequence[Event]) -> None:
    """Store the messages of a run that has just ended.

    `every` has all known events of the run; the last one is Finished or Failed. Commits the caller's
    transaction if `ended.webhooks` is False.
    """
    result = fold(every)
    assert result.end is not None
    messages = list(result.messages) or [RunMessage("")]
    for each in messages:
        # If the journal lacks the first events, the first message has no id: it is the run's answer.
        each.message_id = each.message_id or str(ended.answer_id)
    known = {UUID(each.message_id) for each in messages}
    # Also end messages without any event.
    messages += [RunMessage(str(message_id)) for message_id in ended.unfinished if message_id not in known]
    closings = {UUID(each.message_id): _closing(run_id, each, result, result.end) for each in messages}
    recording.close_answers(ended.owner_id, closings, commits=not ended.webhooks)
    if ended.webhooks:
        announce_end(ended.owner_id, closings)


def finish_run(
    run: TurnIds, rest: Batch, every: Sequence[Event], title: str = ""
) -> list[TitleChanged | Finished | Failed]:
    """Close the run and return its last events as stored; the last of these is the outcome.

    `rest` has the events that are not in the journal yet, `every` all events of the run; both end with the
    outcome. The stored outcome can be a different one: another process may have closed the run after our
    lease expired, or an earlier commit succeeded and its acknowledgement was lost. `title` is stored unless
    the owner has chosen a title; its event precedes the outcome.
    """
    end = every[-1]
    assert isinstance(end, Finished | Failed)
    with transaction.atomic():
        ended = journal.end_run(rest, title, run)
        if ended:
            _close_messages(run.run_id, ended, every)
        else:
            transaction.set_rollback(True)  # so that the title is not stored
    if ended is None:
        return [stored_outcome(run.run_id)]
    return [TitleChanged(title), end] if ended.titled else [end]


def stored_outcome(run_id: UUID) -> Finished | Failed:
    last = Message.objects.filter(run_id=run_id).order_by("position").last()
    if last is None:  # its conversation was deleted
        return Failed(Message.State.INTERRUPTED, "interrupted")
    if last.error_code:
        return Failed(last.state, last.error_code, last.request_id)
    return Finished(last.state)


def close_expired(conversation: Conversation | None = None, run_id: UUID | None = None) -> int:
    """Mark the runs of dead processes as interrupted, with the text that reached the journal.

    Checks all runs, those of one conversation, or one run. Returns how many were closed. A run is not
    closed when its lease is first seen expired; none is closed before PostgreSQL has been available for the
    duration of a lease.
    """
    expired = Lease.objects.filter(until__lt=Now())
    if conversation is not None:
        expired = expired.filter(run__conversation=conversation)
    if run_id is not None:
        expired = expired.filter(pk=run_id)
    leases = [lease for lease in expired.values_list("pk", "until") if lease[0] not in executing]
    if conversation is None and run_id is None:
        # set() makes a copy, because other threads add leases meanwhile.
        for renewed in set(_suspected).difference(leases):
            _suspected.pop(renewed, None)
    now = time.monotonic()
    first_seen = [(lease[0], _suspected.setdefault(lease, now)) for lease in leases]
    dead = [run for run, seen in first_seen if seen < now and now - seen >= SECOND_LOOK_SECONDS]
    return _close_all(dead) if dead and _database_is_stable() else 0


def needs_second_look() -> bool:
    """Whether this process has seen expired leases, which it must check a second time."""
    return bool(_suspected)


def expire_all() -> int:
    """Close every unfinished run.

    Only call this at start-up, when no other process can be running.
    """
    Lease.objects.update(until=Now())
    return _close_all(list(Lease.objects.values_list("pk", flat=True)))


def _close_all(dead: Sequence[UUID]) -> int:
    closed = 0
    for run_id in dead:
        with transaction.atomic():
            # Skip locked rows, whose holder is closing the run or renewing the lease.
            lease = (
                Lease.objects.filter(pk=run_id, until__lt=Now())
                .select_for_update(skip_locked=True, of=("self",))
                .select_related("run__answer")
                .first()
            )
            if lease is None:
                continue
            numbered = journal.read(run_id)
            end = Failed(Message.State.INTERRUPTED, "interrupted", lease.run.answer.request_id)
            every = [*(event for _, event in numbered), end]
            last = numbered[-1][0] if numbered else 0
            notified = [run_id, lease.run.conversation_id]
            notifications.publish_on_commit(notifications.messages("news", notified))
            ended = journal.end_run(Batch(run_id, last + UNWRITTEN, [end]))
            if ended:
                _close_messages(run_id, ended, every)
                closed += 1
    metrics.LEASES_EXPIRED.add(amount=closed)
    return closed


def _database_is_stable() -> bool:
    """Whether PostgreSQL was available long enough for living processes to renew their leases."""
    if breaker.timed_out_within(settings.LEASE_SECONDS):
        return False
    with connection.cursor() as cursor:
        cursor.execute(UP_FOR, [settings.LEASE_SECONDS])
        return bool(cursor.fetchone()[0])


def fold(every: Sequence[Event]) -> RunResult:
    result = RunResult()
    for event in every:
        result.add(event)
    return result


def _closing(run_id: UUID, message: RunMessage, result: RunResult, end: Finished | Failed) -> AnswerOutcome:
    """The outcome of one message.

    A message with its whole text is complete, even if the run failed or was stopped afterwards.
    """
    last = not result.messages or message is result.messages[-1]
    usage = result.usage if last else None
    verification: list[Json] | None = None
    if message.done:
        citations = message.done.citations
        verification = to_rows(message.done.verification)
    else:
        # Use the stored labels of all sources, because some sources may have been deleted meanwhile.
        message_id = UUID(message.message_id)
        labels = Message.objects.filter(pk=message_id).values_list("labels", flat=True).first()
        citations = cited_labels(message.text, labels or ())
        if message.text:
            # Read with all rights, because housekeeping has no reader. The result reveals nothing beyond the
            # text.
            with reading_everything():
                sources = list(Source.objects.filter(message=message_id).order_by("rank"))
            verification = to_rows(verify_or_log(message.text, sources, run_id) or ())
    return AnswerOutcome(
        state=Message.State.COMPLETE if message.done else Message.State(end.state),
        content=message.text,
        finish_reason=message.done.finish_reason if message.done else "",
        error_code="" if message.done or isinstance(end, Finished) else end.code,
        citations=citations,
        followups=result.followups if last else (),
        usage={"prompt": usage.prompt, "completion": usage.completion} if usage else None,
        verification=verification,
        grade=message.done.grade if message.done else "",
    )
