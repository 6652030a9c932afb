"""Views for forms: questions, regenerated answers, branches, feedback, conversations."""

from collections.abc import Callable
from contextlib import suppress
from uuid import UUID, uuid4

from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext, ngettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from chat import runs
from chat.engine import AcceptedRun
from chat.errors import Refused
from chat.models import Run
from chat.requests import Options, RunRequest
from chatsite.accounts.holds import OnHold
from chatsite.accounts.page_decorators import for_caller, signed_in
from chatsite.accounts.principal import Principal
from chatsite.http.outgoing.retry_after import set_retry_after
from chatsite.http.parameters import whole_number
from history import feedback as feedbacks
from history import projects, recording
from history.invalid import Invalid
from history.models import Conversation, Message, Project

from .conversation.turn_pages import address_of
from .project_pages import move_several, open_project, or_404, project_page
from .starters import key_of
from .views import (
    SeeOther,
    conversation_page,
    end_of,
    new_page,
    own_conversation,
    scope_asked_for,
    scopes,
)

MAX_SEVERAL = 100  # maximum number of conversations in one form
DONE: dict[str, Callable[[int], str]] = {
    "archive": lambda n: ngettext("%d conversation archived.", "%d conversations archived.", n) % n,
    "bring-back": lambda n: (
        ngettext("%d conversation brought back.", "%d conversations brought back.", n) % n
    ),
    "delete": lambda n: ngettext("%d conversation deleted.", "%d conversations deleted.", n) % n,
}


@require_http_methods(["GET", "HEAD", "POST"])
@for_caller
def new(request: HttpRequest, principal: Principal) -> HttpResponse:
    """Show the page for a new question; POST asks the question."""
    if request.method != "POST":
        return new_page(request, principal)
    return ask_form(request, principal, None)


@require_http_methods(["GET", "HEAD", "POST"])
@for_caller
def ask(request: HttpRequest, principal: Principal, conversation_id: UUID) -> HttpResponse:
    """Ask in a conversation. A refusal is shown at this URL; GET redirects to the conversation."""
    row = own_conversation(principal, conversation_id)
    return ask_form(request, principal, row) if request.method == "POST" else _latest(row.pk)


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def ask_in_project(request: HttpRequest, principal: Principal, project_id: UUID) -> HttpResponse:
    """Begin a conversation in a project; refusals as in :func:`ask`."""
    project = open_project(principal, project_id)
    if request.method != "POST":
        return SeeOther(reverse("chat:project", args=[project.pk]))
    return ask_form(request, principal, None, project)


@require_http_methods(["GET", "HEAD", "POST"])
@for_caller
def again(request: HttpRequest, principal: Principal, conversation_id: UUID, position: int) -> HttpResponse:
    """Regenerate an answer, in another scope if the form has one; refusals as in :func:`ask`."""
    return _again(request, principal, conversation_id, position, continues=False)


@require_http_methods(["GET", "HEAD", "POST"])
@for_caller
def continue_answer(
    request: HttpRequest, principal: Principal, conversation_id: UUID, position: int
) -> HttpResponse:
    """Continue an answer that was cut short; refusals as in :func:`ask`."""
    return _again(request, principal, conversation_id, position, continues=True)


def _again(
    request: HttpRequest, principal: Principal, conversation_id: UUID, position: int, *, continues: bool
) -> HttpResponse:
    row = own_conversation(principal, conversation_id)
    if request.method != "POST":
        return _latest(row.pk)
    answer = _message(row, position, Message.Role.ASSISTANT)
    if continues and not answer.can_continue:
        return _latest(row.pk)
    try:
        _free(principal, row.pk)
        accepted = runs.again(
            principal,
            answer.pk,
            continues=continues,
            scope="" if continues else scope_asked_for(request.POST),
            request_id=_request_id(request),
        )
    except Refused as refused:
        return _refused(request, principal, row, "", refused)
    _start(accepted)
    return _latest(row.pk)


@require_http_methods(["GET", "HEAD", "POST"])
@for_caller
def edit(request: HttpRequest, principal: Principal, conversation_id: UUID, asked: int) -> HttpResponse:
    """Replace a question with an edited one. The original and its answers remain as another branch."""
    row = own_conversation(principal, conversation_id)
    question = _message(row, asked, Message.Role.USER)
    shown = {
        "conversation": row,
        "question": question,
        "form_key": uuid4().hex,
        "most_characters": settings.MESSAGE_MAX_CHARACTERS,
        "text": question.content,
    }
    if request.method != "POST":
        return render(request, "chat/edit.html", shown)
    text = _question(request)
    edited = RunRequest(text, row.pk, instead_of=asked)
    try:
        accepted = _begin(request, principal, edited, key_of(request.POST.get("key")))
    except Refused as refused:
        if refused.code == "not_found":
            raise Http404 from None
        shown |= {"text": text.replace("\x00", "\ufffd"), "problem": gettext(refused.message)}
        return _with_retry_after(render(request, "chat/edit.html", shown, status=refused.status), refused)
    _start(accepted)
    return _latest(row.pk)


@require_http_methods(["GET", "HEAD", "POST"])
@for_caller
def choose(request: HttpRequest, principal: Principal, conversation_id: UUID, position: int) -> HttpResponse:
    """Switch to another version of a question or an answer, with the messages that follow it."""
    row = own_conversation(principal, conversation_id)
    if request.method != "POST":
        return _latest(row.pk)
    message = row.messages.filter(position=position).only("role").first()
    if message is None:
        raise Http404
    try:
        _free(principal, row.pk)
        runs.choose_branch(principal, row.pk, position)
    except Refused as refused:
        return _refused(request, principal, row, "", refused)
    kind = "e" if message.role == Message.Role.USER else "m"
    return SeeOther(address_of(row.pk, position) + f"#{kind}-{position}")


@require_http_methods(["GET", "HEAD", "POST"])
@for_caller
def feedback(
    request: HttpRequest, principal: Principal, conversation_id: UUID, position: int
) -> HttpResponse:
    """Rate an answer with reasons; an empty rating deletes the feedback.

    The form below the answer replaces earlier reasons, sources and comment. The buttons that rate the
    answer or report a source keep them if the rating stays the same, and otherwise remove them.
    """
    row = own_conversation(principal, conversation_id)
    answer = _message(row, position, Message.Role.ASSISTANT)
    if request.method != "POST":
        return SeeOther(_answer_url(row.pk, position))
    rating = request.POST.get("rating", "")
    if answer.state in Message.UNFINISHED:
        # The text may be complete, although the run still waits for follow-up questions.
        _free(principal, row.pk)
    try:
        if rating:
            feedbacks.give(principal, answer.pk, _opinion(request, answer, rating))
        else:
            feedbacks.take_back(principal, answer.pk)
    except Message.DoesNotExist:
        raise Http404 from None
    except Invalid as problem:
        return conversation_page(request, principal, row, problem=str(problem), status=400)
    except OnHold as refused:
        return conversation_page(request, principal, row, problem=str(refused), status=403)
    open_form = rating and "reasons_shown" not in request.POST
    if _wants_json(request):
        return JsonResponse({"end": end_of(principal, row, position, rating_form=bool(open_form))})
    if not open_form:
        messages.success(request, gettext("Feedback saved.") if rating else gettext("Feedback removed."))
    return SeeOther(_answer_url(row.pk, position, form=bool(open_form)))


@require_POST
@for_caller
def stop(request: HttpRequest, principal: Principal, conversation_id: UUID) -> HttpResponse:
    """Stop the running answer, if any, and keep its text so far."""
    row = own_conversation(principal, conversation_id)
    _stop_answers(principal, row)
    return _latest(row.pk)


@require_http_methods(["GET", "HEAD", "POST"])
@for_caller
def rename(request: HttpRequest, principal: Principal, conversation_id: UUID) -> HttpResponse:
    row = own_conversation(principal, conversation_id)
    if request.method != "POST":
        return render(request, "chat/rename.html", {"conversation": row})
    try:
        with or_404():
            recording.rename(principal, row.pk, request.POST.get("title", ""))
    except OnHold as refused:
        return render(request, "chat/rename.html", {"conversation": row, "problem": refused}, status=403)
    except ValueError as problem:
        return render(request, "chat/rename.html", {"conversation": row, "problem": problem}, status=400)
    return SeeOther(reverse("chat:conversation", args=[row.pk]) + "#content")  # the new title gets the focus


@require_POST
@for_caller
def seen(request: HttpRequest, principal: Principal, conversation_id: UUID) -> HttpResponse:
    """Mark the conversation's answers as seen, so that no other page shows them as new."""
    recording.saw(own_conversation(principal, conversation_id), whole="whole" in request.POST)
    return HttpResponse(status=204)


@require_safe
@for_caller
def manage(request: HttpRequest, principal: Principal, conversation_id: UUID) -> HttpResponse:
    """Show the actions for a conversation; the script displays them as a menu in the sidebar."""
    row = own_conversation(principal, conversation_id)
    return render(request, "chat/manage.html", {"conversation": row, "from": request.GET.get("from", "")})


@require_POST
@for_caller
def pin(request: HttpRequest, principal: Principal, conversation_id: UUID) -> HttpResponse:
    """Pin the conversation; without `on`, unpin it."""
    row = own_conversation(principal, conversation_id)
    with or_404():
        recording.pin(principal, row.pk, pinned="on" in request.POST)
    return SeeOther(_where_from(request) or reverse("chat:conversation", args=[row.pk]))


@require_POST
@for_caller
def archive(request: HttpRequest, principal: Principal, conversation_id: UUID) -> HttpResponse:
    """Archive the conversation; without `on`, restore it."""
    row = own_conversation(principal, conversation_id)
    archived = "on" in request.POST
    with or_404():
        recording.archive(principal, row.pk, archived=archived)
    if back := _where_from(request):
        messages.success(request, DONE["archive" if archived else "bring-back"](1))
        return SeeOther(back)
    return SeeOther(reverse("chat:conversation", args=[row.pk]))


def _where_from(request: HttpRequest) -> str:
    """The page of this site from which the menu was opened; empty if unknown."""
    back = request.POST.get("from", "")
    return back if back.startswith("/") and url_has_allowed_host_and_scheme(back, None) else ""


@require_POST
@for_caller
def several(request: HttpRequest, principal: Principal) -> HttpResponse:
    """Archive, restore, move or delete the selected conversations.

    Moving first asks for the project, and deleting for confirmation.
    """
    ticked: list[UUID] = []
    for text in request.POST.getlist("conversation"):
        with suppress(ValueError):
            ticked.append(UUID(text))
    owned = Conversation.objects.owned_by(principal).select_related("project")
    rows = list(owned.filter(pk__in=ticked[:MAX_SEVERAL]))
    projects.hide_closed(principal, rows)
    act = request.POST.get("act", "")
    if rows and act == "delete" and "confirmed" not in request.POST:
        return render(request, "chat/delete_several.html", {"rows": rows})
    if rows and act == "move" and principal.method != "guest":
        return move_several(request, principal, rows)
    for row in rows:
        with suppress(Conversation.DoesNotExist):  # deleted meanwhile
            if act == "delete":
                _stop_answers(principal, row)
                recording.delete(principal, row.pk)
            elif act in {"archive", "bring-back"}:
                recording.archive(principal, row.pk, archived=act == "archive")
    if rows and (done := DONE.get(act)):
        messages.success(request, done(len(rows)))
    elif not rows:
        messages.info(request, gettext("Tick the conversations first."))
    return SeeOther(reverse("chat:search") + ("?show=archived" if act == "bring-back" else ""))


@require_http_methods(["GET", "HEAD", "POST"])
@for_caller
def delete(request: HttpRequest, principal: Principal, conversation_id: UUID) -> HttpResponse:
    """Delete a conversation after confirmation; the next page offers to undo this."""
    row = own_conversation(principal, conversation_id)
    if request.method != "POST":
        return render(request, "chat/delete.html", {"conversation": row})
    _stop_answers(principal, row)
    with or_404():
        recording.delete(principal, row.pk)
    messages.success(request, gettext("Conversation deleted."), extra_tags=f"undo:{row.pk}")
    return SeeOther(reverse("chat:new"))


@require_POST
@for_caller
def undo(request: HttpRequest, principal: Principal, conversation_id: UUID) -> HttpResponse:
    """Restore a deleted conversation."""
    with or_404():
        recording.restore(principal, conversation_id)
    return SeeOther(reverse("chat:conversation", args=[conversation_id]))


def _message(row: Conversation, position: int, role: str) -> Message:
    """The message at a position of the conversation. Raises Http404 if there is none with this role."""
    message = row.messages.filter(position=position, role=role).first()
    if message is None:
        raise Http404
    return message


def _opinion(request: HttpRequest, answer: Message, rating: str) -> feedbacks.Opinion:
    """The feedback from a form, a rating button, or a button that reports a source."""
    cited = {str(number): label for number, label in enumerate(answer.citations, start=1)}
    if "reasons_shown" in request.POST:
        return feedbacks.Opinion(
            rating,
            request.POST.getlist("reason"),
            [cited[number] for number in request.POST.getlist("source") if number in cited],
            request.POST.get("comment", ""),
            "shared" in request.POST,
        )
    before = feedbacks.of(answer)
    reported = [label for number in request.POST.getlist("report") if (label := cited.get(number))]
    if before is None or before.rating != rating:
        return feedbacks.Opinion(rating, wrong_sources=reported, shared=bool(before and before.shared))
    doubted = (*before.wrong_sources, *reported)
    return feedbacks.Opinion(rating, before.reasons, doubted, before.comment, before.shared)


def _answer_url(conversation_id: UUID, position: int, *, form: bool = False) -> str:
    if form:
        page = reverse("chat:conversation", args=[conversation_id])
        return f"{page}?rating={position}#feedback-{position}"
    return f"{address_of(conversation_id, position)}#m-{position}"


def ask_form(
    request: HttpRequest,
    principal: Principal,
    row: Conversation | None,
    project: Project | None = None,
    *,
    attached: str = "",
) -> HttpResponse:
    """Ask the question of a form; `attached` is the scope of files that were sent with it."""
    text = _question(request)
    # A form that is sent without its Send button (see attaching.py) only has the names of selected files.
    if any(request.POST.getlist("file")):
        return _refused(request, principal, row, text, Refused("not_attached"), project)
    scope = attached or scope_asked_for(request.POST)
    team = row is None and request.POST.get("mode") == "team"
    seen = request.POST.get("seen", "")
    asked = RunRequest(
        text,
        row.pk if row else None,
        team=team,
        project_id=project.pk if project else None,
        options=Options(scope=scope),
        seen=whole_number(seen),
    )
    try:
        accepted = _begin(request, principal, asked, key_of(request.POST.get("key")))
    except Refused as refused:
        return _refused(request, principal, row, text, refused, project, scope=scope)
    _start(accepted)
    if _wants_json(request):
        url = reverse("chat:conversation", args=[accepted.conversation_id])
        return JsonResponse({"url": url, "run": str(accepted.run_id)}, status=201)
    return _latest(accepted.conversation_id)


def _question(request: HttpRequest) -> str:
    """The typed question, with LF as line ends: forms send CR LF, but the socket sends LF."""
    return request.POST.get("question", "").replace("\r\n", "\n")


def _begin(request: HttpRequest, principal: Principal, asked: RunRequest, key: str | None) -> AcceptedRun:
    """Store a queued run, which :func:`_start` then starts.

    A form that is sent twice asks only once, unless its text was changed after the browser's Back button.
    """
    try:
        return runs.begin(principal, asked, idempotency_key=key, request_id=_request_id(request))
    except Refused as refused:
        if refused.code == "idempotency_mismatch":
            key = None
        elif not (refused.code == "generation_in_progress" and _free(principal, asked.conversation_id)):
            raise
        return runs.begin(principal, asked, idempotency_key=key, request_id=_request_id(request))


@async_to_sync
async def _free(principal: Principal, conversation_id: UUID | None) -> bool:
    """End a run that only waits for follow-up questions or a title; return whether it ended."""
    return conversation_id is not None and await runs.stop_followups(principal, conversation_id)


def _stop_answers(principal: Principal, row: Conversation) -> None:
    for run in Run.objects.owned_by(principal).unfinished().filter(conversation=row):
        with suppress(Refused):  # deleted or ended meanwhile
            runs.request_stop(principal, run.pk)


def _refused(
    request: HttpRequest,
    principal: Principal,
    row: Conversation | None,
    text: str,
    refused: Refused,
    project: Project | None = None,
    *,
    scope: str = "",
) -> HttpResponse:
    """The page with the refusal's reason, the question and its scope; for scripts, JSON."""
    if refused.code == "not_found":
        raise Http404
    if _wants_json(request):
        body = {"code": refused.code, "message": gettext(refused.message)}
        return _with_retry_after(JsonResponse(body, status=refused.status), refused)
    kept = {
        "text": text.replace("\x00", "\ufffd"),
        "problem": gettext(refused.message),
        "status": refused.status,
        "team": request.POST.get("mode") == "team",
    }
    if scope := scope or scope_asked_for(request.POST):
        kept |= scopes(principal, scope)
    if project:
        return _with_retry_after(project_page(request, principal, project, **kept), refused)
    if row is None:
        return _with_retry_after(new_page(request, principal, **kept), refused)
    return _with_retry_after(conversation_page(request, principal, row, **kept), refused)


def _with_retry_after(response: HttpResponse, refused: Refused) -> HttpResponse:
    if refused.retry_after is not None:
        set_retry_after(response, refused.retry_after)
    return response


def _wants_json(request: HttpRequest) -> bool:
    return request.headers.get("Accept", "").startswith("application/json")


def _request_id(request: HttpRequest) -> str:
    return str(getattr(request, "request_id", ""))


@async_to_sync
async def _start(accepted: AcceptedRun) -> None:
    """Start the run on the server's event loop, where it outlives this request."""
    runs.start(accepted)


def _latest(conversation_id: UUID) -> HttpResponse:
    return SeeOther(reverse("chat:conversation", args=[conversation_id]) + "#latest")
