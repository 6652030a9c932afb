"""The pages of a passage that was joined with the rest of its table across page breaks."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db.models import Q

from history.models import Source
from ingestion.models import Passage

MAX_PAGES = 2  # a passage may extend to this many pages before and after its own page


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a source's content, at start:end, and its page."""

    start: int
    end: int
    page: int


Stretches = Sequence[Stretch]  # in the order of the text


def stretches_of(sources: Iterable[Source]) -> dict[int, Stretches]:
    """The parts of each source that is on several pages, by its key, in at most one query.

    Sources on one page, and sources from an earlier version of their document, are left out.
    """
    joined = {source.pk: source for source in sources if _may_be_joined(source)}
    if not joined:
        return {}
    wanted = Q()
    for document, own in {(source.document_id, source.page or 0) for source in joined.values()}:
        wanted |= Q(document=document, page__range=(own - MAX_PAGES, own + MAX_PAGES))
    near: dict[int, list[tuple[int, int, str]]] = defaultdict(list)
    rows = Passage.objects.filter(wanted).order_by("document", "position")
    for document, passage, page, content in rows.values_list("document_id", "pk", "page", "content"):
        near[document].append((passage, page or 0, content))
    found = {pk: _stretches(source, near[source.document_id]) for pk, source in joined.items()}
    return {pk: each for pk, each in found.items() if len(pages_of(each)) > 1}


def pages_of(stretches: Stretches, spans: Iterable[Sequence[int]] | None = None) -> list[int]:
    """The pages of these spans, in the order of the spans; without spans, of the whole content."""
    if spans is None:
        return sorted({each.page for each in stretches})
    on = (each.page for start, end in spans for each in stretches if start < each.end and each.start < end)
    return list(dict.fromkeys(on))


def spans_on(page: int, stretches: Stretches, spans: Iterable[Sequence[int]]) -> list[tuple[int, int]]:
    """The parts of these spans that are on the page."""
    return [
        (max(start, each.start), min(end, each.end))
        for start, end in spans
        for each in stretches
        if each.page == page and start < each.end and each.start < end
    ]


def _may_be_joined(source: Source) -> bool:
    is_current = source.document.version == source.document_version
    is_paged = bool(source.page) and source.document.media_type == "application/pdf"
    if not (is_paged and is_current):
        return False
    return any("; " in line and line.count(": ") > 1 for line in source.content.split("\n"))


def _stretches(source: Source, passages: Sequence[tuple[int, int, str]]) -> Stretches:
    """The parts of the content that are passages: the source's own, and adjacent ones."""
    own = next((place for place, row in enumerate(passages) if row[0] == source.passage_id), None)
    if own is None or (start := source.content.find(passages[own][2])) < 0:
        return []
    end = start + len(passages[own][2])
    found = [Stretch(start, end, passages[own][1])]
    for _, page, content in passages[own + 1 :]:
        place = source.content.find(content, end)
        if place < 0 or source.content[end:place].strip():
            break
        end = place + len(content)
        found.append(Stretch(place, end, page))
    for _, page, content in reversed(passages[:own]):
        place = source.content.rfind(content, 0, start)
        if place < 0 or source.content[place + len(content) : start].strip():
            break
        start = place
        found.insert(0, Stretch(place, place + len(content), page))
    return found
