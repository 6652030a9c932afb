"""Trial runs: whether a question can be answered, and how other instructions answer it."""

import hashlib
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import aclosing
from itertools import islice

from asgiref.sync import async_to_sync

from chat.events import TextDelta
from chat.llm import ChatModel, Prompt, configured_model
from chat.quoting.quoting_model import QuotingModel, is_answered_by, search_query
from chat.requests import EarlierMessage, Options
from chatsite.accounts.principal import Principal
from ingestion.search import retrieval
from ingestion.search.scopes import ALL

from .searching import as_source, found_for
from .writing import written

KEPT_SECONDS = 600  # an outcome also depends on the glossary and the vectors, which rarely change
MAX_KEPT = 20_000  # outcomes
MAX_DOCUMENTS = 5_000  # of a caller whose outcomes are cached; checking more for changes takes too long

_outcomes: dict[bytes, tuple[bool, float]] = {}  # of trials, with their times, the oldest first
_storing = threading.Lock()


def answerable(
    principal: Principal,
    model: ChatModel,
    questions: Iterable[str],
    earlier: Sequence[EarlierMessage],
    *,
    scope: str,
    readable: int,
    most: int,
) -> list[str]:
    """The first `most` of the questions for which :func:`is_answerable` is true.

    `readable` is the number of documents that `principal` may read. Without a language model, the outcome
    depends only on these documents, on the question and on the earlier question that it may refer to. It is
    then cached for everybody who may read exactly the same documents.
    """
    keeps = isinstance(model, QuotingModel) and readable <= MAX_DOCUMENTS
    state = retrieval.readable_state(principal) if keeps else ""
    # Some scopes depend on the person, such as their own documents.
    reader = None if scope in ("", ALL) else principal.user_id

    def outcome(question: str) -> bool:
        if not keeps:
            return is_answerable(principal, model, question, earlier, scope=scope)
        depends_on = (state, scope, reader, model.name, question, search_query(question, earlier))
        key = hashlib.sha256(repr(depends_on).encode()).digest()
        known, now = _outcomes.get(key), time.monotonic()
        if known and now - known[1] < KEPT_SECONDS:
            return known[0]
        found = is_answerable(principal, model, question, earlier, scope=scope)
        with _storing:
            _outcomes.pop(key, None)
            _outcomes[key] = (found, now)
            if len(_outcomes) > MAX_KEPT:
                del _outcomes[next(iter(_outcomes))]
        return found

    return list(islice(filter(outcome, questions), most))


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
