"""Finding the passages for a question, and keeping what the answer is written from."""

from collections.abc import Sequence
from dataclasses import asdict
from uuid import UUID

from chat.events import ContextReady, SourceView, Thought
from chat.llm import ChatModel
from chat.llm.protocol import instructions
from chatsite.database import in_database
from history import recording
from history.models import Source
from ingestion import retrieval
from ingestion.retrieval import Found

from .exchange import Exchange


async def search(exchange: Exchange, query: str) -> Found:
    """The passages that fit, by the options of the request and the rights of its caller."""
    options = exchange.request.options
    return await in_database(
        retrieval.search,
        exchange.principal,
        query,
        mode=options.retrieval_mode,
        top=options.top,
        include_category=options.include_category,
        exclude_category=options.exclude_category,
        minimum_score=options.minimum_score,
    )


async def keep_context(
    exchange: Exchange, answer_id: UUID, model: ChatModel, query: str, found: Found, readable: int
) -> ContextReady:
    """Store the sources and the steps of a message, before its first word, and tell of them."""
    thoughts = _thoughts(exchange, model, query)
    await in_database(_record, answer_id, found, thoughts, readable)
    sources = tuple(_view(rank, passage) for rank, passage in enumerate(found.passages, start=1))
    return ContextReady(sources, thoughts, str(answer_id))


def _record(answer_id: UUID, found: Found, thoughts: Sequence[Thought], readable: int) -> None:
    sources = [
        Source(
            message_id=answer_id,
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
    recording.record_context(answer_id, sources, [asdict(thought) for thought in thoughts], readable)


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
