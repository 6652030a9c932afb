"""An exchange that has ended, told once more from its messages."""

import asyncio
import dataclasses
import time
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing, nullcontext
from itertools import islice
from uuid import UUID

from chat.citations import HELD_AT_MOST
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
    Started,
    TextDelta,
    Usage,
    Whole,
    thought_from_json,
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
from chatsite.db.retry import patiently
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
    LONGEST,
    MOST_AT_ONCE,
    Live,
    Numbered,
    in_parts,
    joined,
    turn,
)
from .manager import generations
from .revalidation import guards


def retold(run: Run) -> list[Event]:
    """Its events, without the sources, and with its texts in pieces of some length."""
    messages = list(Message.objects.filter(exchange=run.pk).order_by("position"))
    first, last = messages[0], messages[-1]
    told: list[Event] = [
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
        told += _message(message)
    if last.followups:
        told.append(FollowUps(tuple(last.followups)))
    if last.usage:
        told.append(Usage(last.usage["prompt"], last.usage["completion"]))
    if last.error_code:
        told.append(Failed(last.state, last.error_code, last.request_id))
    else:
        told.append(Finished(last.state))
    return told


def _pieces(text: str) -> Iterator[str]:
    """Of some length each, and cut through no citation: one is told whole or not at all."""
    start = 0
    while start < len(text):
        end = start + LONGEST
        opened = text.rfind("[", max(start + 1, end - HELD_AT_MOST), end) if end < len(text) else -1
        if opened >= 0 and "]" not in text[opened:end]:
            end = opened
        yield text[start:end]
        start = end


def _message(message: Message) -> list[Event]:
    told: list[Event] = []
    if message.agent_name:
        created = recording.timestamp(message.created_at)
        told.append(MessageStarted(str(message.pk), message.agent_name, created))
    thoughts = tuple(thought_from_json(thought) for thought in message.thoughts)
    told.append(ContextReady((), thoughts, str(message.pk)))
    told += [TextDelta(piece) for piece in _pieces(message.content)]
    if message.finish_reason:
        verification = from_rows(message.verification or ())
        told.append(MessageDone(message.finish_reason, tuple(message.citations), verification))
    return told


Part = Sequence[Numbered]

LOOK_SECONDS = 1.0  # between two looks at what a reader may not open any more
MOST_READ = 2_000  # events of the journal at a time


async def follow(principal: Principal, run_id: UUID, after: int = 0) -> AsyncGenerator[Numbered, None]:
    """The events with a number above `after`, then what comes, up to Finished or Failed.

    A reader who is behind is told texts that follow each other as one. After the end, when the journal is
    gone, the exchange is told again from its messages and begins with number 1, whatever `after` was. Raises
    Refused("answer_not_found") for a run that is not the caller's, and as soon as the caller's account,
    session or key is no longer valid; Refused("interrupted") where this process ends before the answer of
    another does. Iterate under `aclosing`.
    """
    async with aclosing(watch(principal, run_id, after)) as news:
        async for part in news:
            for item in part:
                yield item


async def watch(
    principal: Principal,
    run_id: UUID,
    after: int = 0,
    *,
    apart: int = 0,
    retell: bool = True,
    names_gone: bool = False,
) -> AsyncGenerator[Part, None]:
    """As :func:`follow`, some of what is there at a time; nothing for each second or so without news.

    No text that was joined reaches over the number `apart`. Without `retell`, a run whose journal is gone is
    only told its end, with the number that it had. The end is told in any case, also to whoever says that
    they have it.

    No event names a source that the reader may not open (any more), unless `names_gone`: a page draws such
    citations itself, without the name.
    """
    withheld = _Withheld(principal, shows_itself=names_gone)
    if live := generations().live.get(run_id):
        if after or not live.just_begun_by(principal):
            await withheld.look(await in_database(_conversation, principal, run_id), again=False)
        source = _from_memory(live, after, apart)
    else:
        run = await in_database(_run, principal, run_id)
        await withheld.look(run.conversation_id)
        source = _from_journal(principal, run, after, apart, retell=retell)
    async with aclosing(source) as news:
        with guards().guarding(principal) as guard:
            async for part in news:
                # A reader may take long over each part, and its right may end meanwhile.
                await guard.check()
                yield await withheld.part(part)


async def whole(principal: Principal, run_id: UUID) -> Whole:
    """The whole exchange, once it has ended."""
    result = Whole()
    async with aclosing(follow(principal, run_id)) as numbered:
        async for _, event in numbered:
            result.add(event)
    return result


async def _from_memory(live: Live, after: int, apart: int) -> AsyncGenerator[Part, None]:
    """An empty part stands for a second or so without news, so that the guard gets its turn."""
    position = after
    while True:
        behind = len(live.events) - position > MOST_AT_ONCE
        for part in _fresh(live, position, apart, behind=behind):
            if behind:
                await _own_turn()
            position, last = part[-1]
            yield part
            if isinstance(last, TERMINAL):
                return
        if position < len(live.events):
            continue
        if isinstance(live.events[-1], TERMINAL):
            yield [(len(live.events), live.events[-1])]
            return
        await live.news()
        if position >= len(live.events):
            yield []


def _fresh(live: Live, after: int, apart: int, *, behind: bool) -> Iterable[Part]:
    """Taken only as they are told: whoever is behind, and slow, holds one part."""
    if behind:
        return joined(enumerate(islice(live.events, after, None), start=after + 1), apart)
    return in_parts(list(enumerate(live.events[after:], start=after + 1)), apart)


async def _own_turn() -> None:
    async with turn():
        await asyncio.sleep(0)


async def _from_journal(
    principal: Principal, run: Run, after: int, apart: int, *, retell: bool
) -> AsyncGenerator[Part, None]:
    position, behind, hub = after, False, notifications.hub()
    with hub.waiting(run.pk) as news:
        while True:
            async with turn() if behind else nullcontext():
                parts, ended = await patiently(_look, run.pk, position, apart)
            behind = bool(parts) and parts[-1][-1][0] - position > MOST_AT_ONCE
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
            if hub.left:
                raise Refused("interrupted")
            yield []
            await news.wait()
    async with aclosing(_from_messages(principal, run, position, retell=retell)) as parts_told:
        async for part in parts_told:
            yield part


async def _from_messages(
    principal: Principal, run: Run, after: int, *, retell: bool
) -> AsyncGenerator[Part, None]:
    events = await patiently(retold, run)
    if not retell:
        last = await patiently(last_event, principal, run.pk)
        yield [(last or after, events[-1])]
        return
    for part in joined(enumerate(events, start=1), apart=0):
        await _own_turn()
        yield part


async def told(principal: Principal, run_id: UUID) -> Whole:
    """An exchange that has ended, from its messages, with the sources that the caller may open now."""
    run = await patiently(_run, principal, run_id)
    events = await patiently(retold, run)
    withheld = _Withheld(principal)
    await withheld.look(run.conversation_id)
    return finish.fold([await withheld.event(event) for event in events])


async def progress(principal: Principal, run_id: UUID) -> tuple[Run, Whole]:
    """A run, and its exchange if it has ended: before that, only who answers. Raises Refused."""
    run = await patiently(_run, principal, run_id)
    events = await patiently(retold, run)
    if run.finished_at is None:
        return run, finish.fold(events[:1])
    withheld = _Withheld(principal)
    await withheld.look(run.conversation_id)
    return run, finish.fold([await withheld.event(event) for event in events])


def _run(principal: Principal, run_id: UUID) -> Run:
    run = Run.objects.owned_by(principal).filter(pk=run_id).select_related("answer").first()
    if run is None or not still_valid(principal):
        raise Refused("answer_not_found")
    return run


def _conversation(principal: Principal, run_id: UUID) -> UUID:
    """As :func:`_run`, where nothing else of the row is wanted."""
    rows = Run.objects.owned_by(principal).filter(pk=run_id)
    conversation = rows.values_list("conversation_id", flat=True).first()
    if conversation is None or not still_valid(principal):
        raise Refused("answer_not_found")
    return conversation


def last_event(principal: Principal, run_id: UUID) -> int | None:
    """The number of the event that ended it: None before the end, 0 where it is not known. Raises Refused."""
    run = _run(principal, run_id)
    return run.last_event if run.finished_at else None


def _look(run_id: UUID, after: int, apart: int) -> tuple[list[Part], bool]:
    """New events, and whether the run has ended; one whose process died is closed on the way."""
    # Asked first: an end that is stored in between shows its events in the read that follows.
    ended = not Run.objects.unfinished().filter(pk=run_id).exists()
    numbered = journal.read(run_id, after, MOST_READ)
    if not ended and not numbered:
        finish.close_expired(run_id=run_id)
    return list(in_parts(numbered, apart)), ended


class _Withheld:
    """What one reader is not told of a conversation: names of sources that they may not open (any more).

    Whoever follows a running answer is looked after by its writer, which ends it when a source is withdrawn.
    What comes later, from the journal or from the messages, is told by a look that is a second old at most.
    """

    def __init__(self, principal: Principal, *, shows_itself: bool = False) -> None:
        self._principal = principal
        self._shows_itself = shows_itself
        self._conversation: UUID | None = None  # whose labels are looked up again
        self._labels: frozenset[str] = frozenset()
        self._looked = 0.0
        self._length = 0  # of the message's text so far, as it is stored
        self._edits: list[Edit] = []  # what is left out of it

    async def look(self, conversation: UUID, *, again: bool = True) -> None:
        self._conversation = conversation if again else None
        # A stream outlives the request that asked for it, and its own reader with it.
        with reading_as(self._principal.user_id):
            self._labels = await patiently(withheld_labels, self._principal, conversation)
        self._looked = time.monotonic()

    async def part(self, part: Part) -> Part:
        if part and self._conversation and time.monotonic() - self._looked > LOOK_SECONDS:
            await self.look(self._conversation)
        if not self._labels and not any(isinstance(event, ContextReady) for _, event in part):
            return part
        return [(number, await self.event(event)) for number, event in part]

    async def event(self, event: Event) -> Event:
        if isinstance(event, ContextReady):
            self._length, self._edits = 0, []
            told = await _with_sources(self._principal, event)
            self._labels |= {source.label for source in event.sources} - {each.label for each in told.sources}
            thoughts = tuple(
                dataclasses.replace(
                    thought,
                    description=without_names(thought.description, self._labels),
                    props=without_names(thought.props, self._labels),
                )
                for thought in told.thoughts
            )
            return dataclasses.replace(told, thoughts=thoughts)
        if not self._labels or self._shows_itself:
            return event
        match event:
            case TextDelta(text):
                left_out = removed(text, self._labels)
                self._edits += [(start + self._length, end + self._length, 0) for start, end in left_out]
                self._length += len(text)
                return TextDelta(without(text, self._labels))
            case MessageDone(reason, citations):
                cited = tuple(label for label in citations if label not in self._labels)
                return MessageDone(reason, cited, self._verification(event.verification))
            case FollowUps():
                return FollowUps(())  # they may say what the source was about
        return event

    def _verification(self, statements: Sequence[Statement]) -> tuple[Statement, ...]:
        """In the text as this reader has it; nothing for one who has not followed it from its beginning."""
        if statements and statements[-1].end > self._length:
            return ()
        place = after_edits(self._edits)
        return tuple(statement.placed(place).without(self._labels) for statement in statements)


async def _with_sources(principal: Principal, event: ContextReady) -> ContextReady:
    # A stream outlives the request that asked for it, and its own reader with it.
    with reading_as(principal.user_id):
        sources, seen = await patiently(_visible, principal, UUID(event.message_id))
        images = await of_sources(principal, sources)
    thoughts = event.thoughts if seen else ()
    return dataclasses.replace(event, sources=sources, images=images, thoughts=thoughts)


def _visible(principal: Principal, message_id: UUID) -> tuple[tuple[SourceView, ...], bool]:
    """The sources that the reader may open now, and whether they may see the steps."""
    return journal.visible_sources(principal, message_id), may_see_thoughts(principal)
