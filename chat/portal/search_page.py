"""The page with search results from the caller's conversations."""

import re
from dataclasses import dataclass
from urllib.parse import quote
from uuid import UUID

from django.db.models import Max
from django.urls import reverse
from django.utils.translation import gettext

from chatsite.accounts.principal import Principal
from history import conversation_lists, message_search
from history.models import Conversation, Message

from .conversation.turn_pages import address_of

PER_PAGE = 30
# The two words before a hit, and after it. None of them may be a citation, which is displayed as a number, or
# a word that is cut off at an end of the excerpt.
_WORDS_BEFORE = re.compile(r"\s([^\s…\[\]]{1,40}\s[^\s…\[\]]{1,40}\s?)\Z")
_WORD_AFTER = re.compile(r"(\s?[^\s…\[\]]{1,40}\s[^\s…\[\]]{1,40})\s")
cleaned = message_search.cleaned  # returns the searchable part of a query


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
    url: str  # URL of the matching message, or of the conversation


def conversations(
    principal: Principal, query: str, cursor: str, *, archived: bool = False
) -> tuple[list[Result], str]:
    """A page of the caller's conversations that match, newest first.

    Also returns the cursor of the next page. The first page begins with up to PER_PAGE conversations whose
    title has all the words. An empty query lists all current conversations, or all archived ones. An
    invalid cursor returns the first page.
    """
    below = place_in_list(cursor)
    if query:
        titled = message_search.titled(principal, query, PER_PAGE)
        rows, following = _further_matches(principal, query, titled, below)
        if below is None:
            rows = [*titled, *rows]
    else:
        mine = Conversation.objects.owned_by(principal)
        listed = mine.exclude(archived_at=None) if archived else mine.current()
        rows, following = conversation_lists.page(listed, PER_PAGE, below)
    hits = message_search.hits(principal, [row.pk for row in rows], query)
    chosen = Message.objects.filter(conversation__in=hits).chosen().order_by()
    last = dict(chosen.values_list("conversation").annotate(Max("position"))) if hits else {}
    results = [
        Result(
            row,
            _cut(message_search.excerpt(row.title or gettext("New conversation"), query, whole=True)),
            _cut(hits[row.pk][0].excerpt) if row.pk in hits else None,
            url_of_match(row.pk, hits[row.pk][0] if row.pk in hits else None, last.get(row.pk)),
        )
        for row in rows
    ]
    return results, conversation_lists.cursor(following) if following else ""


def _further_matches(
    principal: Principal, query: str, known: list[Conversation], below: conversation_lists.Place | None
) -> tuple[list[Conversation], conversation_lists.Place | None]:
    """The next matches that are not `known`, and the start of the following page."""
    keys = {row.pk for row in known}
    while True:
        page, following = message_search.page(principal, query, PER_PAGE, below)
        rows = [row for row in page if row.pk not in keys]
        if rows or following is None:
            return rows, following
        below = following


def url_of_match(conversation_id: UUID, hit: message_search.Hit | None, last: int | None = None) -> str:
    """The URL of a matching message, or of the conversation.

    `last` is the last position of the chosen branch, if known. The URL of an answer has a text fragment that
    highlights the match. Browsers highlight the first occurrence on the page, and the sidebar comes before
    the answer, so the fragment also contains the words before or after the match; without such words, it is
    omitted. The URL of a question has no fragment, because the sidebar shows questions as titles.
    """
    if hit is None:
        return reverse("chat:conversation", args=[conversation_id])
    url = address_of(conversation_id, hit.message.position, last)
    kind = "q" if hit.message.role == Message.Role.USER else "m"
    anchor = f"{url}#{kind}-{hit.message.position}"
    if kind == "q" or not hit.excerpt.marks:
        return anchor
    text, (start, end) = hit.excerpt.text, hit.excerpt.marks[0]
    prefix, suffix = _WORDS_BEFORE.search(text[:start]), _WORD_AFTER.match(text[end:])
    if prefix:
        fragment = f"{_in_fragment(prefix[1])}-,{_in_fragment(text[start:end])}"
    elif suffix:
        fragment = f"{_in_fragment(text[start:end])},-{_in_fragment(suffix[1])}"
    else:
        return anchor
    return f"{anchor}:~:text={fragment}"


def _in_fragment(text: str) -> str:
    """The text percent-encoded, including hyphens, which have a special meaning in text fragments."""
    return quote(text.strip(), safe="").replace("-", "%2D")


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
