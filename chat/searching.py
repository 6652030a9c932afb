"""Looking for conversations by their titles and their text."""

from dataclasses import dataclass
from uuid import UUID

from django.core.paginator import Page, Paginator
from django.db.models import Exists, OuterRef, Q

from chatsite.accounts.principals import Principal
from history.models import Conversation, Message

from .rendering import BRACKETS

PER_PAGE = 30
QUERY_LENGTH = 200
AROUND = 90  # characters shown on either side of a hit


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Text around a hit."""

    before: str
    hit: str
    after: str


@dataclass(frozen=True, slots=True)
class Result:
    """A conversation, and where the words stand in it."""

    conversation: Conversation
    title: Excerpt
    text: Excerpt | None


def cleaned(query: str) -> str:
    return " ".join(query.replace("\x00", " ").split())[:QUERY_LENGTH]


def conversations(principal: Principal, query: str, page: str | None) -> tuple[Page, list[Result]]:  # type: ignore[type-arg]
    """One page of the caller's conversations with these words; all of them for an empty query."""
    rows = Conversation.objects.owned_by(principal)
    if query:
        said = Message.objects.filter(conversation=OuterRef("pk"), content__icontains=query)
        rows = rows.filter(Q(title__icontains=query) | Exists(said))
    found = Paginator(rows, PER_PAGE).get_page(page)
    ids = [row.pk for row in found]
    texts = _texts(ids, query) if query else {}
    return found, [
        Result(row, excerpt(row.title or "New conversation", query, whole=True), texts.get(row.pk))
        for row in found
    ]


def _texts(ids: list[UUID], query: str) -> dict[UUID, Excerpt]:
    """The first hit in each conversation's text."""
    hits = Message.objects.filter(conversation__in=ids, content__icontains=query)
    first = hits.order_by("conversation_id", "position").distinct("conversation_id")
    return {
        message.conversation_id: excerpt(without_citations(message), query)
        for message in first.only("conversation_id", "content", "citations")
    }


def without_citations(message: Message) -> str:
    """The text without the names of its sources, which the reader may have lost the right to open."""
    cited = set(message.citations)
    return BRACKETS.sub(lambda match: "" if match[1] in cited else match[0], message.content)


def excerpt(text: str, query: str, *, whole: bool = False) -> Excerpt:
    """The text around the first hit, or its beginning where there is none."""
    at = text.casefold().find(query.casefold()) if query else -1
    if at < 0:
        return Excerpt(text if whole else text[: 2 * AROUND], "", "")
    end = at + len(query)
    if whole:
        return Excerpt(text[:at], text[at:end], text[end:])
    before = text[max(0, at - AROUND) : at]
    after = text[end : end + AROUND]
    return Excerpt(
        ("… " if at > AROUND else "") + before,
        text[at:end],
        after + (" …" if end + AROUND < len(text) else ""),
    )
