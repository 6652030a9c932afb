"""The page of search results in the caller's conversations."""

from dataclasses import dataclass
from urllib.parse import quote
from uuid import UUID

from django.urls import reverse
from django.utils.translation import gettext

from chatsite.accounts.principal import Principal
from history import conversation_lists, message_search
from history.models import Conversation, Message

PER_PAGE = 30
cleaned = message_search.cleaned  # the searchable part of a query


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Text around a hit."""

    before: str
    hit: str
    after: str


@dataclass(frozen=True, slots=True)
class Result:
    """A conversation with the matching text in its title and messages."""

    conversation: Conversation
    title: Excerpt
    text: Excerpt | None
    url: str  # of the matching message, or of the conversation


def conversations(
    principal: Principal, query: str, cursor: str, *, archived: bool = False
) -> tuple[list[Result], str]:
    """A page of the caller's conversations that match, newest first, and the cursor of the next page.

    An empty query matches all archived ones, or all others. An unknown cursor gives the first page.
    """
    below = place_in_list(cursor)
    if query:
        rows, following = message_search.page(principal, query, PER_PAGE, below)
    else:
        mine = Conversation.objects.owned_by(principal)
        listed = mine.exclude(archived_at=None) if archived else mine.current()
        rows, following = conversation_lists.page(listed, PER_PAGE, below)
    hits = message_search.hits(principal, [row.pk for row in rows], query)
    results = [
        Result(
            row,
            _cut(message_search.excerpt(row.title or gettext("New conversation"), query, whole=True)),
            _cut(hits[row.pk][0].excerpt) if row.pk in hits else None,
            place_of(row.pk, hits[row.pk][0] if row.pk in hits else None),
        )
        for row in rows
    ]
    return results, conversation_lists.cursor(following) if following else ""


def place_of(conversation_id: UUID, hit: message_search.Hit | None) -> str:
    """The URL of a matching message, with a text fragment that highlights the words."""
    url = reverse("chat:conversation", args=[conversation_id])
    if hit is None:
        return url
    kind = "q" if hit.message.role == Message.Role.USER else "m"
    anchor = f"{url}#{kind}-{hit.message.position}"
    if not hit.excerpt.marks:
        return anchor
    start, end = hit.excerpt.marks[0]
    return f"{anchor}:~:text={quote(hit.excerpt.text[start:end], safe='')}"


def place_in_list(cursor: str) -> conversation_lists.Place | None:
    """The place of a cursor in a URL; None for the first page."""
    try:
        return conversation_lists.place_of(cursor) if cursor else None
    except ValueError:
        return None


def _cut(excerpt: message_search.Excerpt) -> Excerpt:
    """The text, split at its first hit."""
    start, end = excerpt.marks[0] if excerpt.marks else (len(excerpt.text),) * 2
    return Excerpt(excerpt.text[:start], excerpt.text[start:end], excerpt.text[end:])
