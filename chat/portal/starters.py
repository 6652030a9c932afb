"""The key that a browser gives to each question, so that a question sent twice is asked once."""

import re
from dataclasses import dataclass

from chatsite.accounts.principal import Principal
from ingestion.models import Document, Passage

KEY = re.compile(r"[A-Za-z0-9-]{8,64}", re.ASCII)


def key_of(value: object) -> str | None:
    """None for what no page of ours has sent: such a question is simply asked."""
    return value if isinstance(value, str) and KEY.fullmatch(value) else None


STARTS = 3
LOOKED_AT = 24


@dataclass(frozen=True, slots=True)
class Start:
    """A question, and where its answer comes from."""

    question: str
    origin: str


def starts(principal: Principal) -> list[Start]:
    """At most three, from different folders or categories where there are any."""
    newest = Document.objects.visible_to(principal).searchable().order_by("-pk")[:LOOKED_AT]
    chosen: dict[str, Document] = {}
    rest: list[Document] = []
    for document in newest:
        origin = document.folder or document.category
        if origin in chosen:
            rest.append(document)
        else:
            chosen[origin] = document
    documents = [*chosen.values(), *rest][:STARTS]
    headings = _headings([document.pk for document in documents])
    found = {
        _question(document, headings.get(document.pk, "")): document.category or document.folder
        for document in documents
    }
    return [Start(question, origin) for question, origin in found.items()]


def _headings(documents: list[int]) -> dict[int, str]:
    """A heading from within each document."""
    rows = Passage.objects.filter(document__in=documents, position__gt=1).exclude(heading="")
    return dict(
        rows.order_by("document_id", "position").distinct("document_id").values_list("document_id", "heading")
    )


def _question(document: Document, heading: str) -> str:
    title = document.title or document.name
    last = heading.rpartition(" › ")[2].strip(" .:")
    if last and last.casefold() != title.casefold() and len(last) <= 80:
        return f"What does “{title}” say about “{last}”?"
    return f"What are the main points of “{title}”?"
