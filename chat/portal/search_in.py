"""The page “Search in”, on which people choose a scope by searching folders and documents.

Folders and categories are found by words in their names, documents also by title and folder. For a question,
the page stores nothing: it passes the typed text and the chosen scope back to the question box.
"""

from dataclasses import dataclass
from itertools import islice
from typing import Any
from uuid import UUID

from django.db.models import Case, Count, When
from django.db.models.functions import Lower
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods

from chat.requests import MAX_SCOPE_DOCUMENTS, is_scope
from chatsite.accounts.page_decorators import for_caller, signed_in
from chatsite.accounts.principal import Principal
from history import projects
from ingestion.attachment_folder import as_shown
from ingestion.models import Document, DocumentQuerySet
from ingestion.search.scopes import CATEGORY, DOCUMENT, FOLDER, kept_apart

from .project_pages import open_project, or_404, own_project, question_page
from .search_page import cleaned
from .views import (
    SeeOther,
    own_conversation,
    scope_asked_for,
    typed,
)

MAX_PLACES = 12  # maximum number of folders, and of categories, that are offered at once
MAX_DOCUMENTS = 12
# Parent folders are offered down to this level: thousands of folders with hundreds of levels each could have
# more than a million parents.
MAX_DEPTH = 10


@dataclass(frozen=True, slots=True)
class ScopeTarget:
    """The URL of the form, and the current scope."""

    action: str
    scope: str


@dataclass(frozen=True, slots=True)
class Place:
    """A folder or category, with the number of documents that the reader can search there."""

    scope: str
    name: str
    documents: int


@require_http_methods(["GET", "HEAD", "POST"])
@for_caller
def search_in(
    request: HttpRequest, principal: Principal, conversation_id: UUID | None = None
) -> HttpResponse:
    """Show the page to choose a scope; after the choice, return to the page with the question."""
    row = own_conversation(principal, conversation_id) if conversation_id else None
    scope, problem = _chosen(request)
    if scope:
        return question_page(request, principal, row, scope)
    target = ScopeTarget(
        reverse("chat:search-in-conversation", args=[row.pk]) if row else reverse("chat:search-in"),
        row.scope if row else "",
    )
    return _page(request, principal, target, problem)


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def search_in_project(request: HttpRequest, principal: Principal, project_id: UUID) -> HttpResponse:
    """Like :func:`search_in`, for the first question of a conversation in a project."""
    project = open_project(principal, project_id)
    scope, problem = _chosen(request)
    if scope:
        return question_page(request, principal, project, scope)
    target = ScopeTarget(reverse("chat:search-in-project", args=[project.pk]), project.scope)
    return _page(request, principal, target, problem)


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def project_scope(request: HttpRequest, principal: Principal, project_id: UUID) -> HttpResponse:
    """Like :func:`search_in`, but stores the scope for new conversations in a project."""
    project = own_project(principal, project_id)
    scope, problem = _chosen(request)
    if scope:
        with or_404():
            projects.set_scope(principal, project.pk, scope)
        return SeeOther(reverse("chat:project", args=[project.pk]))
    target = ScopeTarget(reverse("chat:project-scope", args=[project.pk]), project.scope)
    return _page(request, principal, target, problem)


def _chosen(request: HttpRequest) -> tuple[str, str]:
    """The chosen scope and an error message; one or both are empty."""
    scope = request.POST.get("use", "")
    if scope != DOCUMENT:
        return (scope if is_scope(scope) else ""), ""
    ticked = list(dict.fromkeys(request.POST.getlist("document")))
    if not ticked:
        return "", gettext("Tick at least one document, or choose something else on this page.")
    if len(ticked) > MAX_SCOPE_DOCUMENTS:
        return "", gettext("At most %(number)s documents can be chosen.") % {"number": MAX_SCOPE_DOCUMENTS}
    return f"{DOCUMENT}:{','.join(ticked)}", ""


def _page(request: HttpRequest, principal: Principal, target: ScopeTarget, problem: str) -> HttpResponse:
    values = request.POST if request.method == "POST" else request.GET
    words = cleaned(values.get("q", ""))
    chosen = scope_asked_for(values) or target.scope
    readable = Document.objects.visible_to(principal).searchable()
    # The documents selected in the form; initially those of the current scope.
    kind, _, ids = chosen.partition(":")
    is_first = kind == DOCUMENT and "tick" not in values
    named = dict.fromkeys(ids.split(",") if is_first else values.getlist("document"))
    wanted = [each for each in named if is_scope(f"{DOCUMENT}:{each}")]
    shown_name = Lower(Case(When(title="", then="name"), default="title"))
    by_name = readable.order_by(shown_name, "public_id")
    ticked = list(by_name.filter(public_id__in=wanted[: 2 * MAX_SCOPE_DOCUMENTS]))
    found = by_name.with_words(words).exclude(pk__in=[each.pk for each in ticked])
    folders = _places(FOLDER, _with_parents(_counted(readable, "folder")), words)
    categories = _places(CATEGORY, _counted(readable, "category"), words)
    documents = list(found[: MAX_DOCUMENTS + 1])
    context: dict[str, Any] = {
        "action": target.action,
        "words": words,
        "text": typed(request),
        "team": values.get("mode") == "team",
        "scope": chosen,
        # Each folder comes before those inside it.
        "folders": sorted(
            folders[:MAX_PLACES], key=lambda each: [part.casefold() for part in each.name.split("/")]
        ),
        "categories": categories[:MAX_PLACES],
        "ticked": ticked,
        "documents": documents[:MAX_DOCUMENTS],
        "apart": len(kept_apart(principal)),
        "any_documents": bool(ticked or documents) or readable.exists(),
        "more": max(len(folders), len(categories)) > MAX_PLACES or len(documents) > MAX_DOCUMENTS,
        "problem": problem,
    }
    return render(request, "chat/search_in.html", context)


def _counted(readable: DocumentQuerySet, column: str) -> dict[str, int]:
    rows = readable.exclude(**{column: ""}).order_by().values_list(column).annotate(Count("pk"))
    return dict(rows)


def _with_parents(folders: dict[str, int]) -> dict[str, int]:
    """The folders and their outer parents, each with the number of all documents in it."""
    inside: dict[str, int] = {}
    for folder, documents in folders.items():
        parts = folder.split("/", MAX_DEPTH)
        parents = ("/".join(parts[:depth]) for depth in range(1, len(parts)))
        for each in (*parents, folder):
            inside[each] = inside.get(each, 0) + documents
    return inside


def _places(kind: str, counted: dict[str, int], words: str) -> list[Place]:
    """The first folders or categories whose names have all the words; outer folders first, then by name.

    At most MAX_PLACES + 1 are returned, so that the page can say that there are more.
    """
    asked = words.casefold().split()
    shown = {name: as_shown(name) if kind == FOLDER else name for name in counted}
    in_order = sorted(counted, key=lambda name: (shown[name].count("/"), shown[name].casefold()))
    found = (
        Place(f"{kind}:{name}", shown[name], counted[name])
        for name in in_order
        if all(word in f"{name} {as_shown(name)}".casefold() for word in asked) and is_scope(f"{kind}:{name}")
    )
    return list(islice(found, MAX_PLACES + 1))
