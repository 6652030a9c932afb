"""Pages to share conversations and answers, and to revoke shares."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.text import Truncator
from django.utils.translation import gettext, ngettext
from django.views.decorators.http import require_http_methods, require_safe

from chat.redaction.share_preview import preview
from chatsite.accounts.page_decorators import signed_in
from chatsite.accounts.principal import Principal
from history import sharing
from history.invalid import Invalid
from history.models import Conversation, Message, Share
from ingestion.access.lists import Audience
from ingestion.portal.forms import EVERYONE, SOME, AudienceForm

from .views import SeeOther, own_conversation

LISTED = 200  # newest shares on the page
DAYS = (1, 7, 30, 90, 0)  # 0: no expiry
QUESTION_CHARACTERS = 60
MAX_OFFERED = 200  # newest answers that the form offers; the share button of an older answer adds that one


class ShareForm(AudienceForm):
    """Form for a share: who can open the link, until when, and what it shows."""

    days = forms.TypedChoiceField(coerce=int)
    answer = forms.ChoiceField(required=False)

    def __init__(self, *args: Any, answers: list[tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, any_group=False, **kwargs)
        self.offers_guests = False
        who, answer = self.fields["who"], self.fields["answer"]
        assert isinstance(who, forms.ChoiceField)
        assert isinstance(answer, forms.ChoiceField)
        days = self.fields["days"]
        assert isinstance(days, forms.ChoiceField)
        days.choices = [
            (number, ngettext("%(days)d day", "%(days)d days", number) % {"days": number})
            if number
            else (number, gettext("Until I revoke it"))
            for number in DAYS
        ]
        who.choices = [(SOME, gettext("Some groups or people")), (EVERYONE, gettext("Everyone"))]
        self.initial["who"] = SOME
        who.error_messages["required"] = gettext("Choose who can open it.")
        answer.choices = [("", gettext("Everything up to now")), *answers]

    def clean(self) -> dict[str, Any]:
        chosen = self.cleaned_data.get("groups") or self.cleaned_data.get("people")
        if self.cleaned_data.get("who") == SOME and not chosen and not self.errors:
            raise forms.ValidationError(gettext("Choose a group, or name a person."))
        return self.cleaned_data

    @property
    def expires_at(self) -> datetime | None:
        days = self.cleaned_data["days"]
        return timezone.now() + timedelta(days=days) if days else None


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def share(request: HttpRequest, principal: Principal, conversation_id: UUID) -> HttpResponse:
    """Share a conversation or an answer; only this response shows the link.

    With `foresee` in the form, nothing is shared; the page only shows what readers would not see.
    """
    row = own_conversation(principal, conversation_id)
    # The form is posted to the address of the page, whose `answer` is only the first choice.
    also = (request.POST if request.method == "POST" else request.GET).get("answer", "")
    answers = _answers(row, also)
    by_position = {str(answer.position): answer for answer, _ in answers}
    foresees = request.method == "POST" and "foresee" in request.POST
    form = ShareForm(
        request.POST if request.method == "POST" else None,
        principal=principal,
        answers=[(str(answer.position), words) for answer, words in answers],
    )
    made, status, announced = "", 200, False
    is_valid = form.is_bound and form.is_valid()
    # Until a valid form is sent, the preview is for everyone, the audience that may see least.
    audience = form.audience() if is_valid else Audience(everyone=True)
    answer = by_position.get(also)
    if is_valid and not foresees:
        try:
            _, token = sharing.create(
                principal,
                row.pk,
                audience,
                answer_id=answer.pk if answer else None,
                expires_at=form.expires_at,
            )
            made = address(request, token)
            announced = bool(audience.user_ids or audience.group_ids)
        except (Conversation.DoesNotExist, Message.DoesNotExist):
            raise Http404 from None
        except Invalid as problem:
            form.add_error(None, str(problem))
    if form.is_bound and not made and not foresees:
        status = 422
    foreseen = preview(principal, sharing.draft(row, answer), audience)
    context = {
        "conversation": row,
        "form": form,
        "answer": also,
        "days": request.POST.get("days", str(sharing.DEFAULT_DAYS)),
        "made": made,
        "preview": foreseen,
        "useless": foreseen.shows_no_answer and foreseen.certain,
        "has_versions": answer is None and row.messages.filter(chosen=False).exists(),
        "announced": announced,
        "shares": _shown(sharing.of_conversation(principal, row)),
    }
    return render(request, "chat/share.html", context, status=status)


@require_safe
@signed_in
def shares(request: HttpRequest, principal: Principal) -> HttpResponse:
    """List the caller's newest shares, including ended ones."""
    return _list(request, principal)


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def revoke(request: HttpRequest, principal: Principal, share_id: UUID) -> HttpResponse:
    """Ask for confirmation, then revoke a share at once."""
    mine = sharing.with_readers(Share.objects.owned_by(principal))
    row = mine.filter(pk=share_id).first()
    if row is None:
        raise Http404
    if request.method != "POST":
        shown = {"share": row, "readers": sharing.readers_of(row)}
        return render(request, "chat/revoke_share.html", shown)
    sharing.revoke(principal, row.pk)
    messages.success(request, gettext("The link is revoked. Nobody can open it any more."))
    return SeeOther(reverse("chat:shares"))


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def renew(request: HttpRequest, principal: Principal, share_id: UUID) -> HttpResponse:
    """Give a share a new link, which only this response shows; the old link stops working."""
    if not Share.objects.owned_by(principal).filter(pk=share_id).exists():
        raise Http404
    if request.method != "POST":
        return SeeOther(reverse("chat:shares"))
    try:
        _, token = sharing.renew(principal, share_id)
    except Share.DoesNotExist:
        return SeeOther(reverse("chat:shares"))  # the share has ended
    return _list(request, principal, made=address(request, token))


def address(request: HttpRequest, token: str) -> str:
    return request.build_absolute_uri(reverse("chat:shared", args=[token]))


def _list(request: HttpRequest, principal: Principal, made: str = "") -> HttpResponse:
    mine = Share.objects.owned_by(principal).filter(conversation__deleted_at=None)
    found = _shown(list(sharing.with_readers(mine)[:LISTED]))
    return render(request, "chat/shares.html", {"shares": found, "made": made})


def _shown(rows: Sequence[Share]) -> list[tuple[Share, str]]:
    return [(row, sharing.readers_of(row)) for row in rows]


def _answers(conversation: Conversation, also: str) -> list[tuple[Message, str]]:
    """The newest finished answers and the one at position `also`, each with its label in the form."""
    columns = ("position", "role", "content", "state", "conversation")
    rows = conversation.messages.chosen().order_by("position").only(*columns)
    question, found = "", []
    for row in rows:
        if row.role == Message.Role.USER:
            question = row.content
        elif row.state not in Message.UNFINISHED:
            found.append((row, question))
    old = [each for each in found[:-MAX_OFFERED] if str(each[0].position) == also]
    return [(answer, _label(asked)) for answer, asked in (old + found[-MAX_OFFERED:])[::-1]]


def _label(question: str) -> str:
    asked = Truncator(" ".join(question.split())).chars(QUESTION_CHARACTERS)
    return gettext("Only the answer to “%(question)s”") % {"question": asked}
