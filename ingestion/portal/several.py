"""Bulk actions on a list of documents: change readers, move, delete."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext, gettext_lazy, ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from chatsite.accounts.api.authentication import session_principal
from chatsite.accounts.holds import DOCUMENT_ON_HOLD, is_on_hold
from chatsite.accounts.models import User
from ingestion import documents as stored
from ingestion.access.lists import Audience, audience_of, change_rights, count_people, widens
from ingestion.bulk.changes import Column, Folder
from ingestion.bulk.changes import Refused as StaysAsItIs
from ingestion.file_names import UploadRefused, category_name, folder_name
from ingestion.models import Document
from ingestion.reasons import in_words
from ingestion.sender_check import SenderCheck

from . import descriptions, library
from .document_actions import (
    IS_PART,
    NOT_YOURS,
    any_group,
    details_in_words,
    may_change,
    may_delete,
    record_as_staff,
)
from .forms import AudienceForm

MAX_DOCUMENTS = 100  # documents in one form, or deleted in one batch
MAX_NAMED = 3  # documents that a refusal names
MAX_FAILED = 1_000  # failed documents removed by one request


class PlaceForm(forms.Form):
    """Sets the folder and the category; an empty field changes nothing."""

    folder = forms.CharField(required=False, max_length=500)
    category = forms.CharField(required=False, max_length=100)

    def clean_folder(self) -> str:
        try:
            return folder_name(self.cleaned_data["folder"])
        except UploadRefused as refusal:
            raise forms.ValidationError(in_words(refusal.message)) from refusal

    def clean_category(self) -> str:
        return category_name(self.cleaned_data["category"])

    def clean(self) -> dict[str, object]:
        if not self.errors and not any(self.cleaned_data.values()):
            raise forms.ValidationError(gettext_lazy("Name a folder or a category."))
        return self.cleaned_data


class RepeatedCheck:
    """Whether the caller may still act on a selected document; looked up anew after a second.

    Changing a hundred documents, or deleting their files from a slow bucket, takes longer than that. If
    `demand` raises UploadRefused, the caller may act on no document any more.
    """

    def __init__(
        self,
        request: HttpRequest,
        chosen: Sequence[Document],
        may: Callable[[HttpRequest, Document], bool],
        demand: Callable[[], object] = lambda: None,
    ) -> None:
        self._request, self._may, self._demand = request, may, demand
        self._principal = session_principal(request)
        self._allowed = {each.pk for each in chosen}
        self._check = SenderCheck(self._principal, self._look_up)

    def __call__(self, document: Document) -> bool:
        try:
            self._check(self._demand)
        except UploadRefused:
            self._allowed = set()
        return document.pk in self._allowed

    def _look_up(self) -> None:
        self._request.user = User.objects.get(pk=self._principal.user_id)
        readable = Document.objects.visible_to(self._principal).filter(pk__in=self._allowed)
        self._allowed = {each.pk for each in readable if self._may(self._request, each)}


@login_required
@never_cache
@require_POST
def several(request: HttpRequest) -> HttpResponse:
    """The next step of an action on those selected documents that the caller may change or delete."""
    act = request.POST.get("act", "")
    step = {"delete": _delete, "rights": _rights, "place": _place}.get(act)
    may = may_delete if act == "delete" else may_change
    principal = session_principal(request)
    readable = library.with_readers(Document.objects.visible_to(principal)).order_by("name", "public_id")
    if "failed" in request.POST:  # instead of selected documents: failed ones that were never searchable
        failed = readable.owned_by(principal).filter(status=Document.Status.FAILED, version=0, part_of=None)
        selected = failed[:MAX_FAILED]
    else:
        selected = readable.filter(
            public_id__in=library.ids_in(request.POST.getlist("document")[:MAX_DOCUMENTS])
        )
    chosen = [each for each in selected if may(request, each)]
    whole = [each for each in chosen if not each.part_of_id]
    if step is None or not whole:
        messages.info(request, gettext(IS_PART) if step and chosen else gettext("Tick the documents first."))
        return redirect("ingestion:documents")
    return step(request, whole)


def _page(
    request: HttpRequest, chosen: Sequence[Document], status: int = 200, **shown: object
) -> HttpResponse:
    context = {"documents": chosen, "act": request.POST.get("act"), **shown}
    return render(request, "ingestion/several.html", context, status=status)


def _delete(request: HttpRequest, chosen: Sequence[Document]) -> HttpResponse:
    if request.POST.get("confirmed") != "yes":
        return _page(request, chosen)
    if held := [each for each in chosen if is_on_hold(each.owner_id)]:
        names = ", ".join(each.name for each in held[:MAX_NAMED])
        messages.error(request, f"{names}: {gettext(DOCUMENT_ON_HOLD)}")
        return redirect("ingestion:documents")
    is_allowed = RepeatedCheck(request, chosen, may_delete)
    others = [each for each in chosen if each.owner_id != request.user.pk]
    own = [each for each in chosen if each not in others]
    with transaction.atomic():
        deleted = []
        for each in filter(is_allowed, others):
            record_as_staff(request, each, "Deleted")
            deleted.append(each)
        stored.delete_documents(deleted)
    for start in range(0, len(own), MAX_DOCUMENTS):
        some = list(filter(is_allowed, own[start : start + MAX_DOCUMENTS]))
        stored.delete_documents(some)
        deleted += some
    return _done(
        request,
        lambda n: ngettext("%(number)s document deleted.", "%(number)s documents deleted.", n),
        len(deleted),
        len(chosen),
    )


def _rights(request: HttpRequest, chosen: Sequence[Document]) -> HttpResponse:
    audiences = {audience_of(each) for each in chosen}
    form = AudienceForm(
        request.POST if "who" in request.POST else None,
        principal=session_principal(request),
        any_group=any_group(request),
        current=audience_of(chosen[0]) if len(audiences) == 1 else Audience(),
    )
    if len(audiences) > 1:
        form.initial["who"] = None  # no default, because it could remove readers by mistake
    if not form.is_valid():
        rows = descriptions.rows(chosen, session_principal(request))
        return _page(request, chosen, 422 if form.is_bound else 200, form=form, rows=rows)
    audience = form.audience()
    wider = [each for each in chosen if widens(audience_of(each), audience)]
    if wider and request.POST.get("confirmed") != "yes":
        owners = frozenset(each.owner_id for each in wider if each.owner_id is not None)
        people = count_people(replace(audience, user_ids=audience.user_ids | owners))
        return _page(request, chosen, form=form, wider=len(wider), people=people)
    changed = 0
    for each in filter(RepeatedCheck(request, chosen, may_change, form.demand_readers), chosen):
        change_rights(request.user, each, audience)
        changed += 1
    return _done(
        request,
        lambda n: ngettext(
            "Access to %(number)s document updated. It applies from the next question.",
            "Access to %(number)s documents updated. It applies from the next question.",
            n,
        ),
        changed,
        len(chosen),
    )


def _place(request: HttpRequest, chosen: Sequence[Document]) -> HttpResponse:
    form = PlaceForm(request.POST if "folder" in request.POST else None)
    if not form.is_valid():
        return _page(request, chosen, 422 if form.is_bound else 200, place=form)
    assert isinstance(request.user, User)
    is_allowed = RepeatedCheck(request, chosen, may_change)
    stay: dict[Document, str] = {}
    for each in chosen:
        if not is_allowed(each):
            stay[each] = gettext(NOT_YOURS)
            continue
        try:
            with transaction.atomic():
                changed = {name: value for name, value in form.cleaned_data.items() if value}
                if folder := changed.get("folder"):
                    Folder("folder").write(each, folder, request.user)
                if category := changed.get("category"):
                    Column("category").write(each, category, request.user)
                record_as_staff(request, each, f"Changed ({details_in_words(each, changed)})")
        except StaysAsItIs as refusal:
            stay[each] = str(refusal)
    if stay:
        return _page(request, list(stay), 409, place=form, stay=stay)
    return _done(
        request,
        lambda n: ngettext("%(number)s document changed.", "%(number)s documents changed.", n),
        len(chosen),
        len(chosen),
    )


def _done(request: HttpRequest, words: Callable[[int], str], number: int, chosen: int) -> HttpResponse:
    if number:
        messages.success(request, words(number) % {"number": number})
    if number < chosen:
        messages.error(request, gettext(NOT_YOURS))
    return redirect("ingestion:documents")
