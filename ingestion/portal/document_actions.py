"""Views that change, reread or delete a document. Only POST changes anything."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext, gettext_noop
from django.views.decorators.http import require_http_methods, require_POST
from rest_framework.request import Request

from chatsite.accounts.api.authentication import session_principal
from chatsite.accounts.api_keys import Scope
from chatsite.accounts.audit import record
from chatsite.accounts.holds import OnHold
from chatsite.accounts.models import AuditEntry, User
from chatsite.accounts.principal import Principal
from ingestion import documents
from ingestion.access.lists import (
    audience_of,
    change_rights,
    count_people,
    widens,
)
from ingestion.details import Details
from ingestion.models import Document

from . import library
from .forms import AudienceForm, DetailsForm

NOT_YOURS = gettext_noop(
    "Only the person who added the document or an administrator can change or delete it."
)

IS_PART = gettext_noop(
    "It is part of an archive or a message, and has the same readers, details and place. Change or "
    "delete the archive or message instead."
)


def _acts_as_staff(request: HttpRequest | Request) -> bool:
    """Whether the caller has the rights of staff; a key also needs the scope ADMIN_DOCUMENTS."""
    key = getattr(request, "auth", None)
    return (
        isinstance(request.user, User)
        and request.user.is_staff
        and (not isinstance(key, Principal) or key.has_scope(Scope.ADMIN_DOCUMENTS))
    )


def _may(request: HttpRequest | Request, document: Document, permission: str) -> bool:
    if not isinstance(request.user, User):
        return False
    return document.owner_id == request.user.pk or (
        _acts_as_staff(request) and request.user.has_perm(f"ingestion.{permission}")
    )


def may_change(request: HttpRequest | Request, document: Document) -> bool:
    """Whether the caller may change a document that they may read."""
    return _may(request, document, "change_document")


def may_delete(request: HttpRequest | Request, document: Document) -> bool:
    return _may(request, document, "delete_document")


def record_as_staff(request: HttpRequest | Request, document: Document, did: str) -> None:
    """Audit a change of a document that is not the caller's own. Call in the change's transaction."""
    actor = request.user
    if isinstance(actor, User) and document.owner_id != actor.pk:
        subject = f"{did} {document.name_for_audit}"
        record(AuditEntry.Action.DOCUMENT_CHANGED, actor=actor, person=document.owner, subject=subject)


def details_in_words(document: Document, changed: Mapping[str, Any]) -> str:
    """The names and new values of the changed details, in English for the audit log.

    For a document that only named people may read, all values except `valid_until` are left out.
    """
    words = {"given_title": "title", "source_url": "source", "valid_until": "last day"}
    parts = []
    for name, value in sorted(changed.items()):
        label = words.get(name, name.replace("_", " "))
        if document.is_for_named_people and name != "valid_until":
            parts.append(label)
        else:
            parts.append(f"{label}: {(', '.join(value) if isinstance(value, list) else value) or 'removed'}")
    return "; ".join(parts)


def _changeable(request: HttpRequest, public_id: UUID, *, even_part: bool = False) -> Document:
    """The document, if the caller may change it; parts of archives only with `even_part`.

    Raises Http404 if the caller may not read it, or PermissionDenied if they may not change it.
    """
    readable = library.with_readers(Document.objects.visible_to(session_principal(request)))
    document = get_object_or_404(readable, public_id=public_id)
    if not may_change(request, document):
        raise PermissionDenied(gettext(NOT_YOURS))
    if document.part_of_id and not even_part:
        raise PermissionDenied(gettext(IS_PART))
    return document


def any_group(request: HttpRequest | Request) -> bool:
    """Whether the caller may select groups that they are not in."""
    return _acts_as_staff(request)


def rights_form(request: HttpRequest, document: Document) -> AudienceForm:
    """The form with the current rights, or with those just submitted."""
    return AudienceForm(
        request.POST if request.method == "POST" else None,
        principal=session_principal(request),
        any_group=any_group(request),
        current=audience_of(document),
    )


@login_required
@require_POST
def rights(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Changes who may read the document.

    If that adds readers, asks for confirmation with the number of all people who could then read it.
    """
    document = _changeable(request, public_id)
    form = rights_form(request, document)
    context: dict[str, Any] = {"document": document, "form": form}
    if not form.is_valid():
        return render(request, "ingestion/rights.html", context, status=422)
    audience = form.audience()
    if widens(audience_of(document), audience) and request.POST.get("confirmed") != "yes":
        owner = frozenset() if document.owner_id is None else frozenset({document.owner_id})
        readers = replace(audience, user_ids=audience.user_ids | owner)
        return render(request, "ingestion/widen.html", context | {"count": count_people(readers)})
    change_rights(request.user, document, audience)
    messages.success(request, gettext("Access updated. It applies from the next question."))
    if not Document.objects.visible_to(session_principal(request)).filter(pk=document.pk).exists():
        return redirect("ingestion:documents")
    return redirect("ingestion:document", public_id)


def details_form(request: HttpRequest, document: Document) -> DetailsForm:
    """The form with the stored details, or with the submitted ones."""
    initial = {
        "title": document.given_title,
        "labels": ", ".join(document.labels),
        "source_url": document.source_url,
        "valid_until": document.valid_until,
    }
    return DetailsForm(request.POST if request.method == "POST" else None, initial=initial)


@login_required
@require_POST
def details(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Changes title, labels, source and last day of the document."""
    document = _changeable(request, public_id)
    form = details_form(request, document)
    if not form.is_valid():
        context = {"document": document, "details": form}
        return render(request, "ingestion/details.html", context, status=422)
    with transaction.atomic():
        if changed := documents.change_details(document, cast(Details, form.cleaned_data)):
            record_as_staff(request, document, f"Changed ({details_in_words(document, changed)})")
    messages.success(request, gettext("Details saved."))
    return redirect("ingestion:document", public_id)


@login_required
@require_POST
def again(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Queues the file to be read again; the current passages are used until then."""
    document = _changeable(request, public_id, even_part=True)
    if document.status in Document.UNFINISHED:
        messages.info(request, gettext("The document is already being read."))
    else:
        with transaction.atomic():
            record_as_staff(request, document, "Read again")
            documents.retry(document)
        messages.success(request, gettext("The document is being read again."))
    return redirect("ingestion:document", public_id)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Deletes the document with its file and passages, after a confirmation."""
    readable = Document.objects.visible_to(session_principal(request))
    document = get_object_or_404(readable, public_id=public_id)
    if not may_delete(request, document):
        raise PermissionDenied(gettext(NOT_YOURS))
    if document.part_of_id:
        raise PermissionDenied(gettext(IS_PART))
    if request.method != "POST":
        context = {"document": document, "has_parts": document.parts.exists()}
        return render(request, "ingestion/delete.html", context)
    try:
        with transaction.atomic():
            record_as_staff(request, document, "Deleted")
            documents.delete_document(document)
    except OnHold as refused:
        messages.error(request, str(refused))
        return redirect("ingestion:document", public_id)
    messages.success(request, gettext("Document deleted."))
    return redirect("ingestion:documents")
