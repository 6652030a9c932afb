"""Follows a run: from memory, from the journal, or replayed from its stored messages."""

import asyncio
import dataclasses
import time
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing, nullcontext
from itertools import islice
from uuid import UUID

from django.conf import settings

from chat.citations import MAX_CITATION_LENGTH
from chat.engine.page_images import of_sources
from chat.errors import Refused
from chat.events import (
    TERMINAL,
    ContextReady,
    Event,
    Failed,
    Finished,
    FollowUps,
    MessageDone,
    MessageStarted,
    Rechecked,
    RunResult,
    Started,
    TextDelta,
    Usage,
    thought_from_json,
    verified_from_json,
)
from chat.llm import configured_model
from chat.models import Run
from chat.permissions import may_see_thoughts
from chat.sources import SourceView
from chat.statements import Edit, Statement, after_edits, from_rows
from chatsite.accounts.principal import (
    Principal,
    still_valid,
)
from chatsite.db.retry import retry_until_available
from chatsite.db.threads import (
    in_database,
    reading_as,
)
from history import recording
from history.citation_text import removed, without
from history.models import Message
from history.withheld import withheld_labels, without_names

from . import (
    finish,
    journal,
    notifications,
)
from .active import (
    MAX_EVENTS,
    MAX_TEXT,
    ActiveRun,
    Numbered,
    catch_up_lock,
    coalesce,
    parts_of,
)
from .manager import run_manager
from .revalidation import access_revalidator


def from_messages(run: Run) -> list[Event]:
    """The events of an ended run, reconstructed from its messages, without sources."""
    messages = list(Message.objects.filter(run_id=run.pk).order_by("position"))
    first, last = messages[0], messages[-1]
    events: list[Event] = [
        Started(
            run_id=str(run.pk),
            conversation_id=str(run.conversation_id),
            question_id=str(run.question_id),
            answer_id=str(first.pk),
            created_at=recording.timestamp(first.created_at),
            model=configured_model().name,
        )
    ]
    for message in messages:
        if message.agent_name:
            created = recording.timestamp(message.created_at)
            events.append(MessageStarted(str(message.pk), message.agent_name, created))
        thoughts = tuple(thought_from_json(thought) for thought in message.thoughts)
        verified = verified_from_json(message.verified)
        events.append(ContextReady((), thoughts, str(message.pk), verified=verified))
        events += [TextDelta(piece) for piece in _pieces(message.content)]
        if message.finish_reason:
            verification = from_rows(message.verification or ())
            citations = tuple(message.citations)
            events.append(MessageDone(message.finish_reason, citations, verification, message.grade))
    if last.followups:
        events.append(FollowUps(tuple(last.followups)))
    if last.usage:
        events.append(Usage(last.usage["prompt"], last.usage["completion"]))
    if last.error_code:
        events.append(Failed(last.state, last.error_code, last.request_id))
    else:
        events.append(Finished(last.state))
    return events


def _pieces(text: str) -> Iterator[str]:
    """Split a text into pieces of limited length, but not within a citation."""
    start = 0
    while start < len(text):
        end = start + MAX_TEXT
        opened = text.rfind("[", max(start + 1, end - MAX_CITATION_LENGTH), end) if end < len(text) else -1
        if opened >= 0 and "]" not in text[opened:end]:
            end = opened
        yield text[start:end]
        start = end


Part = Sequence[Numbered]

REFRESH_SECONDS = 1.0  # seconds between checks for sources that a reader may no longer open
MAX_READ = 2_000  # events of the journal in one read


async def follow(principal: Principal, run_id: UUID, after: int = 0) -> AsyncGenerator[Numbered, None]:
    """Yield the events numbered above `after`, then new ones, up to Finished or Failed.

    For a reader that has fallen behind, consecutive texts are merged. If the journal of an ended run was
    purged, the run is replayed from its messages, from number 1, whatever `after` is. Raises
    Refused("answer_not_found") for another person's run, and as soon as the caller's account, session or key
    is no longer valid; raises Refused("interrupted") if this process ends while another one is still
    executing the run. Iterate under `aclosing`.
    """
    async with aclosing(watch(principal, run_id, after)) as stream:
        async for part in stream:
            for item in part:
                yield item


async def watch(
    principal: Principal,
    run_id: UUID,
    after: int = 0,
    *,
    boundary: int = 0,
    replay_purged: bool = True,
    withhold_names: bool = True,
) -> AsyncGenerator[Part, None]:
    """Like :func:`follow`, but yields lists of events; an empty one after a second without events.

    Texts are not merged across event number `boundary`. Without `replay_purged`, a run whose journal was
    purged yields only its last event, with that event's original number, even if this is not above `after`.
    Events do not name sources that the reader may not open now; callers that remove these names themselves
    set `withhold_names` to False.
    """
    active = run_manager().active.get(run_id)
    withheld = _Withheld(principal, withhold_names=withhold_names, active=active)
    if active:
        if after or not active.was_just_accepted_for(principal):
            await withheld.refresh(await in_database(_conversation, principal, run_id), repeat=False)
        source = _from_memory(active, after, boundary)
    else:
        run = await in_database(_run, principal, run_id)
        await withheld.refresh(run.conversation_id)
        source = _from_journal(principal, run, after, boundary, replay_purged=replay_purged)
    async with aclosing(source) as stream:
        with access_revalidator().watch(principal) as access:
            async for part in stream:
                # Check again, because a slow reader may have lost access before the next part.
                await access.check()
                shown = await withheld.part(part)
                if shown and isinstance(shown[-1][1], TERMINAL):
                    await _check_stopped(principal, shown[-1][1])
                    if withhold_names and _may_be_withdrawn(shown[-1][1], active):
                        shown = [*shown[:-1], await _with_remaining(principal, run_id, shown[-1])]
                yield shown


async def _check_stopped(principal: Principal, end: Finished | Failed) -> None:
    """Raise Refused if a run was stopped and its reader has lost access.

    Disabling an account also stops its runs. The end of such a run may arrive before the next check of all
    readers' access, and some protocols send all sources together with the end.
    """
    stopped = end.state == Message.State.STOPPED
    if stopped and not await retry_until_available(still_valid, principal):
        raise Refused("answer_not_found")


def _may_be_withdrawn(event: Event, active: ActiveRun | None) -> bool:
    """Whether this end may be due to a withdrawn source; only the process of the run knows for certain."""
    return isinstance(event, Failed) and event.code == "interrupted" and (active is None or active.withdrawn)


async def _with_remaining(principal: Principal, run_id: UUID, ending: Numbered) -> Numbered:
    """The end of a run, together with the messages as the reader may still see them."""
    number, end = ending
    assert isinstance(end, Failed)
    remaining = await run_so_far(principal, run_id)
    return number, dataclasses.replace(end, remaining=tuple(remaining.messages))


async def wait_for_result(principal: Principal, run_id: UUID) -> RunResult:
    """Wait for the end of a run and return its result."""
    result = RunResult()
    async with aclosing(follow(principal, run_id)) as numbered:
        async for _, event in numbered:
            result.add(event)
    return result


async def _from_memory(active: ActiveRun, after: int, boundary: int) -> AsyncGenerator[Part, None]:
    """Yield the parts of a run, with an empty part after about a second without events.

    Empty parts let the caller check access.
    """
    position = after
    parts: Iterable[Part]
    while True:
        behind = len(active.events) - position > MAX_EVENTS
        if behind:
            # Lazy, so that a slow reader holds only one part in memory.
            parts = coalesce(enumerate(islice(active.events, position, None), start=position + 1), boundary)
        else:
            parts = parts_of(list(enumerate(active.events[position:], start=position + 1)), boundary)
        for part in parts:
            if behind:
                await _own_turn()
            position, last = part[-1]
            yield part
            if isinstance(last, TERMINAL):
                return
        if position < len(active.events):
            continue
        if isinstance(active.events[-1], TERMINAL):
            yield [(len(active.events), active.events[-1])]
            return
        await active.wait_for_events()
        if position >= len(active.events):
            yield []


async def _own_turn() -> None:
    async with catch_up_lock():
        await asyncio.sleep(0)


async def _from_journal(
    principal: Principal, run: Run, after: int, boundary: int, *, replay_purged: bool
) -> AsyncGenerator[Part, None]:
    position, behind, hub = after, False, notifications.hub()
    with hub.waiting(run.pk) as waiter:
        while True:
            async with catch_up_lock() if behind else nullcontext():
                parts, ended = await retry_until_available(_read_new, run.pk, position, boundary)
            behind = bool(parts) and parts[-1][-1][0] - position > MAX_EVENTS
            for part in parts:
                if len(parts) > 1:
                    await _own_turn()
                position, last = part[-1]
                yield part
                if isinstance(last, TERMINAL):
                    return
            if parts:
                continue
            if ended:
                break
            if hub.closing:
                raise Refused("interrupted")
            yield []
            await waiter.wait()
    # The run has ended and its journal was purged, but its messages are complete.
    events = await retry_until_available(from_messages, run)
    if not replay_purged:
        last_number = await retry_until_available(last_event, principal, run.pk)
        yield [(last_number or position, events[-1])]
        return
    for part in coalesce(enumerate(events, start=1), boundary=0):
        await _own_turn()
        yield part


async def run_so_far(principal: Principal, run_id: UUID) -> RunResult:
    """The result of an ended run, from its messages.

    Names of sources that the caller may not open are removed.
    """
    run = await retry_until_available(_run, principal, run_id)
    return await _visible_result(principal, run, await retry_until_available(from_messages, run))


async def progress(principal: Principal, run_id: UUID) -> tuple[Run, RunResult]:
    """A run and its result; before its end, the result contains only the first event.

    Raises Refused.
    """
    run = await retry_until_available(_run, principal, run_id)
    events = await retry_until_available(from_messages, run)
    if run.finished_at is None:
        return run, finish.fold(events[:1])
    return run, await _visible_result(principal, run, events)


async def _visible_result(principal: Principal, run: Run, events: Iterable[Event]) -> RunResult:
    withheld = _Withheld(principal)
    await withheld.refresh(run.conversation_id)
    return finish.fold([await withheld.event(event) for event in events])


def _run(principal: Principal, run_id: UUID) -> Run:
    run = Run.objects.owned_by(principal).filter(pk=run_id).select_related("answer").first()
    if run is None or not still_valid(principal):
        raise Refused("answer_not_found")
    return run


def _conversation(principal: Principal, run_id: UUID) -> UUID:
    """The id of the run's conversation. Raises Refused like :func:`_run`."""
    rows = Run.objects.owned_by(principal).filter(pk=run_id)
    conversation = rows.values_list("conversation_id", flat=True).first()
    if conversation is None or not still_valid(principal):
        raise Refused("answer_not_found")
    return conversation


def last_event(principal: Principal, run_id: UUID) -> int | None:
    """The number of the event that ended a run; None before the end, 0 if unknown.

    Raises Refused.
    """
    run = _run(principal, run_id)
    return run.last_event if run.finished_at else None


def check_first_read(principal: Principal, run_id: UUID, after: int, *, from_journal: bool) -> None:
    """Read what the beginning of a stream needs, so that a refusal is still possible if that fails.

    Later, a stream waits for the database (:func:`retry_until_available`), because it has no status any more.
    """
    withheld_labels(principal, _conversation(principal, run_id))
    if from_journal:
        journal.read(run_id, after, 1)


def _read_new(run_id: UUID, after: int, boundary: int) -> tuple[list[Part], bool]:
    """New events, and whether the run has ended. Closes a run whose process died."""
    # Queried before the events: if the run ends between the two queries, its last events are read below.
    ended = not Run.objects.unfinished().filter(pk=run_id).exists()
    numbered = journal.read(run_id, after, MAX_READ)
    if not ended and not numbered:
        finish.close_expired(run_id=run_id)
    return list(parts_of(numbered, boundary)), ended


class _Withheld:
    """Removes the names of sources that a reader may not open now.

    The process that executes a run ends it when a source is withdrawn, so for readers in that process (with
    `active`) no check is repeated. For other readers, sources are checked again every second.
    """

    def __init__(
        self, principal: Principal, *, withhold_names: bool = True, active: ActiveRun | None = None
    ) -> None:
        self._principal = principal
        self._active = active
        self._withhold_names = withhold_names
        self._conversation: UUID | None = None  # its labels are refreshed every second, unless None
        self._labels: frozenset[str] = frozenset()
        self._refreshed_at = 0.0
        self._length = 0  # length of the message's stored text so far
        self._edits: list[Edit] = []  # the edits that remove names from this text for this reader

    async def refresh(self, conversation: UUID, *, repeat: bool = True) -> None:
        self._conversation = conversation if repeat else None
        # A stream outlives its request, so set the reader for row-level security again.
        with reading_as(self._principal.user_id):
            self._labels = await retry_until_available(withheld_labels, self._principal, conversation)
        self._refreshed_at = time.monotonic()

    async def part(self, part: Part) -> Part:
        if part and self._conversation and time.monotonic() - self._refreshed_at > REFRESH_SECONDS:
            await self.refresh(self._conversation)
        if not self._labels and not any(isinstance(event, ContextReady) for _, event in part):
            return part
        return [(number, await self.event(event)) for number, event in part]

    async def event(self, event: Event) -> Event:
        if isinstance(event, ContextReady):
            self._length, self._edits = 0, []
            filtered = await self._with_sources(event)
            self._labels |= {source.label for source in event.sources} - {
                each.label for each in filtered.sources
            }
            thoughts = tuple(
                dataclasses.replace(
                    thought,
                    description=without_names(thought.description, self._labels),
                    props=without_names(thought.props, self._labels),
                )
                for thought in filtered.thoughts
            )
            return dataclasses.replace(filtered, thoughts=thoughts)
        if not self._labels or not self._withhold_names:
            return event
        match event:
            case TextDelta(text):
                left_out = removed(text, self._labels)
                self._edits += [(start + self._length, end + self._length, 0) for start, end in left_out]
                self._length += len(text)
                return TextDelta(without(text, self._labels))
            case MessageDone(reason, citations):
                cited = tuple(label for label in citations if label not in self._labels)
                grade = event.grade if len(cited) == len(citations) else ""
                return MessageDone(reason, cited, self._verification(event.verification), grade)
            case Rechecked(verification):
                return Rechecked(self._verification(verification))
            case FollowUps():
                return FollowUps(())  # they can reveal the subject of a withheld source
        return event

    async def _with_sources(self, event: ContextReady) -> ContextReady:
        """The event with the sources that the reader may open now."""
        sources, seen = event.sources, True
        # A stream outlives its request, so set the reader for row-level security again.
        with reading_as(self._principal.user_id):
            if not self._sources_are_fresh():
                sources, seen = await retry_until_available(self._visible, UUID(event.message_id))
            images = await of_sources(self._principal, sources)
        return dataclasses.replace(
            event, sources=sources, images=images, thoughts=event.thoughts if seen else ()
        )

    def _visible(self, message_id: UUID) -> tuple[tuple[SourceView, ...], bool]:
        """The sources that the reader may open now, and whether the reader may see the steps."""
        return journal.visible_sources(self._principal, message_id), may_see_thoughts(self._principal)

    def _sources_are_fresh(self) -> bool:
        """Whether the search has just checked this reader's rights, and steps need no permission."""
        if self._active is None or settings.THOUGHTS_RESTRICTED:
            return False
        return self._active.was_just_accepted_for(self._principal)

    def _verification(self, statements: Sequence[Statement]) -> tuple[Statement, ...]:
        """The statements, with positions in this reader's text.

        Empty if this stream did not begin before the text.
        """
        if statements and statements[-1].end > self._length:
            return ()
        place = after_edits(self._edits)
        return tuple(statement.placed(place).without(self._labels) for statement in statements)
