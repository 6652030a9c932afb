"""Continues an answer that was cut short, with the same sources."""

from dataclasses import dataclass, replace
from typing import cast

from chat.events import thought_from_json
from history.models import Message, Source
from ingestion.search import retrieval
from ingestion.search.fusion import FoundBy

from .run import AcceptedRun
from .searching import Search, as_source


@dataclass(frozen=True, slots=True)
class PartialAnswer:
    """The text so far and its sources."""

    text: str
    found: Search


def partial_answer(run: AcceptedRun) -> PartialAnswer | None:
    """The text and its sources; None if a source was deleted, withdrawn or read again since.

    The text based on such a source is not given to the model: the question is answered from the beginning.
    """
    former = Message.objects.owned_by(run.principal).get(pk=run.request.continues)
    sources = list(Source.objects.visible_to(run.principal).filter(message=former).order_by("rank"))
    passages = retrieval.load(run.principal, [source.passage_id for source in sources])
    if [passage.label for passage in passages] != former.labels:
        return None
    found = [
        replace(passage, score=source.score, found_by=cast(FoundBy, source.found_by))
        for passage, source in zip(passages, sources, strict=True)
    ]
    thoughts = [thought_from_json(each) for each in former.thoughts]
    searched = tuple(each for each in thoughts if each.title == "Generated search query")
    views = tuple(as_source(rank, passage) for rank, passage in enumerate(found, start=1))
    return PartialAnswer(former.content, Search(run.request.question, views, tuple(found), searched, ()))
