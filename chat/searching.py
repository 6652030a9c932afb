"""Looking for conversations by their titles and their text: the portal's page of results."""

from dataclasses import dataclass

from django.core.paginator import Page, Paginator

from chatsite.accounts.principals import Principal
from history import search
from history.models import Conversation

PER_PAGE = 30
cleaned = search.cleaned  # what of a query is looked for


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


def conversations(principal: Principal, query: str, page: str | None) -> tuple[Page, list[Result]]:  # type: ignore[type-arg]
    """One page of the caller's conversations with these words; all of them for an empty query."""
    rows = search.matching(principal, query) if query else Conversation.objects.owned_by(principal)
    found = Paginator(rows, PER_PAGE).get_page(page)
    hits = search.hits(principal, [row.pk for row in found], query)
    return found, [
        Result(
            row,
            _cut(search.excerpt(row.title or "New conversation", query, whole=True)),
            _cut(hits[row.pk][0].excerpt) if row.pk in hits else None,
        )
        for row in found
    ]


def _cut(excerpt: search.Excerpt) -> Excerpt:
    """At its first hit."""
    start, end = excerpt.marks[0] if excerpt.marks else (len(excerpt.text),) * 2
    return Excerpt(excerpt.text[:start], excerpt.text[start:end], excerpt.text[end:])
