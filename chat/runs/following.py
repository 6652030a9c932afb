"""Reading an answer, while it is written or afterwards, from whichever process has it."""

import dataclasses
from collections.abc import AsyncGenerator
from contextlib import aclosing
from uuid import UUID

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
    Thought,
    Usage,
    Whole,
)
from chat.llm import configured_model
from chat.models import Run
from chat.page_images import of_sources
from chat.patience import patiently
from chat.sources import SourceView
from chat.thought_rights import may_see_thoughts
from chatsite.accounts.principals import Principal, still_valid
from chatsite.database import in_database, reading_as
from history import recording
from history.models import Message

from . import endings, journal, wakeups
from .generating import generations
from .guarding import guards
from .live import Live

Numbered = tuple[int, Event]

MOST_AT_ONCE = 50  # events
MOST_HELD = 500  # events of the journal, of one reader, however long it takes over them


async def follow(principal: Principal, run_id: UUID, after: int = 0) -> AsyncGenerator[Numbered, None]:
    """The events with a number above `after`, then what comes, up to Finished or Failed.

    After the end, when the journal is gone, the exchange is told again from its messages and begins with
    number 1, whatever `after` was. Raises Refused("not_found") for a run that is not the caller's, and as
    soon as the caller's account, session or key is no longer valid. Iterate under `aclosing`.
    """
    async with aclosing(watch(principal, run_id, after)) as news:
        async for numbered in news:
            for item in numbered:
                yield item


async def watch(
    principal: Principal, run_id: UUID, after: int = 0, *, retell: bool = True
) -> AsyncGenerator[list[Numbered], None]:
    """As :func:`follow`, all that is there at a time; nothing for each second or so without news.

    Without `retell`, a run whose journal is gone is only told its end, with the number that it had. The end
    is told in any case, also to whoever says that they have it.
    """
    if live := generations().live.get(run_id):
        if not live.just_begun_by(principal):
            await in_database(_check, principal, run_id)
        source = _from_memory(live, after)
    else:
        run = await in_database(_run, principal, run_id)
        source = _from_journal(principal, run, after, retell=retell)
    async with aclosing(source) as news:
        with guards().guarding(principal) as guard:
            async for numbered in news:
                # In parts: a reader may take long over each event, and its right may end meanwhile.
                for start in range(0, len(numbered) or 1, MOST_AT_ONCE):
                    await guard.check()
                    part = numbered[start : start + MOST_AT_ONCE]
                    if any(isinstance(event, ContextReady) for _, event in part):
                        part = [(number, await _for_reader(principal, event)) for number, event in part]
                    yield part


async def whole(principal: Principal, run_id: UUID) -> Whole:
    """The whole exchange, once it has ended."""
    result = Whole()
    async with aclosing(follow(principal, run_id)) as numbered:
        async for _, event in numbered:
            result.add(event)
    return result


async def _from_memory(live: Live, after: int) -> AsyncGenerator[list[Numbered], None]:
    """An empty list stands for a second or so without news, so that the guard gets its turn."""
    position = after
    while True:
        if numbered := _numbered(live, position):
            position = numbered[-1][0]
            yield numbered
            if isinstance(numbered[-1][1], TERMINAL):
                return
        elif isinstance(live.events[-1], TERMINAL):
            yield [(len(live.events), live.events[-1])]
            return
        else:
            await live.news()
            if position >= len(live.events):
                yield []


def _numbered(live: Live, after: int) -> list[Numbered]:
    return list(enumerate(live.events[after : after + MOST_AT_ONCE], start=after + 1))


async def _from_journal(
    principal: Principal, run: Run, after: int, *, retell: bool
) -> AsyncGenerator[list[Numbered], None]:
    position = after
    with wakeups.hub().waiting(run.pk) as news:
        while True:
            numbered, ended = await patiently(_look, run.pk, position)
            if numbered:
                position = numbered[-1][0]
                yield numbered
                if isinstance(numbered[-1][1], TERMINAL):
                    return
                continue
            if ended:
                break
            yield []
            await news.wait()
    events = await patiently(_retell, run)
    if not retell:
        last = await patiently(last_event, principal, run.pk)
        yield [(last or after, events[-1])]
        return
    yield list(enumerate(events, start=1))


async def told(principal: Principal, run_id: UUID) -> Whole:
    """An exchange that has ended, from its messages, with the sources that the caller may open now."""
    run = await patiently(_run, principal, run_id)
    events = await patiently(_retell, run)
    return endings.fold([await _for_reader(principal, event) for event in events])


def _run(principal: Principal, run_id: UUID) -> Run:
    run = Run.objects.owned_by(principal).filter(pk=run_id).select_related("answer").first()
    if run is None or not still_valid(principal):
        raise Refused("not_found")
    return run


def _check(principal: Principal, run_id: UUID) -> None:
    """As :func:`_run`, where nothing of the row is wanted."""
    if not Run.objects.owned_by(principal).filter(pk=run_id).exists() or not still_valid(principal):
        raise Refused("not_found")


def last_event(principal: Principal, run_id: UUID) -> int | None:
    """The number of the event that ended it: None before the end, 0 where it is not known. Raises Refused."""
    run = _run(principal, run_id)
    return run.last_event if run.finished_at else None


def _look(run_id: UUID, after: int) -> tuple[list[Numbered], bool]:
    """New events, and whether the run has ended; one whose process died is closed on the way."""
    # Asked first: an end that is stored in between shows its events in the read that follows.
    ended = not Run.objects.unfinished().filter(pk=run_id).exists()
    numbered = journal.read(run_id, after, MOST_HELD)
    if not ended and not numbered:
        endings.close_expired(run_id=run_id)
    return numbered, ended


async def _for_reader(principal: Principal, event: Event) -> Event:
    return await _with_sources(principal, event) if isinstance(event, ContextReady) else event


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


def _retell(run: Run) -> list[Event]:
    """The exchange as its messages tell it."""
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
        told += _retold(message)
    if last.followups:
        told.append(FollowUps(tuple(last.followups)))
    if last.usage:
        told.append(Usage(last.usage["prompt"], last.usage["completion"]))
    if last.error_code:
        told.append(Failed(last.state, last.error_code, last.request_id))
    else:
        told.append(Finished(last.state))
    return told


def _retold(message: Message) -> list[Event]:
    told: list[Event] = []
    if message.agent_name:
        created = recording.timestamp(message.created_at)
        told.append(MessageStarted(str(message.pk), message.agent_name, created))
    thoughts = tuple(Thought(**thought) for thought in message.thoughts)
    told.append(ContextReady((), thoughts, str(message.pk)))
    if message.content:
        told.append(TextDelta(message.content))
    if message.finish_reason:
        told.append(MessageDone(message.finish_reason, tuple(message.citations)))
    return told
