"""The pages of a share for its readers. Each request applies the reader's own rights."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.cache import add_never_cache_headers
from django.utils.functional import cached_property
from django.utils.translation import gettext, gettext_noop
from django.views.decorators.http import require_http_methods, require_safe

from chat.redaction.shared_titles import shared_title
from chat.redaction.withholding import LEFT_OUT, SharedMessage, shared_messages
from chatsite.accounts.api.authentication import session_principal
from chatsite.accounts.models import User
from chatsite.accounts.principal import Principal
from chatsite.http import error_pages
from history import recording, sharing
from history.conversation_export import message_as_markdown, messages_as_markdown
from history.long_exports import Overloaded, SameRights, one_at_a_time
from history.models import Message, Share
from ingestion.glossary.lookup import Glossary

from .citing.source_pages import stretches_of
from .conversation.shown_answers import Answer
from .conversation.turn_pages import TurnsPage, page_at
from .conversation.turns import Turn
from .rendering.markdown import RenderingBudget
from .source_panel import Panel, panel_of_answer, position_of
from .views import SeeOther, exported_file, page_asked_for, source_asked_for

P = ParamSpec("P")
NOTES = {
    Message.State.STOPPED: gettext_noop("This answer was stopped."),
    Message.State.INTERRUPTED: gettext_noop("The answer was interrupted. The partial answer is kept."),
    Message.State.BLOCKED: gettext_noop("The question or the answer was blocked by the content filter."),
    Message.State.FAILED: gettext_noop("The answer could not be written."),
}


class SharedAnswer(Answer):
    """An answer as a reader of a share may see it."""

    left_out = 0
    closed = False

    @property
    def shared_note(self) -> str:
        """A note about how the answer ended, unless it ended normally."""
        if self.message.state == Message.State.COMPLETE and self.message.finish_reason == "length":
            return gettext("The answer reached its length limit.")
        note = NOTES.get(Message.State(self.message.state))
        return gettext(note) if note else ""


class SharedPage:
    """The contents of a share for one reader."""

    def __init__(self, principal: Principal, share: Share, token: str) -> None:
        self.principal, self.share, self.token = principal, share, token
        self.owner = share.conversation.owner

    @cached_property
    def messages(self) -> list[SharedMessage]:
        return shared_messages(self.principal, self.share)

    @property
    def open_turns(self) -> list[list[SharedMessage]]:
        """The turns with a finished answer that the reader may see at least in part.

        Each turn is a list of the question and all such answers.
        """
        turns: list[list[SharedMessage]] = []
        for shown in self.messages:
            if shown.message.role == Message.Role.USER:
                turns.append([shown])
            elif turns and not shown.closed and shown.message.state not in Message.UNFINISHED:
                turns[-1].append(shown)
        return [turn for turn in turns if len(turn) > 1]

    @cached_property
    def title(self) -> str:
        anonymous = gettext("Shared answer") if self.share.answer_id else gettext("Shared conversation")
        return shared_title(self.share, self.messages) or anonymous

    @cached_property
    def asked(self) -> list[int]:
        """The positions of the share's questions, in order."""
        return [each.message.position for each in self.messages if each.message.role == Message.Role.USER]

    def turns(self, page: TurnsPage) -> list[Turn]:
        turns: list[Turn] = []
        glossary, budget = Glossary(self.principal), RenderingBudget()
        end = self.share.up_to + 1 if page.end is None else page.end
        on_page = [each for each in self.messages if page.first <= each.message.position < end]
        stretches = stretches_of(source for shown in on_page for source in shown.sources)
        for shown in on_page:
            if shown.message.role == Message.Role.USER:
                turns.append(Turn(shown.message))
            elif turns:
                answer = SharedAnswer(
                    shown.message, shown.sources, shown.message.labels, shows_thoughts=False
                )
                answer.glossary = glossary  # the reader's glossary, not the sharer's
                answer.budget, answer.stretches = budget, stretches
                answer.left_out, answer.closed = shown.left_out, shown.closed
                turns[-1].answers.append(answer)
        return turns

    def panel(self, place: str, asked_for: tuple[str, str, str]) -> Panel:
        """The panel of a source that the reader may open. Raises Http404 for any other."""
        position = position_of(place)
        turns = self.turns(page_at(self.asked, position))
        answers = (answer for turn in turns for answer in turn.answers)
        answer = next((each for each in answers if each.place == position), None)
        panel = answer and panel_of_answer(self.principal, answer, place, *asked_for)
        if not panel or panel.source is None:
            raise Http404
        return panel

    def context(self, page: TurnsPage) -> dict[str, Any]:
        """The template context for a page of turns."""
        reader = User.objects.get(pk=self.principal.user_id)
        return {
            "share": self.share,
            "token": self.token,
            "shared": True,
            "owner": self.owner,
            "is_owner": self.owner.pk == reader.pk,
            "shared_with": sharing.shared_with(self.share, sharing.groups_of(reader)),
            "title": self.title,
            "page": page,
            "newest": reverse("chat:shared", args=[self.token]),
            "turns": self.turns(page),
            "can_go_on": bool(self.open_turns),
            "leaves_out": len(self.open_turns) < len(self.asked),
        }


View = Callable[Concatenate[HttpRequest, SharedPage, P], HttpResponse]


def for_reader(view: View[P]) -> Callable[..., HttpResponse]:
    """Decorator for pages of a share: requires an account, and access to the share (else 404)."""

    @wraps(view)
    def opened(request: HttpRequest, /, token: str, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        principal = session_principal(request)
        share = sharing.opened(principal, token)
        if share is None:
            raise Http404
        response = view(request, SharedPage(principal, share, token), *args, **kwargs)
        add_never_cache_headers(response)
        return response

    return login_required(opened)


@require_safe
@for_reader
def shared(request: HttpRequest, page: SharedPage) -> HttpResponse:
    """Show the shared turns or answer, read-only."""
    place = request.GET.get("source")
    panel = page.panel(place, source_asked_for(request)) if place else None
    sharing.record_opening(page.principal, page.share)
    turns = page_asked_for(request, page.asked)
    return render(request, "chat/shared.html", page.context(turns) | {"panel": panel})


@require_safe
@for_reader
def shared_source(request: HttpRequest, page: SharedPage, place: str) -> HttpResponse:
    """Only the source panel, for the script."""
    panel = page.panel(place, source_asked_for(request))
    return render(request, "chat/panel.html", {"panel": panel, "shared": True})


@require_safe
@for_reader
def shared_export(request: HttpRequest, page: SharedPage, *, is_page: bool = False) -> HttpResponse:
    """The share as a Markdown or HTML file, or only the answer at the position `answer`."""
    with_rights = SameRights(page.principal, page.share.conversation_id)
    position = request.GET.get("answer", "")
    try:
        shared = page.share.conversation.messages.filter(position__lte=page.share.up_to)
        with one_at_a_time(None if position else shared):
            title = page.title
            if position:
                shown = [each for each in page.messages if str(each.message.position) == position]
                if not shown or shown[0].message.role != Message.Role.ASSISTANT or shown[0].closed:
                    raise Http404
                title, parts = "answer", [message_as_markdown(_plain(shown[0]), shown[0].sources)]
            else:
                parts = messages_as_markdown(
                    page.title,
                    page.share.created_at,
                    [_plain(each) for each in page.messages],
                    {each.message.pk: each.sources for each in page.messages},
                )
            response = exported_file(title, parts, is_page=is_page)
    except Overloaded:
        return error_pages.overloaded(request)
    if with_rights.hold() and sharing.opened(page.principal, page.token):
        return response
    return SeeOther(request.get_full_path())


@require_http_methods(["GET", "HEAD", "POST"])
@for_reader
def continue_conversation(request: HttpRequest, page: SharedPage) -> HttpResponse:
    """Copy what the reader sees to a conversation of their own."""
    # Only turns with a visible answer are copied.
    copies = [(_plain(each), each.sources) for turn in page.open_turns for each in turn]
    if request.method != "POST" or not copies:
        return SeeOther(reverse("chat:shared", args=[page.token]))
    copied = recording.copy_messages(page.principal, page.title, copies)
    return SeeOther(reverse("chat:conversation", args=[copied.pk]) + "#latest")


def _plain(shown: SharedMessage) -> Message:
    """The message for an export or a copy: a placeholder for closed content, and only open sources."""
    message = shown.message
    labels = {source.label for source in shown.sources}
    message.citations = [label for label in message.citations if label in labels]
    if shown.closed:
        message.content = LEFT_OUT
    return message
