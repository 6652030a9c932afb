"""Views of documents: the list, one document, its changes, and the progress of reading."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.shortcuts import get_object_or_404, render
from django.utils.formats import number_format
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from chatsite.accounts.models import User
from chatsite.accounts.page_decorators import for_caller
from chatsite.accounts.principal import Principal
from ingestion import quota
from ingestion.access.explain import why_readable
from ingestion.attachment_folder import as_shown
from ingestion.models import Document
from ingestion.parsing.formats import CONTAINERS, PAGED
from ingestion.parsing.language import TAGS
from ingestion.reasons import in_words
from ingestion.search.labels import content_address
from ingestion.search.scopes import count_searched, kept_apart
from ingestion.versions import former_versions
from ingestion.versions.changes_page import changes_page

from . import finding, library
from .descriptions import (
    Row,
    as_json,
    rows,
)
from .document_actions import (
    details_form,
    may_change,
    may_delete,
    rights_form,
)

PASSAGES_SHOWN = 20
PARTS_SHOWN = 50
MAX_STATUSES = 100


@dataclass(frozen=True, slots=True)
class Pill:
    """A filter of the list."""

    address: str
    words: str
    count: int
    current: bool


@for_caller
@require_safe
def documents(request: HttpRequest, principal: Principal) -> HttpResponse:
    """List the documents that the caller may read, filtered and in the requested order."""
    query = library.ListingQuery.of(request.GET)
    counts = library.counts(principal)
    found = library.page(principal, query)
    lines = rows(found.documents, principal)
    steps = query.folder.split("/") if query.folder else []
    words = {
        "all": gettext("All you can read"),
        "mine": gettext("Added by you"),
        "running": gettext("In progress"),
        "failed": gettext("Failed"),
    }
    if counts["ending"] or query.show == "ending":
        words["ending"] = gettext("No longer valid, or soon")
    context = {
        "query": query,
        "pills": [
            Pill(query.address(show=name), text, counts[name], name == query.show)
            for name, text in words.items()
        ],
        "choices": (choices := library.choices(principal, query)),
        "folders": [(query.address(folder=path), name, number) for path, name, number in choices.folders],
        "path": [
            (query.address(folder="/".join(steps[: depth + 1])), name if depth else as_shown(name))
            for depth, name in enumerate(steps)
        ],
        "root": query.address(folder=""),
        "first": query.address(),
        "sorts": {
            "newest": gettext("Newest first"),
            "changed": gettext("Changed last"),
            "name": gettext("By name"),
            "size": gettext("Largest first"),
        },
        "changeable": {
            line.document.pk
            for line in lines
            if may_change(request, line.document) and not line.document.part_of_id
        },
        "total": counts[query.show],
        "searchable": count_searched(principal),
        "anything": counts["all"],
        "rows": lines,
        "unfinished": any(line.unfinished for line in lines),
        "next": query.address(after=found.next) if found.next else "",
        "use": quota.usage_of(request.user) if isinstance(request.user, User) else None,
    }
    return render(request, "ingestion/documents.html", context)


@for_caller
@require_safe
def document(request: HttpRequest, principal: Principal, public_id: UUID) -> HttpResponse:
    """Shows one document: its state, readers and passages, and why the caller may read it."""
    readable = library.with_readers(Document.objects.visible_to(principal))
    found = get_object_or_404(readable.with_public_id(public_id))
    inside: list[Row] = []  # the first files in an archive or an e-mail
    if found.media_type in CONTAINERS:
        parts = library.with_readers(library.listed_for(principal)).filter(part_of=found)
        inside = rows(list(parts.order_by("part_path")[:PARTS_SHOWN]), principal)
    context: dict[str, Any] = {
        "document": found,
        "row": rows([found], principal)[0],
        "reasons": why_readable(principal, found),
        "is_apart": found.pk in kept_apart(principal),
        "may_delete": may_delete(request, found) and not found.part_of_id,
        "may_read_again": may_change(request, found),
        "may_replace": found.owner_id == principal.user_id
        and found.origin is not None
        and not found.part_of_id,
        "inside": inside,
        "left_out": [(path, in_words(reason)) for path, reason in found.left_out],
        "everything_inside": library.ListingQuery(folder="/".join(filter(None, [found.folder, found.name]))),
        "open_url": content_address(found.public_id, found.name),
        "paged": found.media_type in PAGED,
        "language_of_text": TAGS.get(found.language, ""),
        "former": former_versions.visible(principal, found).defer("content"),
        **_passages(found, request.GET),
    }
    if may_change(request, found) and not found.part_of_id:
        context["form"] = rights_form(request, found)
        context["details"] = details_form(request, found)
    return render(request, "ingestion/document.html", context)


@for_caller
@require_safe
def changes(request: HttpRequest, principal: Principal, public_id: UUID) -> HttpResponse:
    """Shows the paragraphs that differ between two versions of a document.

    By default, the versions are the newest former one and the current one.
    """
    readable = Document.objects.visible_to(principal)
    found = get_object_or_404(readable.with_public_id(public_id))
    former = former_versions.visible(principal, found)
    kept = list(former.defer("content"))
    last, first = _number(request.GET, "to"), _number(request.GET, "from")
    later = former_versions.with_number(former, last) if last and last != found.version else None
    earlier = former_versions.with_number(former, first) if first else former.first()
    context: dict[str, Any] = {
        "document": found,
        "former": kept,
        "earlier": earlier,
        "later": later,
        "asked": first,
        "unknown": bool(first or kept)
        and (earlier is None or (last not in (0, found.version) and not later)),
    }
    after = later.content if later else former_versions.text_of(found)
    if earlier and not context["unknown"]:
        context["too_long"] = not after
        context["comparison"] = changes_page(earlier.content, after, _number(request.GET, "page"))
    return render(request, "ingestion/changes.html", context)


def _number(query: QueryDict, name: str) -> int:
    text = query.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 9 else 0


def _passages(found: Document, query: QueryDict) -> dict[str, Any]:
    """Some passages from position `from` on, and the positions of the previous and next page.

    With `q`, only passages that contain its words; without `from`, the page that has hit number `hit`.
    """
    asked = query.get("q", "")
    words = finding.words_of(asked)
    all_of_them = finding.passages_with(found, words)
    hits = finding.Hits.of(all_of_them, words) if words else finding.Hits([], [])
    first, hit = _number(query, "from"), min(max(_number(query, "hit"), 1), hits.total)
    if hit and "from" not in query:
        first = hits.positions[hits.index_of(hit) // PASSAGES_SHOWN * PASSAGES_SHOWN]
    rows = list(all_of_them.filter(position__gte=first)[: PASSAGES_SHOWN + 1])
    earlier = all_of_them.filter(position__lt=first).order_by("-position")[:PASSAGES_SHOWN]
    before = list(earlier.values_list("position", flat=True)) if first else []
    if hit and "from" in query:
        hit = min(hits.before(first) + 1, hits.total)
    shown = [
        (row, finding.numbered(row.content, words, hits.before(row.position)))
        for row in rows[:PASSAGES_SHOWN]
    ]
    return {
        "query": " ".join(asked[: finding.MAX_CHARACTERS].split()),
        "hits": all_of_them.count() if words else None,
        "hit": hit,
        "hit_total": hits.total,
        "hit_before": hit - 1 or hits.total,
        "hit_after": hit % hits.total + 1 if hits.total else 0,
        "passages": shown,
        "passages_before": before[-1] if before else None,
        "passages_after": rows[PASSAGES_SHOWN].position if len(rows) > PASSAGES_SHOWN else None,
    }


@for_caller
@require_safe
def status(request: HttpRequest, principal: Principal) -> JsonResponse:
    """The states of the documents in the query parameters `id` that the caller may read.

    If one of them is finished, the response also has the number of documents that a search covers, for the
    sidebar.
    """
    wanted = library.ids_in(request.GET.getlist("id")[:MAX_STATUSES])
    readable = Document.objects.visible_to(principal).filter(public_id__in=wanted)
    lines = rows(list(library.with_readers(readable)), principal)
    reply: dict[str, Any] = {"documents": [as_json(each) for each in lines]}
    if not all(each.unfinished for each in lines):
        reply["searchable"] = number_format(count_searched(principal), force_grouping=True)
    return JsonResponse(reply)
