"""Splits a long conversation into pages of turns, and finds the page that shows a message."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.urls import reverse

from history.models import Conversation, Message

TURNS_SHOWN = 50  # turns on one page of a conversation


@dataclass(frozen=True, slots=True)
class TurnsPage:
    """Consecutive turns of a conversation, and positions on the adjacent pages."""

    first: int = 0  # position of the first question
    end: int | None = None  # position of the question after the last turn; None if there is none
    older: int | None = None  # position of a question on the previous page; None if this is the oldest
    newer: int | None = None  # position on the next page; None if this or the next page is the newest

    @property
    def is_newest(self) -> bool:
        return self.end is None


def page_at(asked: Sequence[int], at: int | None) -> TurnsPage:
    """The page that ends with the turn at position `at`.

    Returns the newest page if it contains that turn, or if `at` is None or before the first question.

    `asked` are the positions of all questions, in order.
    """
    newest = max(0, len(asked) - TURNS_SHOWN)
    end = len(asked) if at is None else bisect_right(asked, at)
    if end > newest or not end:
        first = asked[newest] if newest else 0
        return TurnsPage(first, older=asked[newest - 1] if newest else None)
    start = max(0, end - TURNS_SHOWN)
    following = min(end + TURNS_SHOWN, newest)
    return TurnsPage(
        asked[start],
        asked[end],
        older=asked[start - 1] if start else None,
        newer=asked[following - 1] if following > end else None,
    )


def asked_in(conversation: Conversation) -> list[int]:
    """The positions of the questions of the chosen branch, in order."""
    asked = conversation.messages.chosen().filter(role=Message.Role.USER).order_by("position")
    return list(asked.values_list("position", flat=True))


def address_of(conversation_id: UUID, position: int, last: int | None = None) -> str:
    """The URL of the page with this position of the chosen branch.

    `last` is the last position of that branch, if known.
    """
    url = reverse("chat:conversation", args=[conversation_id])
    if last is None:
        chosen = Message.objects.filter(conversation=conversation_id).chosen()
        last = chosen.order_by("-position").values_list("position", flat=True).first() or 0
    # A turn has at least one message, so the last TURNS_SHOWN positions are all on the newest page.
    return f"{url}?at={position}" if last - position >= TURNS_SHOWN else url


EVERYTHING = TurnsPage()
