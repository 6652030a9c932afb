"""The order of a run: search, context, text, what helps to go on."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from uuid import UUID

from chat.events import (
    Event,
    FollowUps,
    MessageDone,
    MessageStarted,
    Searching,
    TextDelta,
    TitleChanged,
)
from chat.llm import ChatModel, Prompt, Said, configured_model
from chat.quotations import quotes
from chat.sources import SourceView
from chatsite.db.retry import patiently
from history import recording
from history.models import Message
from history.recording import Closing
from ingestion.search import retrieval

from .run import AcceptedRun, Speaker
from .searching import keep_context, search
from .team import next_speaker
from .writing import written


@dataclass(slots=True)
class _Told:
    """What a run has come to so far."""

    prompt: Prompt
    text: str = ""  # of the last message
    message_id: UUID | None = None
    done: MessageDone | None = None


async def answer(run: AcceptedRun) -> AsyncGenerator[Event, None]:
    """All events between Started and the end. Raises ModelError; what was yielded before it stands."""
    model = configured_model()
    readable = await patiently(retrieval.count_readable, run.principal)
    yield Searching(readable)
    asked = run.request
    prompt = Prompt(
        asked.question,
        asked.earlier,
        (),
        asked.options.temperature,
        images=asked.images,
        template=asked.options.prompt_template,
        wish=asked.wish,
        generation=asked.generation,
    )
    told = _Told(prompt)
    speak = _team(run, model, readable, told) if run.team else _alone(run, model, readable, told)
    async with aclosing(speak) as events:
        async for event in events:
            yield event
    async for event in _afterwards(run, model, told):
        yield event


async def _alone(
    run: AcceptedRun, model: ChatModel, readable: int, told: _Told
) -> AsyncGenerator[Event, None]:
    query = await model.search_query(run.request.question, run.request.earlier)
    found = await search(run, model, query)
    found, context = await keep_context(run, run.answer_id, model, found, readable)
    yield context
    told.prompt = replace(told.prompt, sources=found.sources, pages=found.pages)
    async with aclosing(_message(model, told, run.answer_id)) as events:
        async for event in events:
            yield event


async def _team(
    run: AcceptedRun, model: ChatModel, readable: int, told: _Told
) -> AsyncGenerator[Event, None]:
    """Each agent in turn, as a message of its own, which sees what the others have said."""
    said: list[Said] = []
    question = run.request.question
    query = await model.search_query(question, run.request.earlier)
    found = await search(run, model, query)
    while speaker := await next_speaker(run, model, said):
        agent_model = configured_model(speaker.model)
        if speaker.may_search and said and (more := await agent_model.further_query(question, said)):
            found = await search(run, agent_model, more)
        message = await patiently(_open_message, run, speaker, told, first=not said)
        yield MessageStarted(str(message.pk), speaker.name, recording.timestamp(message.created_at))
        found, context = await keep_context(run, message.pk, agent_model, found, readable)
        yield context
        told.prompt = replace(
            told.prompt,
            sources=found.sources,
            pages=found.pages,
            said=tuple(said),
            instructions=speaker.instructions,
        )
        async with aclosing(_message(agent_model, told, message.pk)) as events:
            async for event in events:
                yield event
        said.append(Said(speaker.name, told.text))


async def _message(model: ChatModel, told: _Told, message_id: UUID) -> AsyncGenerator[Event, None]:
    """One message, and the words of its sources that it rests on."""
    text: list[str] = []
    async with aclosing(written(model, told.prompt)) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                text.append(event.text)
            elif isinstance(event, MessageDone):
                told.message_id, told.done = message_id, event
            yield event
    told.text = "".join(text)
    if told.done and told.done.citations:
        await patiently(_keep_quotes, message_id, told.text, told.prompt.sources)


def _keep_quotes(message_id: UUID, text: str, sources: Sequence[SourceView]) -> None:
    """In a thread: comparing the texts takes time that grows with the answer."""
    if found := quotes(text, sources):
        recording.record_quotes(message_id, found)


async def _afterwards(run: AcceptedRun, model: ChatModel, told: _Told) -> AsyncGenerator[Event, None]:
    """What helps to go on, asked for side by side: follow-up questions, and a new conversation's title."""
    wants_followups = run.request.options.followups and bool(told.prompt.sources)
    followups = model.followups(told.prompt, told.text) if wants_followups else _nothing()
    questions, title = await asyncio.gather(followups, _title(run, model))
    if questions:
        yield FollowUps(tuple(questions))
    if title:
        yield TitleChanged(title)


async def _nothing() -> list[str]:
    return []


async def _title(run: AcceptedRun, model: ChatModel) -> str:
    """A better title than the question's own words, for a conversation that begins with this question."""
    if not run.is_untitled:
        return ""
    title = await model.title(run.request.question)
    owner, conversation = run.principal.user_id, run.conversation_id
    if not title or not await patiently(recording.set_title, owner, conversation, title):
        return ""
    return title


def _open_message(run: AcceptedRun, speaker: Speaker, told: _Told, *, first: bool) -> Message:
    """The agent's message; the one before it is complete now, whatever becomes of the rest."""
    if first:
        return recording.name_speaker(run.answer_id, speaker.name)
    if told.message_id and told.done:
        closing = Closing(
            Message.State.COMPLETE, told.text, told.done.finish_reason, citations=told.done.citations
        )
        recording.close_answer(run.principal.user_id, told.message_id, closing)
    return recording.append_answer(run.conversation_id, run.run_id, speaker.name, request_id=run.request_id)
