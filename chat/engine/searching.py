"""Searches with the caller's rights, and stores the sources of an answer."""

import time
from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, zip_longest
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, ProgrammingError

from chat.events import ContextReady, Thought, Verified, members
from chat.llm import ChatModel, SearchQuery
from chat.llm.chat_model import rerank
from chat.quoting.questions.answer_types import QuotedText
from chat.quoting.questions.question import Question
from chat.quoting.sentence_selection import best_sentences_per_passage
from chat.requests import Options
from chat.sources import Caption, Given, PageImage, SourceView
from chatsite.accounts.principal import Principal
from chatsite.db.retry import retry_until_available
from history import recording
from ingestion.models import Passage
from ingestion.search import retrieval
from ingestion.search.passage_completion import complete_passages, without_repeated
from ingestion.search.retrieval import (
    FoundPassage,
    SearchResult,
)
from ingestion.search.rough_stems import matching_words, stems, weak_stems
from ingestion.search.scopes import ALL, documents_in, kept_apart

from . import steps
from .page_images import (
    Page,
    page_images,
)
from .run import AcceptedRun

SENTENCES = 2  # number of sentences of a passage that become its captions
TRIES = 4  # attempts to store sources while some of their documents are being deleted
JUST_FOUND_SECONDS = 1.0  # how long the search's check of rights remains valid
MAX_ADDED = (2, 1)  # maximum numbers of passages from the two searches in SearchQuery.added
CANDIDATES = 30  # minimum number of candidates to search for if a ranker selects from them
RANKED_CHARACTERS = 1_000  # characters of a passage that are sent to the ranker
MIN_RANKED_SHARE = 0.5  # the ranker must score this share of the passages; otherwise its order is ignored

# Names of the filters besides the scope.
NARROWING = ("include_category", "exclude_category", "minimum_score", "to_person", "to_groups")

NO_RANKER = "This site has no ranker, so the order is the search’s own. A ranker needs a model."
RANKER_FAILED = "The ranker did not answer, so the order is the search’s own."
NO_MINIMUM = "“minimum_reranker_score” has no effect without a ranker."


def captions(query: str, passages: Sequence[FoundPassage]) -> list[tuple[Caption, ...]]:
    """The captions of each passage. A passage without captions is given to the model as a whole."""
    return [
        tuple(Caption(sentence.text, tuple(matching_words(query, sentence.text))) for sentence in sentences)
        for sentences in best_sentences_per_passage(Question(query), passages, SENTENCES)
    ]


@dataclass(frozen=True, slots=True)
class Search:
    """The sources of an answer, and how the search found them."""

    query: str
    sources: tuple[SourceView, ...]
    passages: tuple[FoundPassage, ...]  # one for each source
    thoughts: tuple[Thought, ...]  # steps of the search
    pages: tuple[PageImage, ...]
    fit: float = 1.0  # relevance of the best passage, as in a SearchResult
    synonyms: Mapping[str, Sequence[str]] = field(default_factory=dict)  # synonyms that were searched for
    verified: Verified | None = None  # for an answer that a person wrote: who verified it
    is_stored: bool | None = None  # whether the sources were stored; None if not tried yet
    found_at: float = field(default_factory=time.monotonic, compare=False)

    @property
    def is_fresh(self) -> bool:
        """Whether the caller's rights have just been checked."""
        return time.monotonic() - self.found_at < JUST_FOUND_SECONDS


async def search(
    run: AcceptedRun, model: ChatModel, asked: SearchQuery, found: SearchResult | None = None
) -> Search:
    """Search with the options of the request and the rights of its caller.

    `found` contains the candidates if they were already searched for.
    """
    options = run.request.options
    query = asked.text
    if found is None:
        found = await retry_until_available(candidates, run, asked)
    thoughts: list[Thought] = []
    passages = found.passages
    scores: Mapping[int, float] = {}
    if options.ranker:
        ranking = await ranked(model, query, passages, options)
        passages, scores = ranking.passages[: options.top], ranking.scores
        thoughts.append(ranking.thought)
    shown_captions = await retry_until_available(captions, query, passages) if options.captions else []
    pages: tuple[PageImage, ...] = ()
    if options.pages:
        places = [Page(passage.label, passage.public_id, passage.page) for passage in passages]
        pages = await page_images(run.principal, places)
        thoughts.append(steps.page_images(options, len(pages)))
    return _search(options, query, replace(found, passages=passages), shown_captions, thoughts, pages, scores)


def is_simple(run: AcceptedRun) -> bool:
    """Whether the run has a single answer, and its search needs only the database."""
    options = run.request.options
    return not (run.team or options.ranker or options.pages)


def search_and_store(run: AcceptedRun, model: ChatModel, asked: SearchQuery) -> Search:
    """A simple search, which stores the sources in the same database call.

    Nothing is stored if a document was deleted or withdrawn meanwhile, or if the search took so long that
    rights must be checked again; :func:`store_context` then stores the sources.
    """
    options, result = run.request.options, candidates(run, asked)
    shown_captions = captions(asked.text, result.passages) if options.captions else []
    found = _search(options, asked.text, result, shown_captions)
    if not found.is_fresh:
        return found
    try:
        _record(run.answer_id, found, steps.of_message(run, model, found.thoughts), run.readable)
    except (IntegrityError, ProgrammingError):
        return replace(found, is_stored=False)
    return replace(found, is_stored=True)


def _search(
    options: Options,
    query: str,
    result: SearchResult,
    shown_captions: Sequence[tuple[Caption, ...]],
    thoughts: Sequence[Thought] = (),
    pages: tuple[PageImage, ...] = (),
    scores: Mapping[int, float] | None = None,
) -> Search:
    """The results as sources. `thoughts` are the steps after the search."""
    drawn = {page.label for page in pages}
    given: Given = "image" if options.pages == "images" else "both"
    sources = tuple(
        as_source(
            rank,
            passage,
            captions=shown_captions[rank - 1] if shown_captions else (),
            given=given if passage.label in drawn else "text",
            ranker_score=scores.get(passage.passage_id) if scores else None,
        )
        for rank, passage in enumerate(result.passages, start=1)
    )
    of_search = (steps.query(options, query, result), *steps.vector_fields(options), *thoughts)
    return Search(
        query,
        sources,
        result.passages,
        of_search,
        pages,
        result.fit,
        result.synonyms,
        found_at=result.found_at,
    )


def candidates(run: AcceptedRun, query: SearchQuery) -> SearchResult:
    """The candidates of the search; more than requested if a ranker selects from them."""
    options = run.request.options
    return search_for(
        run.principal,
        query,
        mode=steps.mode(options),
        top=max(options.top, CANDIDATES) if options.ranker else options.top,
        include_category=options.include_category,
        exclude_category=options.exclude_category,
        scope=options.scope,
        minimum_score=options.minimum_score,
        to_person=options.to_person,
        to_groups=options.to_groups,
        attached=run.attached,
    )


def search_for(
    principal: Principal, query: SearchQuery, *, attached: Sequence[str] = (), **options: Any
) -> SearchResult:
    """Search for a question.

    Each part of a compound question is searched for, and the results are interleaved. If one part finds
    nothing, the whole question is searched for as well. Passages are completed (`complete_passages`). If a
    selected scope has at most `top` passages, those that were not found follow. A search of everything leaves
    out files that are attached to questions, except files in the scopes `attached`.
    """
    if options.get("scope", "") in ("", ALL) and (apart := kept_apart(principal, attached)):
        options["without"] = apart

    found = _search_parts(principal, query, **options)
    passages = complete_passages(principal, _with_rest_of_scope(principal, found.passages, options))
    return replace(found, passages=without_repeated(passages))


def _with_rest_of_scope(
    principal: Principal, passages: tuple[FoundPassage, ...], options: Mapping[str, Any]
) -> tuple[FoundPassage, ...]:
    """The passages, followed by the remaining ones of a small selected scope.

    A scope is small if it has at most `top` passages. Its remaining passages are added because a question
    about a file of one page often uses other words than the file. Nothing is added if nothing was found, or
    if the request has other filters.
    """
    top = options.get("top", Options().top)
    scope = options.get("scope", "")
    if not passages or len(passages) >= top or any(map(options.get, NARROWING)):
        return passages
    documents = documents_in(principal, scope)
    if documents is None:
        return passages
    every = Passage.objects.filter(document_id__in=documents).order_by("document_id", "position")
    numbers = list(every.values_list("pk", flat=True)[: top + 1])
    if len(numbers) > top:
        return passages
    known = {passage.passage_id for passage in passages}
    rest = retrieval.load(principal, [number for number in numbers if number not in known])
    return (*passages, *(replace(each, score=0.0, found_by="scope") for each in rest))


def _search_parts(principal: Principal, query: SearchQuery, **options: Any) -> SearchResult:
    top = options.get("top", Options().top)

    def searched(query: SearchQuery) -> SearchResult:
        found = retrieval.search(principal, query.text, context=query.context, **options)
        if not query.added or top < 2:
            return found
        return _with_added_passages(query, found, [searched(each) for each in query.added], top)

    if not query.parts:
        return searched(query)
    results = [searched(part) for part in query.parts]
    fit = min(result.fit for result in results)
    if not any(result.passages for result in results):
        return searched(replace(query, parts=()))
    if not all(result.passages for result in results):
        results.append(searched(query))
    in_turns = chain.from_iterable(zip_longest(*(result.passages for result in results)))
    passages = {passage.passage_id: passage for passage in in_turns if passage}
    most = max(len(result.passages) for result in results)
    return replace(
        results[0],
        passages=tuple(passages.values())[:most],
        query=query.text,
        candidates=max(result.candidates for result in results),
        fit=fit,
        expanded=", ".join(filter(None, (result.expanded for result in results))),
        synonyms=dict(ChainMap(*(dict(result.synonyms) for result in results))),
        found_at=min(result.found_at for result in results),
    )


def _with_added_passages(
    query: SearchQuery, found: SearchResult, of_added: Sequence[SearchResult], top: int
) -> SearchResult:
    """The result with the best passages about the term that a follow-up question adds.

    The added passages also contain words of the previous question, and replace the last ones of the result.
    Otherwise the previous question, which usually has more words, would alone decide what is found.
    """
    known = {passage.passage_id for passage in found.passages}
    question = Question(query.added[0].text, query.text, query.text, found.synonyms)
    added, before = question.own_stems - weak_stems(), stems(query.text) - question.own_stems - weak_stems()
    more: list[FoundPassage] = []
    for result, most in zip(of_added, MAX_ADDED, strict=True):
        shared: list[tuple[int, FoundPassage]] = []
        for passage in result.passages:
            text = QuotedText(question, (passage.content, passage.title, passage.heading))
            if passage.passage_id not in known and text.known(added):
                shared.append((text.known(before), passage))
        shared.sort(key=lambda each: -each[0])
        more += [passage for number, passage in shared[:most] if number]
        known.update(passage.passage_id for passage in more)
    more = more[: top - 1]
    return replace(found, passages=(*found.passages[: top - len(more)], *more)) if found.passages else found


async def store_context(
    run: AcceptedRun, answer_id: UUID, model: ChatModel, found: Search, readable: int | None
) -> tuple[Search, ContextReady]:
    """Store the sources and steps of a message before its text.

    Leaves out sources that were deleted or withdrawn from the caller since the search. Returns the remaining
    results, and the event with the sources and steps.
    """
    # There is a prompt only after a search.
    is_prompted = found.verified is None and bool(found.thoughts)
    thoughts = steps.of_message(run, model, found.thoughts, is_prompted=is_prompted)
    tries = () if found.is_stored else range(1 if found.is_stored is None else 2, TRIES + 1)
    for attempt in tries:
        try:
            if attempt > 1 or not found.is_fresh:
                found = await retry_until_available(_still_readable, run.principal, found)
            await retry_until_available(_record, answer_id, found, thoughts, readable)
            break
        except (
            IntegrityError,
            ProgrammingError,
        ):  # deleted or withdrawn just now
            if attempt == TRIES:
                raise
    return found, ContextReady(found.sources, thoughts, str(answer_id), verified=found.verified)


def _still_readable(principal: Principal, found: Search) -> Search:
    wanted = {passage.document_id for passage in found.passages}
    there = retrieval.readable_among(principal, wanted)
    if there == wanted:
        return found
    left = [pair for pair in zip(found.sources, found.passages, strict=True) if pair[1].document_id in there]
    sources = tuple(replace(view, rank=rank) for rank, (view, _) in enumerate(left, start=1))
    labels = {view.label for view in sources}
    return replace(
        found,
        sources=sources,
        passages=tuple(passage for _, passage in left),
        pages=tuple(page for page in found.pages if page.label in labels),
        verified=None,  # the answer was verified only with all of its sources
    )


def _record(answer_id: UUID, found: Search, thoughts: Sequence[Thought], readable: int | None) -> None:
    sources = [
        {
            "document_id": passage.document_id,
            "document_version": passage.document_version,
            "public_id": str(passage.public_id),
            "passage_id": passage.passage_id,
            "rank": view.rank,
            "label": view.label,
            "title": view.title,
            "heading": view.heading,
            "page": view.page,
            "content": view.content,
            "captions": [members(caption) for caption in view.captions],
            "given": view.given,
            "score": view.score,
            "ranker_score": view.ranker_score,
            "found_by": view.found_by,
        }
        for view, passage in zip(found.sources, found.passages, strict=True)
    ]
    verified = members(found.verified) if found.verified else None
    made = [members(thought) for thought in thoughts]
    recording.record_context(answer_id, sources, made, readable, verified)


def as_source(
    rank: int,
    passage: FoundPassage,
    *,
    captions: tuple[Caption, ...] = (),
    given: Given = "text",
    ranker_score: float | None = None,
) -> SourceView:
    """The passage as a source, in the form that a model gets."""
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
        ranker_score=ranker_score,
        captions=captions,
        given=given,
    )


# --- Reranking the best candidates ---


@dataclass(frozen=True, slots=True)
class Ranking:
    """Passages in the ranker's order; if there is none, in search order and without scores."""

    passages: tuple[FoundPassage, ...]
    scores: Mapping[int, float]  # scores (0 to 4) by passage id
    thought: Thought


async def ranked(model: ChatModel, query: str, passages: Sequence[FoundPassage], options: Options) -> Ranking:
    """Rank the passages, and leave out those below the minimum score."""
    texts: list[str] = []
    for passage in passages:
        place = " › ".join(part for part in (passage.title, passage.heading) if part)
        content = " ".join(passage.content.split())
        texts.append((f"{place}: {content}" if place else content)[:RANKED_CHARACTERS])
    name = settings.RERANK_MODEL or model.name
    scores: dict[int, float] | None = {}
    if texts:
        scores = await (rerank(query, texts) if settings.RERANK_MODEL else model.graded(query, texts))
    if scores is None:
        return _unranked(passages, NO_RANKER, {}, options)
    if len(scores) < MIN_RANKED_SHARE * len(texts):
        return _unranked(passages, RANKER_FAILED, {"ranker": name}, options)
    places = sorted(range(len(texts)), key=lambda place: (-scores.get(place, 0.0), place))
    minimum = options.minimum_ranker_score
    kept = [place for place in places if scores.get(place, 0.0) >= minimum]
    thought = Thought(
        "Semantic ranker",
        f"The ranker ordered {len(texts)} passages.",
        {"ranker": name, "candidates": len(texts), "minimum_reranker_score": minimum},
    )
    return Ranking(
        tuple(passages[place] for place in kept),
        {passages[place].passage_id: round(scores.get(place, 0.0), 3) for place in kept},
        thought,
    )


def _unranked(
    passages: Sequence[FoundPassage], why: str, props: Mapping[str, str], options: Options
) -> Ranking:
    description = f"{why} {NO_MINIMUM}" if options.minimum_ranker_score else why
    return Ranking(tuple(passages), {}, Thought("Semantic ranker", description, props or None))
