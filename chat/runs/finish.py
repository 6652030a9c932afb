"""Ending an answer: the message takes the whole text, and nothing ends twice.

Leases go by the database's clock alone: those of the machines may differ.
"""

import time
from collections.abc import Iterable, Sequence
from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models.functions import Now

from chat.citations import cited_labels
from chat.events import Event, Failed, Finished, Json, Spoken, Whole
from chat.models import Lease
from chat.statements import to_rows
from chat.verification import verify
from chatsite.db.availability import absence
from chatsite.db.threads import reading_everything
from history import recording
from history.models import Conversation, Message, Source
from history.recording import Closing

from . import (
    journal,
    notifications,
)
from .journal import (
    Batch,
    Ended,
)

# More than a process can tell its own readers before the journal has it: the end of an answer whose process
# died has a number that none of them has seen.
UNWRITTEN = 1_000_000
# Between two looks at a lease that ran out, of which the second takes its process for dead: where PostgreSQL
# or its clock stood still, all leases have run out at once, and whoever lives renews theirs within this time.
SECOND_LOOK_SECONDS = 1.0
LONG_UP = "SELECT pg_postmaster_start_time() < now() - make_interval(secs => %s)"

_suspected: dict[tuple[UUID, datetime], float] = {}  # leases that this process saw run out, and when first


def close(run_id: UUID, rest: Batch, every: Sequence[Event]) -> bool:
    """Write the last events, the message and the end of the run, all or nothing.

    `rest` is what the journal does not have yet, ending with Finished or Failed; `every` is all events.
    False where another process has closed the run already.
    """
    with transaction.atomic():
        ended = journal.end_run(rest)
        if ended:
            _close(ended, fold(every))
        return ended is not None


def settled(run_id: UUID, rest: Batch, every: Sequence[Event]) -> Finished | Failed:
    """As :func:`close`; gives the end that stands.

    That may be another process's, which took us for dead, or ours, of which PostgreSQL's word was lost.
    """
    end = every[-1]
    assert isinstance(end, Finished | Failed)
    return end if close(run_id, rest, every) else _standing(run_id)


def _standing(run_id: UUID) -> Finished | Failed:
    last = Message.objects.filter(exchange=run_id).order_by("position").last()
    if last is None:  # its conversation is gone
        return Failed(Message.State.INTERRUPTED, "interrupted")
    if last.error_code:
        return Failed(last.state, last.error_code, last.request_id)
    return Finished(last.state)


def close_expired(conversation: Conversation | None = None, run_id: UUID | None = None) -> int:
    """Mark as interrupted what a dead process has left, with the text that had reached the journal.

    Of the whole site, of one conversation, or one run. Returns how many: none at the first look, and none
    while PostgreSQL runs for less than a lease, in which living processes renew theirs.
    """
    expired = Lease.objects.filter(until__lt=Now())
    if conversation is not None:
        expired = expired.filter(run__conversation=conversation)
    if run_id is not None:
        expired = expired.filter(pk=run_id)
    leases = list(expired.values_list("pk", "until"))
    if conversation is None and run_id is None:
        for renewed in set(_suspected).difference(leases):  # a copy: other threads add to it
            _suspected.pop(renewed, None)
    dead = _seen_before(leases)
    return _close_all(dead) if dead and _long_up() else 0


def look_again() -> bool:
    """Whether a second look at some is due."""
    return bool(_suspected)


def _seen_before(leases: Iterable[tuple[UUID, datetime]]) -> list[UUID]:
    """The runs of those leases that had run out a while ago already, and were not renewed since."""
    now = time.monotonic()
    first = [(lease[0], _suspected.setdefault(lease, now)) for lease in leases]
    return [run_id for run_id, seen in first if seen < now and now - seen >= SECOND_LOOK_SECONDS]


def expire_all() -> int:
    """Declare every unfinished run dead: for a start when no other process can be at work."""
    Lease.objects.update(until=Now())
    return _close_all(list(Lease.objects.values_list("pk", flat=True)))


def _close_all(dead: Sequence[UUID]) -> int:
    return sum(_close_dead(run_id) for run_id in dead)


def _long_up() -> bool:
    """Whether PostgreSQL was there for a whole lease, and not missed here: else nobody could renew one."""
    if absence.within(settings.LEASE_SECONDS):
        return False
    with connection.cursor() as cursor:
        cursor.execute(LONG_UP, [settings.LEASE_SECONDS])
        return bool(cursor.fetchone()[0])


def fold(every: Sequence[Event]) -> Whole:
    whole = Whole()
    for event in every:
        whole.add(event)
    return whole


@transaction.atomic
def _close_dead(run_id: UUID) -> int:
    # Skipping locked rows: whoever holds one is closing the run, or is alive and renewing its lease.
    lease = (
        Lease.objects.filter(pk=run_id, until__lt=Now())
        .select_for_update(skip_locked=True, of=("self",))
        .select_related("run__answer")
        .first()
    )
    if lease is None:
        return 0
    numbered = journal.read(run_id)
    end = Failed(Message.State.INTERRUPTED, "interrupted", lease.run.answer.request_id)
    every = [*(event for _, event in numbered), end]
    last = numbered[-1][0] if numbered else 0
    notifications.publish_on_commit(notifications.messages("news", [run_id, lease.run.conversation_id]))
    return int(close(run_id, Batch(run_id, last + UNWRITTEN, [end]), every))


def _close(ended: Ended, whole: Whole) -> None:
    """Each message of the exchange gets its text; those that were never begun end with it."""
    assert whole.end is not None
    spoken = list(whole.spoken) or [Spoken("")]
    for each in spoken:
        # A journal that lost its beginning does not name the first message: it is the run's own.
        each.message_id = each.message_id or str(ended.answer_id)
    told = {UUID(each.message_id) for each in spoken}
    spoken += [Spoken(str(message_id)) for message_id in ended.unfinished if message_id not in told]
    closings = {UUID(each.message_id): _closing(each, whole, whole.end) for each in spoken}
    recording.close_answers(ended.owner_id, closings)


def _closing(spoken: Spoken, whole: Whole, end: Finished | Failed) -> Closing:
    """How one message ended: a whole text is complete, whatever became of those after it."""
    last = not whole.spoken or spoken is whole.spoken[-1]
    whole_text = spoken.done is not None
    usage = whole.usage if last else None
    return Closing(
        state=Message.State.COMPLETE if whole_text else Message.State(end.state),
        content=spoken.text,
        finish_reason=spoken.done.finish_reason if spoken.done else "",
        error_code="" if whole_text or isinstance(end, Finished) else end.code,
        citations=spoken.done.citations if spoken.done else _citations(UUID(spoken.message_id), spoken.text),
        followups=whole.followups if last else (),
        usage={"prompt": usage.prompt, "completion": usage.completion} if usage else None,
        verification=to_rows(spoken.done.verification) if spoken.done else _verified(spoken),
    )


def _verified(spoken: Spoken) -> list[Json] | None:
    """The statements of a text that never came to its end."""
    if not spoken.text:
        return None
    # Its writer may be gone, and its owner with it: the result says nothing that the text does not.
    with reading_everything():
        sources = list(Source.objects.filter(message=UUID(spoken.message_id)).order_by("rank"))
    return to_rows(verify(spoken.text, sources))


def _citations(answer_id: UUID, text: str) -> tuple[str, ...]:
    """What a text that never came to its end cites."""
    # Not of the sources that are left: one may have been deleted while the answer was written from it.
    labels = Message.objects.filter(pk=answer_id).values_list("labels", flat=True).first()
    return cited_labels(text, labels or ())
