"""Reranks the best candidates of a search."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.conf import settings

from chat.events import Thought
from chat.llm import ChatModel
from chat.llm.base import rerank
from chat.requests import Options
from ingestion.search.retrieval import FoundPassage

CANDIDATES = 30
CHARACTERS = 1_000  # of a passage, sent to the ranker
MIN_SHARE = 0.5  # of the passages that must have a score for the order to count

NO_RANKER = "This site has no ranker, so the order is the search’s own. A ranker needs a model."
FAILED = "The ranker did not answer, so the order is the search’s own."
NO_MINIMUM = "“minimum_reranker_score” has no effect without a ranker."


@dataclass(frozen=True, slots=True)
class Ranking:
    """Passages in the ranker's order; without a ranker in the search's order, and no scores."""

    passages: tuple[FoundPassage, ...]
    scores: Mapping[int, float]  # of passages, by their ids: 0 to 4
    thought: Thought


async def ranked(model: ChatModel, query: str, passages: Sequence[FoundPassage], options: Options) -> Ranking:
    """The passages in the ranker's order, without those below the minimum score."""
    texts: list[str] = []
    for passage in passages:
        place = " › ".join(part for part in (passage.title, passage.heading) if part)
        content = " ".join(passage.content.split())
        texts.append((f"{place}: {content}" if place else content)[:CHARACTERS])
    name = settings.RERANK_MODEL or model.name
    scores: dict[int, float] | None = {}
    if texts:
        scores = await (rerank(query, texts) if settings.RERANK_MODEL else model.graded(query, texts))
    if scores is None:
        return _unranked(passages, NO_RANKER, {}, options)
    if len(scores) < MIN_SHARE * len(texts):
        return _unranked(passages, FAILED, {"ranker": name}, options)
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
