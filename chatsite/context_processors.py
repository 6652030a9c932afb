"""What every page of the portal shows: the site's name, the theme, and the caller's conversations.

All of it is lazy: a page that does not show the sidebar costs no query for it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from typing import Any

from django.conf import settings
from django.db.models import Exists, OuterRef
from django.http import HttpRequest
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.functional import SimpleLazyObject, cached_property

from chatsite.accounts.authentication import session_principal
from chatsite.accounts.preferences import Preferences
from chatsite.demo import accounts_on_page
from history.models import Conversation, Message
from ingestion.models import Document

SIDEBAR_ROWS = 30


@dataclass
class Group:
    """Conversations under one heading of the sidebar."""

    name: str
    rows: list[Conversation] = field(default_factory=list)


def period(day: date, today: date) -> str:
    """The heading of the sidebar for conversations of `day`."""
    age = (today - day).days
    if age <= 0:
        return "Today"
    if age == 1:
        return "Yesterday"
    for days in (7, 30):
        if age <= days:
            return f"Last {days} days"
    return date_format(day, "F Y")


def grouped(rows: Iterable[Conversation], today: date) -> list[Group]:
    """Rows, newest first, under their headings."""
    groups: list[Group] = []
    for row in rows:
        name = period(timezone.localdate(row.updated_at), today)
        if not groups or groups[-1].name != name:
            groups.append(Group(name))
        groups[-1].rows.append(row)
    return groups


class Sidebar:
    """The caller's newest conversations, and what they may search; each part is read when it is shown."""

    def __init__(self, request: HttpRequest) -> None:
        self._principal = session_principal(request)
        self._name = request.user.get_username()

    @cached_property
    def _conversations(self) -> list[Conversation]:
        unfinished = Message.objects.filter(conversation=OuterRef("pk"), state__in=Message.UNFINISHED)
        rows = Conversation.objects.owned_by(self._principal).annotate(running=Exists(unfinished))
        return list(rows[: SIDEBAR_ROWS + 1])

    @cached_property
    def groups(self) -> list[Group]:
        return grouped(self._conversations[:SIDEBAR_ROWS], timezone.localdate())

    @property
    def more(self) -> bool:
        return len(self._conversations) > SIDEBAR_ROWS

    @cached_property
    def total(self) -> int:
        return Conversation.objects.owned_by(self._principal).count()

    @cached_property
    def readable(self) -> int:
        """How many documents an answer may draw on."""
        return Document.objects.visible_to(self._principal).searchable().count()

    @property
    def initials(self) -> str:
        return self._name[:2].upper()


def site(request: HttpRequest) -> dict[str, Any]:
    return {
        "site_name": settings.SITE_NAME,
        "preferences": Preferences.of(request.COOKIES),
        # The function, so that only the sign-in page, which calls it, pays for it.
        "demo_accounts": partial(accounts_on_page, request),
        "sidebar": SimpleLazyObject(lambda: Sidebar(request)),
    }
