"""Trial runs: whether a question can be answered, and how other instructions answer it."""

from collections.abc import Sequence
from contextlib import aclosing

from asgiref.sync import async_to_sync

from chat.events import TextDelta
from chat.llm import ChatModel, Prompt, configured_model
from chat.llm.quoting import QuotingModel, is_answered_by, search_query
from chat.requests import EarlierMessage, Options
from chatsite.accounts.principal import Principal
from ingestion.search import retrieval

from .searching import as_source, found_for
from .writing import written


def is_answerable(
    principal: Principal,
    model: ChatModel,
    question: str,
    earlier: Sequence[EarlierMessage] = (),
    *,
    document_id: int = 0,
    scope: str = "",
) -> bool:
    """Whether the documents of `scope` that `principal` may read answer `question`, after `earlier` was said.

    Without a language model a sentence must answer it; with one, the search must be sure of its best
    passage. With `document_id` this passage must be from that document.
    """
    if earlier and not isinstance(model, QuotingModel):
        return True  # a follow-up question that a model wrote from these very sources
    query = search_query(question, earlier)
    found = found_for(principal, query, scope=scope)
    if document_id and not (found.passages and found.passages[0].document_id == document_id):
        return False
    if not found.sure or not isinstance(model, QuotingModel):
        return found.sure
    sources = [as_source(rank, passage) for rank, passage in enumerate(found.passages, start=1)]
    return is_answered_by(question, earlier, sources, found.fit, found.synonyms)


def draft_answer(principal: Principal, question: str, draft: str) -> str:
    """Answer with other instructions, under this person's rights. Stores nothing; raises ModelError."""
    found = retrieval.search(principal, question)
    sources = [as_source(rank, passage) for rank, passage in enumerate(found.passages, start=1)]
    prompt = Prompt(
        question, (), sources, Options().temperature, fit=found.fit, synonyms=found.synonyms, template=draft
    )

    async def text() -> str:
        async with aclosing(written(configured_model(), prompt)) as events:
            return "".join([event.text async for event in events if isinstance(event, TextDelta)])

    return async_to_sync(text)()
