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
from chat.thought_rights import may_see_thoughts
from chatsite.accounts.principals import Principal, still_valid
from chatsite.database import in_database, reading_as
from history import recording
from history.models import Message

from . import endings, journal, wakeups
from .generating import Live, generations
from .guarding import guards

Numbered = tuple[int, Event]


async def follow(principal: Principal, run_id: UUID, after: int = 0) -> AsyncGenerator[Numbered, None]:
    """The events with a number above `after`, then what comes, up to Finished or Failed.

    After the end, when the journal is gone, the exchange is told again from its messages and begins with
    number 1, whatever `after` was. Raises Refused("not_found") for a run that is not the caller's, and as
    soon as the caller's account, session or key is no longer valid. Iterate under `aclosing`.
    """
    async with aclosing(watch(principal, run_id, after)) as items:
        async for item in items:
            if item is not None:
                yield item


async def watch(
    principal: Principal, run_id: UUID, after: int = 0, *, retell: bool = True
) -> AsyncGenerator[Numbered | None, None]:
    """As :func:`follow`, with None for each second or so without news.

    Without `retell`, a run whose journal is gone is only told its end, with the number that it had. The end
    is told in any case, also to whoever says that they have it.
    """
    run = await in_database(_run, principal, run_id)
    live = generations().live.get(run_id)
    source = _from_memory(live, after) if live else _from_journal(principal, run, after, retell=retell)
    async with aclosing(source) as numbered:
        with guards().guarding(principal) as guard:
            async for item in numbered:
                await guard.check()
                if item is not None and isinstance(item[1], ContextReady):
                    yield item[0], await _with_sources(principal, item[1])
                else:
                    yield item


async def whole(principal: Principal, run_id: UUID) -> Whole:
    """The whole exchange, once it has ended."""
    result = Whole()
    async with aclosing(follow(principal, run_id)) as numbered:
        async for _, event in numbered:
            result.add(event)
    return result


async def _from_memory(live: Live, after: int) -> AsyncGenerator[Numbered | None, None]:
    """None stands for a second or so without news, so that the guard gets its turn."""
    position = after
    while True:
        while position < len(live.events):
            event = live.events[position]
            position += 1
            yield position, event
            if isinstance(event, TERMINAL):
                return
        if isinstance(live.events[-1], TERMINAL):
            yield len(live.events), live.events[-1]
            return
        await live.news()
        if position >= len(live.events):
            yield None


async def _from_journal(
    principal: Principal, run: Run, after: int, *, retell: bool
) -> AsyncGenerator[Numbered | None, None]:
    position = after
    with wakeups.hub().waiting(run.pk) as news:
        while True:
            numbered, ended = await patiently(_look, run.pk, position)
            for number, event in numbered:
                position = number
                yield number, event
                if isinstance(event, TERMINAL):
                    return
            if ended and not numbered:
                break
            if not numbered:
                yield None
                await news.wait()
    events = await patiently(_retell, run)
    if not retell:
        last = await patiently(last_event, principal, run.pk)
        yield last or after, events[-1]
        return
    for number, event in enumerate(events, start=1):
        yield number, event


async def told(principal: Principal, run_id: UUID) -> Whole:
    """An exchange that has ended, from its messages, with the sources that the caller may open now."""
    run = await patiently(_run, principal, run_id)
    events = await patiently(_retell, run)
    return endings.fold(
        [
            await _with_sources(principal, event) if isinstance(event, ContextReady) else event
            for event in events
        ]
    )


def _run(principal: Principal, run_id: UUID) -> Run:
    run = Run.objects.owned_by(principal).filter(pk=run_id).select_related("answer").first()
    if run is None or not still_valid(principal):
        raise Refused("not_found")
    return run


def last_event(principal: Principal, run_id: UUID) -> int | None:
    """The number of the event that ended it: None before the end, 0 where it is not known. Raises Refused."""
    run = _run(principal, run_id)
    return run.last_event if run.finished_at else None


def _look(run_id: UUID, after: int) -> tuple[list[Numbered], bool]:
    """New events, and whether the run has ended; one whose process died is closed on the way."""
    # Asked first: an end that is stored in between shows its events in the read that follows.
    ended = not Run.objects.unfinished().filter(pk=run_id).exists()
    numbered = journal.read(run_id, after)
    if not ended and not numbered:
        endings.close_expired(run_id=run_id)
    return numbered, ended


async def _with_sources(principal: Principal, event: ContextReady) -> ContextReady:
    # A stream outlives the request that asked for it, and its own reader with it.
    with reading_as(principal.user_id):
        sources = await patiently(journal.visible_sources, principal, UUID(event.message_id))
        images = await of_sources(principal, sources)
    seen = await patiently(may_see_thoughts, principal)
    thoughts = event.thoughts if seen else ()
    return dataclasses.replace(event, sources=sources, images=images, thoughts=thoughts)


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
