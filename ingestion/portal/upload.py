"""Uploads documents. The form works without JavaScript; a script sends files one by one to show progress."""

import re
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponseBase, JsonResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext, ngettext
from django.views.decorators.http import require_http_methods

from chatsite.accounts.models import User
from chatsite.accounts.page_decorators import signed_in
from chatsite.accounts.principal import Principal
from ingestion import (
    documents,
    quota,
)
from ingestion.access.lists import (
    Audience,
    audience_of,
    count_people,
)
from ingestion.attachment_folder import attached
from ingestion.document_identity import UpsertResult
from ingestion.documents import upsert
from ingestion.file_names import decode_sent_name
from ingestion.models import Document
from ingestion.parsing.formats import format_names
from ingestion.reasons import in_words
from ingestion.sender_check import SenderCheck

from . import library
from .descriptions import (
    as_json,
    rows,
)
from .document_actions import any_group
from .forms import UploadForm

UUID_TEXT = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
RECENT = timedelta(hours=1)
MAX_RECENT = 50


@signed_in
@require_http_methods(["GET", "HEAD", "POST"])
def add(request: HttpRequest, principal: Principal) -> HttpResponseBase:
    """Add files; show the form and the states of the caller's recent and unfinished documents."""
    posted = request.method == "POST"
    form = UploadForm(
        request.POST if posted else None,
        request.FILES if posted else None,
        principal=principal,
        any_group=any_group(request),
    )
    added: list[UpsertResult] = []
    refused: list[dict[str, str]] = []
    replaced = _to_replace(request, principal)
    if posted and "replace" in request.GET and not replaced:
        raise Http404  # perhaps deleted meanwhile; the file must not become a new document
    if posted and form.is_valid():
        added, refused = add_files(form, principal, replaces=replaced)
    bad = posted and (bool(refused) or not added)
    status = status_of(refused) if bad else 201 if posted else 200
    if request.get_preferred_type(["text/html", "application/json"]) == "application/json":
        return JsonResponse(reply(form, principal, added, refused), status=status)
    if posted and not bad:
        messages.success(request, _words(added))
        return redirect("ingestion:add")
    mine = (
        Document.objects.owned_by(principal)
        .filter(part_of=None)
        .filter(Q(status__in=Document.UNFINISHED) | Q(created_at__gt=timezone.now() - RECENT))
    )
    recent = rows(list(library.with_readers(mine)[:MAX_RECENT]), principal)
    if replaced and not posted:
        form = UploadForm(principal=principal, any_group=any_group(request), current=audience_of(replaced))
        form.initial = {**form.initial, "folder": replaced.folder, "category": replaced.category}
    context = {
        "replaced": replaced,
        "form": form,
        "refused": refused,
        "added": len(added),
        "rows": recent,
        "unfinished": not posted and any(line.unfinished for line in recent),
        "kinds": list(map(gettext, format_names())),
        "most": f"{settings.DOCUMENT_MAX_BYTES / 1_000_000:g} MB",
        "use": in_use(principal),
        "everyone": count_people(Audience(everyone=True)),
        "folders": _known(principal, "folder"),
        "categories": _known(principal, "category"),
    }
    return render(request, "ingestion/add.html", context, status=status)


def add_files(
    form: UploadForm,
    principal: Principal,
    on_added: Callable[[UpsertResult], None] | None = None,
    *,
    replaces: Document | None = None,
) -> tuple[list[UpsertResult], list[dict[str, str]]]:
    """Add each file independently: a refused one does not affect the others.

    `on_added` is called after each accepted file, before the next one is stored. The first file replaces the
    document `replaces`, if given.
    """
    check_sender = SenderCheck(principal, form.demand_readers)
    owner = User.objects.get(pk=principal.user_id)
    audience = form.audience()
    added: list[UpsertResult] = []
    refused: list[dict[str, str]] = []
    for number, file in enumerate(form.cleaned_data["file"]):
        try:
            put = upsert(
                file,
                decode_sent_name(file.name),
                owner=owner,
                audience=audience,
                folder=form.cleaned_data["folder"],
                category=form.cleaned_data["category"],
                within_quota=True,
                check_sender=check_sender,
                replaces=None if number else replaces,
            )
        except documents.UploadRefused as refusal:
            refused.append(
                {
                    "name": decode_sent_name(file.name),
                    "code": refusal.code,
                    "message": in_words(refusal.message),
                }
            )
        else:
            added.append(put)
            if on_added:
                on_added(put)
    return added, refused


def reply(
    form: UploadForm, principal: Principal, added: list[UpsertResult], refused: list[dict[str, str]]
) -> dict[str, Any]:
    """The response for the upload script: documents with their states, and refused files with reasons."""
    problems = [str(problem) for problems in form.errors.values() for problem in problems]
    lines = rows([put.document for put in added], principal)
    return {
        "documents": [
            as_json(line) | {"outcome": put.outcome, "outcome_words": _replaced(put) or _twin(put)}
            for line, put in zip(lines, added, strict=True)
        ],
        "refused": refused,
        "problems": problems,
        "use": in_use(principal),
    }


def in_use(principal: Principal) -> str:
    """How much of their quota the person uses, as text; empty without a quota."""
    use = quota.usage_of(User.objects.get(pk=principal.user_id))
    return use.words if use.limited else ""


def status_of(refused: list[dict[str, str]]) -> int:
    """The HTTP status of a refusal: 507 for a full disk, 503 if the storage fails, or 422."""
    codes = {refusal["code"] for refusal in refused}
    return 507 if "storage_full" in codes else 503 if "storage_away" in codes else 422


OUTCOMES = ("added", "replaced", "unchanged")


MAX_NAMED = 5  # the message names up to this many replaced files, and as many added files with a twin


def _replaced(put: UpsertResult) -> str:
    """A text like “Replaced: version 2 of canteen.md”; empty if nothing was replaced."""
    if put.outcome != "replaced":
        return ""
    words = gettext("Replaced: version %(version)s of %(name)s")
    return words % {"version": put.document.version + 1, "name": put.document.name}


def _twin(put: UpsertResult) -> str:
    """A warning about another document of the owner with the same file or name; empty if there is none.

    Answers would cite both, and an old version remains in use if the new one was added to another folder.
    """
    added = put.document
    if put.outcome != "added":
        return ""
    others = Document.objects.filter(owner=added.owner, part_of=None).exclude(attached()).exclude(pk=added.pk)
    if twin := others.filter(sha256=added.sha256).first():
        words = gettext("You have this file already: %(document)s")
    elif twin := others.filter(name=added.name).first():
        words = gettext("You have another document of this name: %(document)s")
    else:
        return ""
    return words % {"document": "/".join(filter(None, (twin.folder, twin.name)))}


def _words(added: list[UpsertResult]) -> str:
    """A text like “2 files added, 1 replaced.”, followed by the names of replaced and duplicate files."""
    replaced = [words for words in map(_replaced, added) if words]
    twins = [words for words in map(_twin, added) if words]
    if len(added) == 1 and replaced:
        return f"{replaced[0]}."
    counts: Counter[str] = Counter(put.outcome for put in added)
    words = {
        "added": ngettext("%(number)s file added", "%(number)s files added", counts["added"]),
        "replaced": ngettext("%(number)s file replaced", "%(number)s files replaced", counts["replaced"]),
        "unchanged": ngettext("%(number)s file unchanged", "%(number)s files unchanged", counts["unchanged"]),
    }
    first, *others = [outcome for outcome in OUTCOMES if counts[outcome]]
    short = {
        "replaced": gettext("%(number)s replaced"),
        "unchanged": gettext("%(number)s unchanged"),
    }
    named = [words[first], *(short[outcome] for outcome in others)]
    counted = [text % {"number": counts[o]} for text, o in zip(named, [first, *others], strict=True)]
    notes = [*replaced[:MAX_NAMED], *twins[:MAX_NAMED]]
    return " ".join([f"{', '.join(counted)}.", *(f"{text}." for text in notes)])


def _to_replace(request: HttpRequest, principal: Principal) -> Document | None:
    """The caller's document in the query parameter `replace`; None if an upload cannot replace it."""
    public_id = request.GET.get("replace", "")
    if not UUID_TEXT.fullmatch(public_id):
        return None
    mine = Document.objects.owned_by(principal).filter(origin__isnull=False, part_of=None)
    return mine.filter(public_id=public_id).first()


def _known(principal: Principal, field: str) -> list[str]:
    """Folders or categories of readable documents, as suggestions."""
    named = Document.objects.visible_to(principal).exclude(**{field: ""}).order_by(field)
    return list(named.values_list(field, flat=True).distinct()[:200])
