"""The portal's pages to ask questions, read answers and open sources.

The pages work without JavaScript; :func:`dots` and :func:`source` are for scripts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.db.models import Exists, OuterRef
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponsePermanentRedirect,
    HttpResponseRedirect,
    JsonResponse,
    QueryDict,
)
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.text import slugify
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from chat import runs
from chat.limits import allowance_of
from chat.requests import is_scope
from chatsite.accounts.page_decorators import for_caller
from chatsite.accounts.principal import Principal
from chatsite.http import error_pages
from chatsite.http.origins import opened_from_here
from chatsite.http.parameters import whole_number
from history import projects, recording, sharing
from history.conversation_export import answer_as_markdown, parts_as_markdown
from history.conversation_lists import SIDEBAR_ROWS, newest
from history.long_exports import Overloaded, SameRights, one_at_a_time
from history.models import Conversation, Share
from ingestion.portal.descriptions import Row, rows
from ingestion.portal.library import load_readers
from ingestion.search.scopes import ALL, OWN, describe, named

from . import search_page as searching
from .conversation.turn_pages import TurnsPage, asked_in, page_at
from .conversation.turns import turn_of, turns_of
from .exported_page import as_page
from .source_panel import panel_of, position_of
from .starters import starts


class SeeOther(HttpResponseRedirect):
    """Redirects from a form to a page that is fetched by GET (303)."""

    status_code = 303


def own_conversation(principal: Principal, conversation_id: UUID) -> Conversation:
    """The caller's own conversation. Raises Http404 for any other id."""
    is_shared = Exists(Share.objects.live().filter(conversation=OuterRef("pk")))
    mine = Conversation.objects.owned_by(principal).annotate(is_shared=is_shared)
    conversation = mine.filter(pk=conversation_id).first()
    if conversation is None:
        raise Http404
    projects.hide_closed(principal, [conversation])
    return conversation


def new_page(request: HttpRequest, principal: Principal, **kept: Any) -> HttpResponse:
    """The page for a new conversation: a question box and questions to start with."""
    context = {
        "starts": starts(principal),
        "hints": principal.method == "session" and not getattr(request.user, "hints_seen", True),
        "team_size": runs.team_size(),
        **scopes(principal, scope_asked_for(request.GET)),
    }
    return render(
        request, "chat/new.html", composer(principal) | context | kept, status=kept.get("status", 200)
    )


def conversation_page(
    request: HttpRequest, principal: Principal, conversation: Conversation, **kept: Any
) -> HttpResponse:
    """Show a page of a conversation's turns.

    `kept` has values for the template, such as the typed question and the reason for a refusal. Only the page
    with the newest turns has the question box.
    """
    page = page_asked_for(request, asked_in(conversation))
    turns = turns_of(principal, conversation, page)
    running = [answer for turn in turns for answer in turn.answers if answer.running]
    ends = [answer.message.finished_at for turn in turns[-1:] for answer in turn.answers]
    ended = max(filter(None, ends), default=conversation.updated_at)
    if not running and ended > conversation.updated_at and not kept.get("unseen"):
        # The answer may have ended after the conversation was loaded.
        recording.saw(conversation, ended=ended)
    place = request.GET.get("source")
    panel = panel_of(principal, conversation, place, *source_asked_for(request)) if place else None
    if place and panel is None:
        raise Http404
    rating_form = request.GET.get("rating", "")
    context = {
        "conversation": conversation,
        "turns": turns,
        "page": page,
        "running": running[-1] if running else None,
        # Without JavaScript, the page reloads itself, unless a panel is open or text may have been typed.
        "refreshes": bool(running) and not (panel or rating_form or {"problem", "text"} & kept.keys()),
        "panel": panel,
        "rating_form": rating_form,
        "seen": turns[-1].last if turns else None,
        "shares": shares_of(principal, conversation),
        **scopes(principal, conversation.scope),
    }
    return render(
        request,
        "chat/conversation.html",
        composer(principal) | context | kept,
        status=kept.get("status", 200),
    )


def page_asked_for(request: HttpRequest, asked: Sequence[int]) -> TurnsPage:
    """The page of turns with the answer whose source or rating form is open, or with position `at`.

    Without any of these parameters, the newest page.
    """
    at, form = request.GET.get("at", ""), request.GET.get("rating", "")
    places = (
        position_of(request.GET.get("source", "")),
        whole_number(form),
        whole_number(at),
    )
    return page_at(asked, next((place for place in places if place is not None), None))


def shares_of(principal: Principal, conversation: Conversation) -> list[tuple[Share, str]]:
    """The open shares of a conversation, with their readers."""
    if not conversation.is_shared:  # type: ignore[attr-defined]  # annotated by own_conversation
        return []
    return [(each, sharing.readers_of(each)) for each in sharing.of_conversation(principal, conversation)]


@require_safe
@for_caller
def conversation(request: HttpRequest, principal: Principal, conversation_id: UUID) -> HttpResponse:
    row = own_conversation(principal, conversation_id)
    if opened_from_here(request):
        recording.saw(row)
        return conversation_page(request, principal, row)
    # Other sites can link here, and such a GET must not change anything. The script reports what was seen.
    return conversation_page(request, principal, row, unseen=True)


@require_safe
@for_caller
def without_slash(request: HttpRequest, principal: Principal, conversation_id: UUID) -> HttpResponse:
    """Redirect a conversation's URL without the final slash to its page."""
    row = own_conversation(principal, conversation_id)
    query = request.META.get("QUERY_STRING", "")
    address = reverse("chat:conversation", args=[row.pk])
    return HttpResponsePermanentRedirect(f"{address}?{query}" if query else address)


@require_safe
@for_caller
def dots(request: HttpRequest, principal: Principal) -> HttpResponse:
    """JSON for the sidebar: states of conversations, and the number of unopened shares.

    `running` has the ids of conversations with a running answer, `fresh` the ids of other conversations with
    an unseen answer.
    """
    rows = newest(principal, SIDEBAR_ROWS).values_list("pk", "running", "fresh")  # type: ignore[misc]
    running = [str(pk) for pk, is_running, _ in rows if is_running]
    fresh = [str(pk) for pk, is_running, is_fresh in rows if is_fresh and not is_running]
    unopened = sharing.unopened(principal)
    return JsonResponse({"running": running, "fresh": fresh, "unopened": unopened})


@require_safe
@for_caller
def source(request: HttpRequest, principal: Principal, conversation_id: UUID, place: str) -> HttpResponse:
    """Only the source panel, for the script."""
    row = own_conversation(principal, conversation_id)
    panel = panel_of(principal, row, place, *source_asked_for(request))
    if panel is None:
        raise Http404
    return render(request, "chat/panel.html", {"conversation": row, "panel": panel})


def end_of(principal: Principal, conversation: Conversation, position: int, *, rating_form: bool) -> str:
    """The part below a finished answer, for the script."""
    answers = (answer for each in turn_of(principal, conversation, position) for answer in each.answers)
    answer = next(each for each in answers if each.place == position)
    shown = {
        "answer": answer,
        "conversation": conversation,
        "rating_form": str(position) if rating_form else "",
    }
    return render_to_string("chat/end.html", shown)


@require_safe
@for_caller
def search(request: HttpRequest, principal: Principal) -> HttpResponse:
    """List the caller's conversations, filtered by `q`, or archived ones (`show=archived`)."""
    query = searching.cleaned(request.GET.get("q", ""))
    cursor = request.GET.get("cursor", "")
    archived = not query and request.GET.get("show") == "archived"
    results, older = searching.conversations(principal, query, cursor, archived=archived)
    found = {"query": query, "cursor": cursor, "results": results, "older": older, "archived": archived}
    return render(request, "chat/search.html", found)


@require_safe
@for_caller
def export(
    request: HttpRequest, principal: Principal, conversation_id: UUID, *, is_page: bool = False
) -> HttpResponse:
    """Download the conversation as Markdown or HTML; with `answer`, only the answer at this position."""
    row = own_conversation(principal, conversation_id)
    with_rights = SameRights(principal, row.pk)
    position = request.GET.get("answer", "")
    try:
        with one_at_a_time(None if position else row.messages.all()):
            if not position:
                parts = parts_as_markdown(principal, row)
            else:
                one = whole_number(position)
                text = None if one is None else answer_as_markdown(principal, row, one)
                if text is None:
                    raise Http404
                parts = [text]
            response = exported_file(row.title, parts, is_page=is_page)
    except Overloaded:
        return error_pages.overloaded(request)
    return response if with_rights.hold() else SeeOther(request.get_full_path())


def exported_file(title: str, parts: Sequence[str], *, is_page: bool) -> HttpResponse:
    """A download that is named after the title: parts in Markdown, or a page made from them."""
    name = slugify(title)[:80] or "conversation"
    text = as_page(title or gettext("Conversation"), parts) if is_page else "\n".join(parts)
    return HttpResponse(
        text,
        content_type=f"text/{'html' if is_page else 'markdown'}; charset=utf-8",
        headers={
            "Content-Disposition": f'attachment; filename="{name}.{"html" if is_page else "md"}"',
            "X-Content-Type-Options": "nosniff",
        },
    )


def source_asked_for(request: HttpRequest) -> tuple[str, str, str]:
    """The requested view of a source, the page, and the number of the citation in the text."""
    return request.GET.get("view", ""), request.GET.get("page", ""), request.GET.get("s", "")


def scope_asked_for(values: QueryDict) -> str:
    """The scope in a form or a URL; empty if it is missing or invalid."""
    scope = values.get("scope", "")
    return scope if is_scope(scope) else ""


def scopes(principal: Principal, chosen: str) -> dict[str, Any]:
    """Context for “Search in”: options with labels, the selected one, and its documents."""
    offered = {ALL: gettext("Everything you can read"), OWN: gettext("Only what you added")}
    if chosen and chosen not in offered:
        offered[chosen] = gettext("Only %(scope)s") % {"scope": describe(principal, chosen)}
    return {
        "scope": chosen or ALL,
        "scopes": list(offered.items()),
        "chosen": chosen_documents(principal, chosen),
    }


@dataclass(frozen=True, slots=True)
class ScopedDocument:
    """A document of a question's scope, and the scope without it."""

    row: Row
    without: str


def chosen_documents(principal: Principal, scope: str) -> list[ScopedDocument]:
    """The readable documents that a scope names, if any."""
    documents = named(principal, scope)
    if not documents:
        return []
    load_readers(documents)
    kind, _, ids = scope.partition(":")
    chosen = []
    for row in rows(documents, principal):
        others = ",".join(other for other in ids.split(",") if other != str(row.document.public_id))
        chosen.append(ScopedDocument(row, without=f"{kind}:{others}" if others else ALL))
    return chosen


def typed(request: HttpRequest) -> str:
    """The question that was typed into a form with another purpose, to show it again."""
    return request.POST.get("question", "").replace("\r\n", "\n").replace("\x00", "\ufffd")


def composer(principal: Principal) -> dict[str, Any]:
    """The context of the question box."""
    return {
        "connected": bool(settings.CHAT_MODEL),
        "most_characters": settings.MESSAGE_MAX_CHARACTERS,
        "form_key": uuid4().hex,
        "text": "",
        "allowance": allowance_of(principal),
    }
