"""A page of the admin that adds several files at once, like the portal's page."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib.admin import AdminSite
from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext, gettext_lazy, gettext_noop
from django.views.decorators.cache import never_cache

from chatsite.accounts.api.authentication import session_principal
from chatsite.accounts.audit import record
from chatsite.accounts.models import AuditEntry, User
from ingestion.bulk.forms import groups_field, people_field
from ingestion.document_identity import UpsertResult
from ingestion.models import Document
from ingestion.parsing.formats import format_names
from ingestion.sender_check import demand_staff

from .forms import GUESTS, READERS, SOME, UploadForm
from .upload import add_files, status_of

OUTCOMES = {
    "added": gettext_noop("Added"),
    "replaced": gettext_noop("Replaced"),
    "unchanged": gettext_noop("Unchanged"),
}


class SeveralFilesForm(UploadForm):
    """The portal's form with the admin's autocomplete fields: there may be thousands of groups."""

    groups = groups_field(label=gettext_lazy("Groups"))
    people = people_field(label=gettext_lazy("People"))  # type: ignore[assignment]  # chosen from a list

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, any_group=True, **kwargs)
        who, groups, people = (self.fields[name] for name in ("who", "groups", "people"))
        assert isinstance(groups, forms.ModelMultipleChoiceField)
        assert isinstance(people, forms.ModelMultipleChoiceField)
        groups.queryset = Group.objects.all()
        people.queryset = User.objects.filter(is_active=True, guest_until=None)
        who.label = gettext("Who can read them?")
        self.fields["file"].label = gettext("Files")
        self.fields["folder"].label = gettext("Folder")
        self.fields["category"].label = gettext("Category")
        offered = [each for each in READERS if each[0] != GUESTS or self.offers_guests]
        who.widget = forms.RadioSelect({"class": "radiolist"}, offered)

    def clean_people(self) -> frozenset[int]:
        chosen = self.cleaned_data["people"] if self.data.get("who") == SOME else []
        return frozenset(user.pk for user in chosen)

    def demand_readers(self) -> None:
        """Raise UploadRefused if the person may no longer add documents in the admin.

        Staff may choose any readers.
        """
        demand_staff(self._principal)


class AddSeveral:
    """Adds the page to the admin of documents."""

    admin_site: AdminSite

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(never_cache(self.add_several))
        return [
            path("add-several/", view, name="ingestion_document_add_several"),
            *super().get_urls(),  # type: ignore[misc]
        ]

    def add_several(self, request: HttpRequest) -> HttpResponse:
        """Shows the form, then the outcome for each file. A file is not added twice to a folder."""
        user = request.user
        if not isinstance(user, User) or not self.has_add_permission(request):  # type: ignore[attr-defined]
            raise PermissionDenied
        posted = request.method == "POST"
        principal = session_principal(request)
        form = SeveralFilesForm(
            request.POST if posted else None, request.FILES if posted else None, principal=principal
        )
        context: dict[str, Any] = {
            **self.admin_site.each_context(request),
            "title": gettext("Add several documents"),
            "opts": Document._meta,
            "form": form,
            "readers": [form["groups"], form["people"]],
            "media": form.media,
        }
        if posted and form.is_valid():
            added, refused = add_files(form, principal, lambda put: record_upserted(user, put))
            context["added"] = [(gettext(OUTCOMES[put.outcome]), put.document) for put in added]
            context["waiting"] = any(put.document.status in Document.UNFINISHED for put in added)
            context["refused"] = refused
            status = 200 if added else status_of(refused)
            return TemplateResponse(
                request, "admin/ingestion/document/added_several.html", context, status=status
            )
        context |= {
            "kinds": list(map(gettext, format_names())),
            "max_files": settings.DATA_UPLOAD_MAX_NUMBER_FILES,
            "max_file": f"{settings.DOCUMENT_MAX_BYTES / 1_000_000:g} MB",
            "max_together": f"{settings.UPLOAD_BODY_LIMIT / 1_000_000:g} MB",
        }
        return TemplateResponse(
            request, "admin/ingestion/document/add_several.html", context, status=422 if posted else 200
        )


def record_upserted(actor: User | None, put: UpsertResult) -> None:
    """Write to the audit log that a member of staff added or replaced a document in the admin."""
    if put.outcome != "unchanged":
        document = put.document
        subject = f"{OUTCOMES[put.outcome]} {document.name_for_audit}"
        record(AuditEntry.Action.DOCUMENT_CHANGED, actor=actor, person=document.owner, subject=subject)
