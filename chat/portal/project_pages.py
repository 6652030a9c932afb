"""Pages of projects: the list, one project, and moving conversations into a project."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext, ngettext
from django.views.decorators.http import require_http_methods, require_safe

from chat import runs
from chatsite.accounts.holds import OnHold
from chatsite.accounts.page_decorators import signed_in
from chatsite.accounts.principal import Principal
from history import conversation_lists, projects, recording
from history.invalid import Invalid
from history.models import Conversation, Project
from ingestion.portal.forms import SOME, AudienceForm

from .search_page import cleaned, place_in_list
from .views import SeeOther, composer, conversation_page, new_page, own_conversation, scopes, typed

PER_PAGE = 30


@contextmanager
def or_404() -> Iterator[None]:
    """Within the block, a missing project or conversation becomes a 404."""
    try:
        yield
    except (Project.DoesNotExist, Conversation.DoesNotExist):
        raise Http404 from None


def own_project(principal: Principal, project_id: UUID) -> Project:
    """The caller's own project. Raises Http404 for any other id."""
    with or_404():
        return projects.own(principal, project_id)


def open_project(principal: Principal, project_id: UUID) -> Project:
    """A project that the caller owns or is a member of. Raises Http404 for any other id."""
    with or_404():
        return projects.opened(principal, project_id)


class MembersForm(AudienceForm):
    """The members of a project: groups and people, or nobody."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, any_group=False, **kwargs)
        who = self.fields["who"]
        assert isinstance(who, forms.ChoiceField)
        who.choices = [(SOME, SOME)]

    def clean(self) -> dict[str, Any]:
        return self.cleaned_data


@require_safe
@signed_in
def listed(request: HttpRequest, principal: Principal) -> HttpResponse:
    """List the projects that are open to the caller, last used first, filtered by `q`."""
    query = cleaned(request.GET.get("q", ""))
    page = Paginator(projects.named(principal, query), PER_PAGE).get_page(request.GET.get("page"))
    rows = projects.counted(principal, list(page))
    shown = {"query": query, "page": page, "rows": rows, "reader": principal.user_id}
    return render(request, "chat/projects.html", shown)


@require_safe
@signed_in
def project(request: HttpRequest, principal: Principal, project_id: UUID) -> HttpResponse:
    return project_page(request, principal, open_project(principal, project_id))


def project_page(request: HttpRequest, principal: Principal, project: Project, **kept: Any) -> HttpResponse:
    """Show a project; `kept` has the typed question, and the reason if it was refused."""
    cursor = request.GET.get("cursor", "")
    rows, following = conversation_lists.page(
        projects.conversations_of(principal, project), PER_PAGE, place_in_list(cursor)
    )
    offered = scopes(principal, project.scope)
    mine = project.owner_id == principal.user_id
    context = {
        "project": project,
        "mine": mine,
        "members": projects.member_names(project) if mine else [],
        "can_leave": not mine and principal.user_id in projects.members_of(project).user_ids,
        "searched": dict(offered["scopes"])[offered["scope"]],
        "rows": rows,
        "cursor": cursor,
        "older": conversation_lists.cursor(following) if following else "",
        "team_size": runs.team_size(),
        **offered,
    }
    return render(
        request, "chat/project.html", composer(principal) | context | kept, status=kept.get("status", 200)
    )


def question_page(
    request: HttpRequest, principal: Principal, row: Conversation | Project | None, scope: str, **kept: Any
) -> HttpResponse:
    """Show the page of `row`, or of a new conversation, with the typed text and this scope."""
    kept |= {
        "text": typed(request),
        "team": request.POST.get("mode") == "team",
        **scopes(principal, scope),
    }
    if row is None:
        return new_page(request, principal, **kept)
    if isinstance(row, Project):
        return project_page(request, principal, row, **kept)
    return conversation_page(request, principal, row, **kept)


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def new(request: HttpRequest, principal: Principal) -> HttpResponse:
    if request.method != "POST":
        return _form(request, None)
    try:
        made = projects.create(principal, *_submitted(request))
    except Invalid as problem:
        return _form(request, None, problem)
    return SeeOther(reverse("chat:project", args=[made.pk]))


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def edit(request: HttpRequest, principal: Principal, project_id: UUID) -> HttpResponse:
    """Change the name and the instructions."""
    row = own_project(principal, project_id)
    if request.method != "POST":
        return _form(request, row)
    try:
        with or_404():
            projects.change(principal, row.pk, *_submitted(request))
    except Invalid as problem:
        return _form(request, row, problem)
    except OnHold as refused:
        messages.error(request, str(refused))
    return SeeOther(reverse("chat:project", args=[row.pk]))


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def members(request: HttpRequest, principal: Principal, project_id: UUID) -> HttpResponse:
    """Choose the groups and people who are members of the caller's own project."""
    row = own_project(principal, project_id)
    sent = request.POST if request.method == "POST" else None
    form = MembersForm(sent, principal=principal, current=projects.members_of(row))
    if not (form.is_bound and form.is_valid()):
        shown = {"project": row, "form": form}
        return render(request, "chat/project_members.html", shown, status=422 if form.is_bound else 200)
    with or_404():
        projects.set_members(principal, row.pk, form.audience())
    messages.success(request, gettext("Members updated. This applies from the next question."))
    return SeeOther(reverse("chat:project", args=[row.pk]))


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def leave(request: HttpRequest, principal: Principal, project_id: UUID) -> HttpResponse:
    """Ask for confirmation, then end the caller's own membership."""
    row = open_project(principal, project_id)
    if principal.user_id not in projects.members_of(row).user_ids:
        raise Http404  # the caller is the owner, or a member only through a group
    if request.method != "POST":
        return render(request, "chat/leave_project.html", {"project": row})
    with or_404():
        projects.leave(principal, row.pk)
    messages.success(request, gettext("You left the project. Your conversations are in your list."))
    return SeeOther(reverse("chat:projects"))


def _submitted(request: HttpRequest) -> tuple[str, str]:
    return request.POST.get("name", ""), request.POST.get("instructions", "")


def _form(request: HttpRequest, row: Project | None, problem: Invalid | None = None) -> HttpResponse:
    name, instructions = _submitted(request)
    if request.method != "POST" and row:
        name, instructions = row.name, row.instructions
    shown = {
        "project": row,
        "name": name.replace("\x00", "\ufffd"),
        "instructions": instructions.replace("\x00", "\ufffd"),
        "max_name": Project.MAX_NAME_CHARACTERS,
        "max_instructions": Project.MAX_INSTRUCTIONS_CHARACTERS,
        "problem": problem,
    }
    return render(request, "chat/project_form.html", shown, status=422 if problem else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def delete(request: HttpRequest, principal: Principal, project_id: UUID) -> HttpResponse:
    """Delete a project after confirmation; its conversations are kept."""
    row = own_project(principal, project_id)
    if request.method != "POST":
        kept = Conversation.objects.owned_by(principal).filter(project=row).count()
        return render(request, "chat/delete_project.html", {"project": row, "kept": kept})
    try:
        with or_404():
            projects.delete(principal, row.pk)
    except OnHold as refused:
        messages.error(request, str(refused))
        return SeeOther(reverse("chat:projects"))
    messages.success(request, gettext("Project deleted. Its conversations are in your list."))
    return SeeOther(reverse("chat:projects"))


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def move(request: HttpRequest, principal: Principal, conversation_id: UUID) -> HttpResponse:
    """Choose the project of a conversation: an existing one, a new one, or none."""
    row = own_conversation(principal, conversation_id)
    if request.method != "POST":
        return _move_page(request, principal, [row])
    try:
        with or_404():
            target = _target(principal, request)
            recording.move(principal, row.pk, target.pk if target else None)
    except Invalid as problem:
        return _move_page(request, principal, [row], problem)
    if target:
        messages.success(request, gettext("Moved to “%(name)s”.") % {"name": target.name})
    else:
        messages.success(request, gettext("The conversation is no longer in a project."))
    return SeeOther(reverse("chat:conversation", args=[row.pk]))


def move_several(request: HttpRequest, principal: Principal, rows: Sequence[Conversation]) -> HttpResponse:
    """Move the selected conversations; without a project in the form, show the page to choose one."""
    if "project" not in request.POST:
        return _move_page(request, principal, rows, several=True)
    try:
        with or_404():
            target = _target(principal, request)
    except Invalid as problem:
        return _move_page(request, principal, rows, problem, several=True)
    moved = 0
    for row in rows:
        with suppress(Conversation.DoesNotExist, Project.DoesNotExist):  # deleted meanwhile
            recording.move(principal, row.pk, target.pk if target else None)
            moved += 1
    if target:
        words = ngettext(
            "%(number)d conversation moved to “%(name)s”.",
            "%(number)d conversations moved to “%(name)s”.",
            moved,
        )
        messages.success(request, words % {"number": moved, "name": target.name})
    else:
        words = ngettext(
            "%d conversation is no longer in a project.",
            "%d conversations are no longer in a project.",
            moved,
        )
        messages.success(request, words % moved)
    return SeeOther(reverse("chat:project", args=[target.pk]) if target else reverse("chat:search"))


def _target(principal: Principal, request: HttpRequest) -> Project | None:
    """The chosen project, created if it is new; None for no project.

    Raises Project.DoesNotExist or Invalid.
    """
    to = request.POST.get("project", "")
    if to == "new":
        return projects.create(principal, request.POST.get("name", ""))
    if to == "none":
        return None
    if not to:
        raise Invalid(gettext("Choose a project first."), "project")
    try:
        return projects.opened(principal, UUID(to))
    except ValueError:
        raise Project.DoesNotExist from None


def _move_page(
    request: HttpRequest,
    principal: Principal,
    rows: Sequence[Conversation],
    problem: Invalid | None = None,
    *,
    several: bool = False,
) -> HttpResponse:
    query = cleaned(request.POST.get("q", request.GET.get("q", "")))
    others = projects.named(principal, query)
    if {row.project_id for row in rows} == {rows[0].project_id} and rows[0].project_id:
        others = others.exclude(pk=rows[0].project_id)
    found = list(others[: PER_PAGE + 1])
    shown = {
        "rows": rows,
        "several": several,
        "in_project": any(row.project_id for row in rows),
        "query": query,
        "projects": found[:PER_PAGE],
        "more": len(found) > PER_PAGE,
        "name": request.POST.get("name", "").replace("\x00", "\ufffd"),
        "max_name": Project.MAX_NAME_CHARACTERS,
        "problem": problem,
    }
    return render(request, "chat/move.html", shown, status=422 if problem else 200)
