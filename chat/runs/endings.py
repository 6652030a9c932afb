"""Ending an answer: the message takes the whole text, and nothing ends twice."""

from collections.abc import Sequence
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from chat.citations import cited_labels
from chat.events import Event, Failed, Finished, Whole
from chat.models import Run
from history import recording
from history.models import Conversation, Message, Source
from history.recording import Closing

from . import journal
from .journal import Batch


def close(run_id: UUID, rest: Batch, every: Sequence[Event]) -> bool:
    """Write the last events, the message and the end of the run, all or nothing.

    `rest` is what the journal does not have yet, ending with Finished or Failed; `every` is all events.
    False where another process has closed the run already.
    """
    with transaction.atomic():
        run = Run.objects.select_for_update().unfinished().filter(pk=run_id).first()
        if run is None:
            return False
        journal.flush([run_id], [rest])
        _close(run, fold(every))
        return True


def close_expired(conversation: Conversation | None = None, run_id: UUID | None = None) -> int:
    """Mark as interrupted what a dead process has left, with the text that had reached the journal.

    Of the whole site, of one conversation, or one run. Returns how many.
    """
    expired = Run.objects.unfinished().filter(lease_until__lt=timezone.now())
    if conversation is not None:
        expired = expired.filter(conversation=conversation)
    if run_id is not None:
        expired = expired.filter(pk=run_id)
    closed = 0
    for dead in expired.values_list("pk", flat=True):
        closed += _close_dead(dead)
    return closed


def expire_all() -> int:
    """Declare every unfinished run dead: for a start when no other process can be at work."""
    Run.objects.unfinished().update(lease_until=timezone.now())
    return close_expired()


def fold(every: Sequence[Event]) -> Whole:
    whole = Whole()
    for event in every:
        whole.add(event)
    return whole


@transaction.atomic
def _close_dead(run_id: UUID) -> int:
    # Skipping locked rows: whoever holds one is closing it, or is alive and renewing its lease.
    run = (
        Run.objects.unfinished()
        .filter(pk=run_id, lease_until__lt=timezone.now())
        .select_for_update(skip_locked=True, of=("self",))
        .select_related("answer")
        .first()
    )
    if run is None:
        return 0
    numbered = journal.read(run_id)
    end = Failed(Message.State.INTERRUPTED, "interrupted", run.answer.request_id)
    every = [*(event for _, event in numbered), end]
    last = numbered[-1][0] if numbered else 0
    journal.append([Batch(run_id, last + 1, [end])])
    _close(run, fold(every))
    return 1


def _close(run: Run, whole: Whole) -> None:
    assert whole.end is not None
    end = whole.end
    citations = whole.done.citations if whole.done else _citations(run.answer_id, whole.text)
    recording.close_answer(
        run.answer_id,
        Closing(
            state=Message.State(end.state),
            content=whole.text,
            finish_reason=whole.done.finish_reason if whole.done else "",
            error_code="" if isinstance(end, Finished) else end.code,
            citations=citations,
            followups=whole.followups,
            usage={"prompt": whole.usage.prompt, "completion": whole.usage.completion}
            if whole.usage
            else None,
        ),
    )
    Run.objects.filter(pk=run.pk).update(finished_at=timezone.now())


def _citations(answer_id: UUID, text: str) -> tuple[str, ...]:
    """What a text that never came to its end cites."""
    labels = Source.objects.filter(message=answer_id).values_list("label", flat=True)
    return cited_labels(text, labels)
