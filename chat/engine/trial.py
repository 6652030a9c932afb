"""Trials: whether documents answer a question, and answers with a draft of the instructions."""

import hashlib
import threading
import time
from collections.abc import Collection, Iterable, Sequence
from contextlib import aclosing
from itertools import islice

from asgiref.sync import async_to_sync

from chat.events import TextDelta
from chat.llm import ChatModel, Prompt, configured_model
from chat.quoting.quoting_model import QuotingModel, quote, search_query
from chat.requests import EarlierMessage, Options
from chat.statements import marks_by_rank
from chat.verification import verify_or_log
from chatsite.accounts.principal import Principal
from ingestion.search import retrieval
from ingestion.search.scopes import ALL

from .searching import as_source, search_for
from .writing import written

# Outcomes are kept only briefly: they also depend on the glossary and the vectors, which are not in the
# cache key.
KEPT_SECONDS = 600
MAX_KEPT = 20_000  # cached outcomes
MAX_DOCUMENTS = 5_000  # no cache for people who may read more: checking all for changes takes too long

Outcome = frozenset[int] | None  # the passages that answer a question, or None if nothing does

_outcomes: dict[bytes, tuple[Outcome, float]] = {}  # outcomes of trials with their times, oldest first
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
    quoted: Collection[int] = (),
) -> list[str]:
    """At most `most` of the questions: those that passages other than `quoted` answer.

    `quoted` has the ids of passages that the person has just read. With a language model, follow-up questions
    are not tried, because the model usually wrote them from the sources of its answer.

    `readable` is the number of documents in a search of everything. Without a language model, the outcome
    of a question depends on its text, the earlier question to which it may refer, the readable documents, and
    the scope. If at most MAX_DOCUMENTS are readable, the outcome is cached: for everybody who may read
    exactly the same documents or, in a narrower scope, for the caller.
    """
    if earlier and not isinstance(model, QuotingModel):
        return list(islice(questions, most))
    keeps = isinstance(model, QuotingModel) and readable <= MAX_DOCUMENTS
    state = retrieval.readable_state(principal) if keeps else ""
    # Some scopes depend on the person, such as their own documents.
    reader = None if scope in ("", ALL) else principal.user_id

    def outcome(question: str) -> Outcome:
        if not keeps:
            return answering_passages(principal, model, question, earlier, scope=scope)
        depends_on = (state, scope, reader, model.name, question, search_query(question, earlier))
        key = hashlib.sha256(repr(depends_on).encode()).digest()
        known, now = _outcomes.get(key), time.monotonic()
        if known and now - known[1] < KEPT_SECONDS:
            return known[0]
        found = answering_passages(principal, model, question, earlier, scope=scope)
        with _storing:
            _outcomes.pop(key, None)
            _outcomes[key] = (found, now)
            if len(_outcomes) > MAX_KEPT:
                del _outcomes[next(iter(_outcomes))]
        return found

    def adds_something(question: str) -> bool:
        passages = outcome(question)
        return passages is not None and not (passages and passages.issubset(quoted))

    return list(islice(filter(adds_something, questions), most))


def is_answerable(principal: Principal, model: ChatModel, question: str, *, document_id: int = 0) -> bool:
    """Whether the documents that `principal` may read answer `question`.

    With `document_id`, the best passage must be from that document.
    """
    return answering_passages(principal, model, question, document_id=document_id) is not None


def answering_passages(
    principal: Principal,
    model: ChatModel,
    question: str,
    earlier: Sequence[EarlierMessage] = (),
    *,
    document_id: int = 0,
    scope: str = "",
) -> Outcome:
    """The passages of `scope` with which the answer to `question` begins; None if unanswered.

    `earlier` is the conversation before the question. The search must be sure of its best passage, which must
    be from `document_id` if that is set. Without a language model, a quotation must also answer the question.
    """
    found = search_for(principal, search_query(question, earlier), scope=scope)
    if not found.sure or not found.passages:
        return None
    if document_id and found.passages[0].document_id != document_id:
        return None
    if not isinstance(model, QuotingModel):
        return frozenset({found.passages[0].passage_id})
    sources = [as_source(rank, passage) for rank, passage in enumerate(found.passages, start=1)]
    answer = quote(Prompt(question, earlier, sources, 0.0, fit=found.fit, synonyms=found.synonyms))
    if not (answer.is_sure and answer.texts):
        return None
    # Only the first quotation has to answer the question; the others are further reading.
    ranks = marks_by_rank(verify_or_log(answer.texts[0], sources) or ())
    return frozenset(source.passage_id for source in sources if source.rank in ranks)


def draft_answer(principal: Principal, question: str, draft: str) -> str:
    """Answer with `draft` as instructions, and with this person's rights. Stores nothing.

    Raises ModelError.
    """
    found = retrieval.search(principal, question)
    sources = [as_source(rank, passage) for rank, passage in enumerate(found.passages, start=1)]
    prompt = Prompt(
        question, (), sources, Options().temperature, fit=found.fit, synonyms=found.synonyms, template=draft
    )

    async def text() -> str:
        async with aclosing(written(configured_model(), prompt)) as events:
            return "".join([event.text async for event in events if isinstance(event, TextDelta)])

    return async_to_sync(text)()
