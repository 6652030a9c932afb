"""One exchange, from a question to its events: search under rights, prompt, model, verified citations.

Knows no request, no socket and no run: whoever iterates decides what becomes of the events.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass
from uuid import UUID

from django.conf import settings

from chatsite.accounts.principals import Principal
from chatsite.database import in_database
from history import recording
from history.models import Conversation, Source
from ingestion import retrieval
from ingestion.retrieval import Found

from .citations import CitationFilter
from .events import (
    ContextReady,
    Event,
    FollowUps,
    MessageDone,
    Searching,
    SourceView,
    TextDelta,
    Thought,
    TitleChanged,
    Usage,
)
from .llm import ChatModel, ModelError, Prompt, Text, TokenCount, configured_model
from .llm.protocol import NOTHING_FITS, instructions
from .quotations import quotes
from .requests import ChatRequest, Turn


@dataclass(frozen=True, slots=True)
class Exchange:
    """A stored question that wants its answer."""

    principal: Principal
    request: ChatRequest
    earlier: Sequence[Turn]
    conversation_id: UUID
    answer_id: UUID


async def answer(exchange: Exchange) -> AsyncGenerator[Event, None]:
    """All events between Started and the end. Raises ModelError; what was yielded before it stands."""
    model = configured_model()
    readable = await in_database(retrieval.count_readable, exchange.principal)
    yield Searching(readable)
    query, found = await _search(exchange, model)
    sources = tuple(_view(rank, passage) for rank, passage in enumerate(found.passages, start=1))
    thoughts = _thoughts(exchange, model, query)
    await in_database(_record, exchange, found, thoughts, readable)
    yield ContextReady(sources, thoughts)
    prompt = Prompt(
        exchange.request.question, exchange.earlier, sources, exchange.request.options.temperature
    )
    text: list[str] = []
    async with aclosing(_written(model, prompt)) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                text.append(event.text)
            yield event
    whole = "".join(text)
    await in_database(recording.record_quotes, exchange.answer_id, quotes(whole, sources))
    async for event in _afterwards(exchange, model, prompt, whole):
        yield event


async def _search(exchange: Exchange, model: ChatModel) -> tuple[str, Found]:
    options = exchange.request.options
    query = await model.search_query(exchange.request.question, exchange.earlier)
    found = await in_database(
        retrieval.search,
        exchange.principal,
        query,
        mode=options.retrieval_mode,
        top=options.top,
        include_category=options.include_category,
        exclude_category=options.exclude_category,
        minimum_score=options.minimum_score,
    )
    return query, found


@dataclass(slots=True)
class _Outcome:
    """How the model's text ended."""

    reason: str = ""
    usage: TokenCount | None = None
    error: ModelError | None = None


async def _written(model: ChatModel, prompt: Prompt) -> AsyncGenerator[Event, None]:
    """The text with verified citations, then MessageDone. Raises ModelError, after all the text that came."""
    if not prompt.sources and not prompt.earlier:
        # Without sources and without a conversation a model could only invent.
        yield TextDelta(NOTHING_FITS)
        yield MessageDone("stop", ())
        return
    citations = CitationFilter(source.label for source in prompt.sources)
    outcome = _Outcome()
    length = 0
    async with aclosing(_verified(model, prompt, citations, outcome)) as pieces:
        async for piece in pieces:
            safe = piece[: settings.ANSWER_MAX_CHARACTERS - length]
            length += len(safe)
            if safe:
                yield TextDelta(safe)
            if length >= settings.ANSWER_MAX_CHARACTERS:
                outcome.reason = "length"
                break
    if outcome.error:
        raise outcome.error
    if not length:
        raise ModelError("empty_answer")
    if not outcome.reason:
        raise ModelError("interrupted")
    yield MessageDone(outcome.reason, tuple(citations.cited))
    if outcome.usage:
        yield Usage(outcome.usage.prompt, outcome.usage.completion)


async def _verified(
    model: ChatModel, prompt: Prompt, citations: CitationFilter, outcome: _Outcome
) -> AsyncGenerator[str, None]:
    """Pieces of text, some of them empty; also what was held back when the model failed."""
    try:
        async with aclosing(model.answer(prompt)) as parts:
            async for part in parts:
                if isinstance(part, Text):
                    yield citations.feed(part.text)
                elif isinstance(part, TokenCount):
                    outcome.usage = part
                else:
                    outcome.reason = part.reason
    except ModelError as error:
        outcome.error = error
    yield citations.flush()


async def _afterwards(
    exchange: Exchange, model: ChatModel, prompt: Prompt, text: str
) -> AsyncGenerator[Event, None]:
    """What helps to go on, asked for side by side: follow-up questions, and a new conversation’s title."""
    wants_followups = exchange.request.options.followups and bool(prompt.sources)
    followups = model.followups(prompt, text) if wants_followups else _nothing()
    questions, title = await asyncio.gather(followups, _title(exchange, model))
    if questions:
        yield FollowUps(tuple(questions))
    if title:
        yield TitleChanged(title)


async def _nothing() -> list[str]:
    return []


async def _title(exchange: Exchange, model: ChatModel) -> str:
    if not await in_database(_untitled, exchange.conversation_id):
        return ""
    title = await model.title(exchange.request.question)
    if not title or not await in_database(recording.set_title, exchange.conversation_id, title):
        return ""
    return title


def _untitled(conversation_id: UUID) -> bool:
    return Conversation.objects.filter(pk=conversation_id, title="").exists()


def _view(rank: int, passage: retrieval.FoundPassage) -> SourceView:
    return SourceView(
        rank=rank,
        label=passage.label,
        sourcefile=passage.sourcefile,
        title=passage.title,
        heading=passage.heading,
        page=passage.page,
        category=passage.category,
        content=passage.content,
        score=passage.score,
        found_by=passage.found_by,
        passage_id=passage.passage_id,
        document_id=str(passage.public_id),
    )


def _record(exchange: Exchange, found: Found, thoughts: Sequence[Thought], readable: int) -> None:
    sources = [
        Source(
            message_id=exchange.answer_id,
            document_id=passage.document_id,
            document_version=passage.document_version,
            passage_id=passage.passage_id,
            rank=rank,
            label=passage.label,
            title=passage.title,
            heading=passage.heading,
            page=passage.page,
            content=passage.content,
            score=passage.score,
            found_by=passage.found_by,
        )
        for rank, passage in enumerate(found.passages, start=1)
    ]
    recording.record_context(exchange.answer_id, sources, [asdict(thought) for thought in thoughts], readable)


def _thoughts(exchange: Exchange, model: ChatModel, query: str) -> tuple[Thought, ...]:
    """The steps so far. Passages are left out: whoever shows a step adds those that the reader may see."""
    options = exchange.request.options
    earlier = [f"{{'role': {turn.role!r}, 'content': {turn.content!r}}}" for turn in exchange.earlier]
    system = f"{{'role': 'system', 'content': {instructions('answer')!r}}}"
    thoughts = [
        Thought("Original user query", exchange.request.question),
        Thought(
            "Generated search query",
            query,
            {
                "use_semantic_captions": False,
                "has_vector": options.retrieval_mode != "text",
                "retrieval_mode": options.retrieval_mode,
                "top": options.top,
            },
        ),
        Thought("Prompt", [system, *earlier], {"model": model.name, "temperature": options.temperature}),
    ]
    if options.unknown:
        thoughts.append(Thought("Overrides without effect", list(options.unknown)))
    return tuple(thoughts)
