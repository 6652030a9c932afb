"""Context of every page: the site's name, the theme, and the caller's conversations.

Values that need queries are lazy: a page without the sidebar makes no queries for it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from typing import Any

from django.http import HttpRequest
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.functional import SimpleLazyObject, cached_property
from django.utils.translation import gettext, gettext_noop, ngettext

from chat import site_texts
from chatsite.accounts.api.authentication import session_principal
from chatsite.accounts.preferences import Preferences
from chatsite.demo import accounts_on_page
from history import projects, sharing
from history.conversation_lists import SIDEBAR_ROWS, newest
from history.models import Conversation, Project
from ingestion.models import Document
from ingestion.search.scopes import count_searched

SIDEBAR_PROJECTS = 8


@dataclass
class Group:
    """Conversations under one heading of the sidebar."""

    name: str
    rows: list[Conversation] = field(default_factory=list)


def period(day: date, today: date) -> str:
    """The heading of the sidebar for conversations of `day`."""
    age = (today - day).days
    if age <= 0:
        return gettext("Today")
    if age == 1:
        return gettext("Yesterday")
    for days in (7, 30):
        if age <= days:
            return ngettext("Last %(days)d day", "Last %(days)d days", days) % {"days": days}
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
    """The caller's newest conversations and projects, with counts; each loaded when it is shown."""

    def __init__(self, request: HttpRequest) -> None:
        self._principal = session_principal(request)
        self._name = request.user.get_username()

    @cached_property
    def _conversations(self) -> list[Conversation]:
        return list(newest(self._principal, SIDEBAR_ROWS))

    @cached_property
    def _pinned(self) -> list[Conversation]:
        pinned = [row for row in self._conversations if row.pinned_at]
        return sorted(pinned, key=lambda row: row.pinned_at, reverse=True)  # type: ignore[arg-type, return-value]

    @cached_property
    def _newest(self) -> list[Conversation]:
        rows = [row for row in self._conversations if not row.pinned_at]
        return sorted(rows, key=lambda row: (row.updated_at, row.pk), reverse=True)

    @property
    def pinned(self) -> list[Group]:
        return [Group(gettext("Pinned"), self._pinned)] if self._pinned else []

    @cached_property
    def projects(self) -> list[Project]:
        """The projects that were used last."""
        return projects.newest(self._principal, SIDEBAR_PROJECTS)

    @cached_property
    def groups(self) -> list[Group]:
        return grouped(self._newest[:SIDEBAR_ROWS], timezone.localdate())

    @property
    def more(self) -> bool:
        return len(self._newest) > SIDEBAR_ROWS

    @cached_property
    def total(self) -> int:
        return Conversation.objects.owned_by(self._principal).current().count()

    @cached_property
    def unopened(self) -> int:
        """The number of other people's shares that the caller has not opened yet."""
        return sharing.unopened(self._principal)

    @cached_property
    def readable(self) -> int:
        """The number of documents that the caller's search of everything covers."""
        return count_searched(self._principal)

    @cached_property
    def awaited(self) -> int:
        """The number of visible documents that are queued or being read for the first time."""
        first = Document.objects.visible_to(self._principal).filter(version=0)
        return first.filter(status__in=Document.UNFINISHED).count()

    @property
    def initials(self) -> str:
        return self._name[:2].upper()


# The texts of the scripts in static/, which look up translations by the English text.
SCRIPT_WORDS = [
    gettext_noop("Answer complete, 1 source."),
    gettext_noop("Answer complete, {n} sources."),
    gettext_noop("Answer complete."),
    gettext_noop("Answering…"),
    gettext_noop("Asked without the files that could not be read: {n}"),
    gettext_noop("Cancel upload of {n}"),
    gettext_noop("Cancelled"),
    gettext_noop("Connection lost. Reconnecting …"),
    gettext_noop("Copied with 1 source."),
    gettext_noop("Copied with {n} sources."),
    gettext_noop("Copied."),
    gettext_noop("Nothing was copied. Select the text and copy it with the keyboard."),
    gettext_noop("Close"),
    gettext_noop("Could not be read: {n}"),
    gettext_noop("Documents: {n}"),
    gettext_noop("Earlier questions shown: {n}"),
    gettext_noop("Failed"),
    gettext_noop("Feedback removed."),
    gettext_noop("Feedback saved."),
    gettext_noop("Loading the page…"),
    gettext_noop("Nothing was saved."),
    gettext_noop("Nothing was stopped: the answer was already complete."),
    gettext_noop("On this page"),
    gettext_noop("Only the attached documents"),
    gettext_noop("Pasted"),
    gettext_noop("Remove {n}"),
    gettext_noop("“{n}” stays under Documents."),
    gettext_noop("Source"),
    gettext_noop("The answer continues."),
    gettext_noop("The connection was lost. Choose the file again to retry."),
    gettext_noop("The file is too large."),
    gettext_noop("The image of the page could not be loaded."),
    gettext_noop("The source could not be loaded."),
    gettext_noop("The upload failed. Reload the page and try again."),
    gettext_noop("This conversation was deleted. Your text is kept."),
    gettext_noop("This file is already here, unchanged."),
    gettext_noop("Choose one file."),
    gettext_noop(
        "Too many tabs of this site are open. Close some of them; this one tries again in 30 seconds."
    ),
    gettext_noop("Try again"),
    gettext_noop("Uploading"),
    gettext_noop("Uploading {n}"),
    gettext_noop("Uploading, {n} %"),
    gettext_noop("Waiting"),
    gettext_noop("You are offline. Your text is kept, and the answer continues on the server."),
    gettext_noop("You can no longer open this source."),
    gettext_noop("You were signed out. Sign in to continue."),
    gettext_noop("You were signed out. Sign in to continue; your text is kept."),
    gettext_noop("Your feedback was not saved. Try again."),
    gettext_noop(", being answered"),
    gettext_noop(", new answer"),
    gettext_noop("note {n}"),
    gettext_noop("source {n}"),
    gettext_noop("{n} new"),
    gettext_noop("{n} rows"),
]


def script_words() -> dict[str, str]:
    """The translations of the scripts' texts by the English text; empty in English."""
    translated = {words: gettext(words) for words in SCRIPT_WORDS}
    return {words: text for words, text in translated.items() if text != words}


def site(request: HttpRequest) -> dict[str, Any]:
    return {
        "site_name": site_texts.current().name,
        "site_texts": site_texts.current(),
        "preferences": Preferences.of(request.COOKIES),
        "side_closed": request.COOKIES.get("side") == "closed",
        # A function, so that the query only runs on the sign-in page, which calls it.
        "demo_accounts": partial(accounts_on_page, request),
        "script_words": script_words,
        "sidebar": SimpleLazyObject(lambda: Sidebar(request)),
    }
