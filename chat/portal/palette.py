"""The command palette (Ctrl or ⌘ K), as HTML for its script.

It finds conversations, projects, documents, pages and themes.
"""

from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import resolve, reverse
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.http import require_safe

from chatsite.accounts.guests import welcomes
from chatsite.accounts.models import User
from chatsite.accounts.page_decorators import for_caller
from chatsite.accounts.principal import Principal
from history import projects
from ingestion.portal import library as documents

from .search_page import Excerpt, cleaned, conversations

MAX_CONVERSATIONS = 6
MAX_PROJECTS = 4
MAX_DOCUMENTS = 4
PAGES = (  # view, query, icon, name
    ("chat:new", "", "new", gettext_lazy("New question")),
    ("chat:search", "", "search", gettext_lazy("All conversations")),
    ("chat:search", "?show=archived", "archive", gettext_lazy("Archived conversations")),
    ("chat:projects", "", "folder", gettext_lazy("Projects")),
    ("chat:new-project", "", "new", gettext_lazy("New project")),
    ("ingestion:documents", "", "docs", gettext_lazy("Documents")),
    ("ingestion:add", "", "upload", gettext_lazy("Add documents")),
    ("chat:shared-with-me", "", "people", gettext_lazy("Shared with me")),
    ("chat:shares", "", "share", gettext_lazy("Shared links")),
    ("accounts:settings", "", "settings", gettext_lazy("Settings")),
    ("accounts:help", "", "help", gettext_lazy("Help")),
)
ADMIN_PAGES = (  # view, permissions (any one suffices), icon, name
    ("admin:index", (), "settings", gettext_lazy("Admin")),
    (
        "admin:chat_verifiedanswer_unanswered",
        ("chat.view_unanswered",),
        "search",
        gettext_lazy("Unanswered questions"),
    ),
    (
        "admin:chat_verifiedanswer_changelist",
        ("chat.view_verifiedanswer", "chat.change_verifiedanswer"),
        "verified",
        gettext_lazy("Verified answers"),
    ),
    (
        "admin:ingestion_document_changelist",
        ("ingestion.view_document", "ingestion.change_document"),
        "docs",
        gettext_lazy("Documents in the admin"),
    ),
    (
        "admin:accounts_user_changelist",
        ("accounts.view_user", "accounts.change_user"),
        "people",
        gettext_lazy("People"),
    ),
)
THEMES = (  # value, name
    ("light", gettext_lazy("Appearance: light")),
    ("dark", gettext_lazy("Appearance: dark")),
    ("auto", gettext_lazy("Appearance: same as the device")),
)


@dataclass(frozen=True, slots=True)
class Entry:
    """A link or a theme. `more` is a conversation's text around a hit, or a document's folder."""

    icon: str
    name: str
    url: str
    more: str = ""
    theme: str = ""


@require_safe
@for_caller
def palette(request: HttpRequest, principal: Principal) -> HttpResponse:
    """The entries that match the words in `q`.

    Without words, these are the latest conversations, and all pages and themes that the caller may use.
    """
    query = cleaned(request.GET.get("q", ""))
    results, _ = conversations(principal, query, "")
    asked = [
        Entry("search", _whole(each.title), each.url, _whole(each.text) if each.text else "")
        for each in results[:MAX_CONVERSATIONS]
    ]
    if query and asked:
        everything = f"{reverse('chat:search')}?{urlencode({'q': query})}#found"
        asked.append(
            Entry("search", gettext("All conversations with “%(words)s”") % {"words": query}, everything)
        )
    found_projects = projects.named(principal, query)[:MAX_PROJECTS] if query else []
    named = [Entry("folder", each.name, reverse("chat:project", args=[each.pk])) for each in found_projects]
    listing = documents.ListingQuery(words=query)
    found_documents = documents.page(principal, listing).documents[:MAX_DOCUMENTS] if query else []
    titled = [
        Entry(
            "doc",
            each.title or each.name,
            reverse("ingestion:document", args=[each.public_id]),
            each.shown_folder,
        )
        for each in found_documents
    ]
    words = query.casefold().split()
    is_guest = getattr(request.user, "is_guest", True)
    pages = [
        Entry(icon, str(name), reverse(view) + address_query)
        for view, address_query, icon, name in PAGES
        if all(word in str(name).casefold() for word in words)
        if not is_guest or welcomes(resolve(reverse(view)).func)
    ]
    user = request.user
    is_staff = isinstance(user, User) and user.is_active and user.is_staff
    administered = [
        Entry(icon, str(name), reverse(view))
        for view, permissions, icon, name in ADMIN_PAGES
        if is_staff and (not permissions or any(map(user.has_perm, permissions)))
        if all(word in str(name).casefold() for word in words)
    ]
    themes = [
        Entry("theme", str(name), reverse("accounts:settings"), theme=theme)
        for theme, name in THEMES
        if not is_guest and all(word in str(name).casefold() for word in words)
    ]
    groups = [
        (gettext("Conversations"), asked),
        (gettext("Projects"), named),
        (gettext("Documents"), titled),
        (gettext("Pages"), pages),
        (gettext("Admin"), administered),
        (gettext("Appearance"), themes),
    ]
    context = {"query": query, "groups": [(name, entries) for name, entries in groups if entries]}
    return render(request, "chat/palette.html", context)


def _whole(excerpt: Excerpt) -> str:
    return f"{excerpt.before}{excerpt.hit}{excerpt.after}"
