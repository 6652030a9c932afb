"""The list of documents: filters, counts, and pages that stay stable while documents come and go."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, cast, get_args
from uuid import UUID

from django.db.models import Count, Prefetch, Q
from django.utils import timezone

from chatsite.accounts.principal import Principal
from ingestion.models import (
    EXPIRY_REMINDER,
    AccessEntry,
    Document,
    DocumentQuerySet,
)

Show = Literal["all", "mine", "running", "failed", "ending"]

PAGE_SIZE = 50
SHOWN_OF_PEOPLE = ("username", "first_name", "last_name", "guest_until")  # for display_name
QUERY_LENGTH = 200
CURSOR = re.compile(r"([0-9]{1,16})-([0-9a-f]{32})")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody wants listed."""

    show: Show = "all"
    words: str = ""
    after: str = ""

    @classmethod
    def of(cls, values: Mapping[str, str]) -> "Wish":
        """From the address of the page; what is unknown is left out."""
        show = values.get("show", "")
        words = values.get("q", "").replace("\x00", "").strip()[:QUERY_LENGTH]
        known = cast(Show, show) if show in get_args(Show) else "all"
        return cls(known, words, values.get("after", ""))


@dataclass(frozen=True, slots=True)
class Listed:
    """One page, and the cursor of the next (empty at the end)."""

    documents: list[Document]
    next: str


def _conditions(principal: Principal) -> dict[Show, Q]:
    mine = Q(owner_id=principal.user_id)
    return {
        "all": Q(),
        "mine": mine,
        "running": mine & Q(status__in=Document.UNFINISHED),
        "failed": mine & Q(status=Document.Status.FAILED),
        "ending": mine & Q(valid_until__lte=timezone.localdate() + EXPIRY_REMINDER),
    }


def listed_for(principal: Principal) -> DocumentQuerySet:
    """What the caller may read, and of their own also what is not read yet or failed."""
    readable = Document.objects.visible_to(principal)
    return readable.filter(Q(version__gt=0) | Q(owner_id=principal.user_id))


def with_readers(documents: DocumentQuerySet) -> DocumentQuerySet:
    """With owner and access list, so that a row costs no query of its own."""
    entries = (
        AccessEntry.objects.select_related("user", "group")
        .only("access_list", "guests", "group__name", *(f"user__{name}" for name in SHOWN_OF_PEOPLE))
        .order_by("group__name", "user__username")
    )
    return documents.select_related("owner").prefetch_related(Prefetch("access_list__entries", entries))


def counts(principal: Principal) -> dict[str, int]:
    """How many documents stand behind each filter."""
    named = {name: Count("pk", filter=condition) for name, condition in _conditions(principal).items()}
    return listed_for(principal).order_by().aggregate(**named)


def page(principal: Principal, wish: Wish) -> Listed:
    """The newest first, `PAGE_SIZE` at a time, after the cursor."""
    found = listed_for(principal).filter(_conditions(principal)[wish.show])
    return page_of(with_readers(found), wish.words, wish.after, PAGE_SIZE)


def page_of(found: DocumentQuerySet, words: str, after: str, size: int) -> Listed:
    """Those with all the words, the newest first, `size` at a time, after the cursor."""
    for word in words.split():
        found = found.with_word(word)
    match = CURSOR.fullmatch(after)
    if match:
        moment, last = EPOCH + timedelta(microseconds=int(match[1])), UUID(match[2])
        found = found.filter(Q(created_at__lt=moment) | Q(created_at=moment, public_id__lt=last))
    rows = list(found.order_by("-created_at", "-public_id")[: size + 1])
    return Listed(rows[:size], _cursor(rows[size - 1]) if len(rows) > size else "")


def _cursor(document: Document) -> str:
    # Time and public id, not the row's number: that would tell how many documents there are.
    microseconds = (document.created_at - EPOCH) // timedelta(microseconds=1)
    return f"{microseconds}-{document.public_id.hex}"
