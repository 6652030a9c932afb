"""Documents in the admin: list, add, change, delete.

Passages are shown, but cannot be changed. The imports also register the admin pages of the glossary, of jobs
and of bulk changes.
"""

from functools import partial
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.core.files.uploadedfile import UploadedFile
from django.db.models import Case, CharField, F, Q, QuerySet, Value, When
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext, gettext_lazy

from chatsite.accounts.admin_base.admin_filters import TypedGroupFilter, TypedValueFilter
from chatsite.accounts.admin_base.audited_admin import user_of
from chatsite.accounts.admin_base.read_only_admin import OwnFilters, shown_object
from chatsite.accounts.admin_base.returning_admin import ReturnsToUnanswered
from chatsite.accounts.api.authentication import session_principal
from chatsite.accounts.audit import record, record_before
from chatsite.accounts.holds import DOCUMENT_ON_HOLD, is_on_hold
from chatsite.accounts.models import AuditEntry, User
from ingestion.access.admin import AccessPage
from ingestion.access.lists import (
    Audience,
    audience_of,
    change_rights,
    count_people,
    reader_names,
)
from ingestion.access.models import AccessEntry
from ingestion.bulk.admin import ChangeMany
from ingestion.bulk.forms import OLD_ANSWERS, groups_field, people_field
from ingestion.portal.descriptions import state
from ingestion.portal.document_actions import details_in_words
from ingestion.portal.upload_admin import AddSeveral, record_upserted
from ingestion.reasons import in_words

from . import documents
from .documents import upsert
from .embedding import pending_change
from .file_names import (
    UploadRefused,
    folder_name,
)
from .glossary import admin as _words  # noqa: F401 (registers its pages)
from .models import Document, Passage
from .queue import queue_admin as _queue  # noqa: F401 (registers its pages)
from .search.labels import content_address
from .sender_check import SenderCheck, demand_staff

PASSAGES_SHOWN = 100
MARKS = {Document.Status.READY: "✓", Document.Status.FAILED: "✗"}


def _unless_private(field: str) -> Case:
    """An expression that sorts by a column and treats hidden values as empty."""
    return Case(When(of_named_people=True, then=Value("")), default=F(field), output_field=CharField())


class DocumentForm(forms.ModelForm):  # type: ignore[type-arg]
    """The form for a document: its readers, folder, category and last day."""

    refusal = ""  # why valid values could not be saved
    everyone = forms.BooleanField(required=False, label=gettext_lazy("Everyone who signs in may read it"))
    guests = forms.BooleanField(
        required=False,
        label=gettext_lazy("Guests may read it too"),
        help_text=gettext_lazy("They are admitted if CHATSITE_LOGIN_REQUIRED is 0."),
    )
    users = people_field(label=gettext_lazy("People who may read it"))
    groups = groups_field(label=gettext_lazy("Groups that may read it"))

    class Meta:
        model = Document
        fields = ["folder", "category", "valid_until"]
        labels = {"valid_until": gettext_lazy("Last day")}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            self.fields["everyone"].help_text = OLD_ANSWERS
            current = audience_of(self.instance)
            self.initial["everyone"] = current.everyone
            self.initial["guests"] = current.guests
            self.initial["users"] = list(current.user_ids)
            self.initial["groups"] = list(current.group_ids)

    def clean_folder(self) -> str:
        try:
            folder = folder_name(self.cleaned_data["folder"])
        except UploadRefused as refusal:
            raise forms.ValidationError(in_words(refusal.message)) from refusal
        document = self.instance
        same = Document.objects.filter(origin=document.origin, folder=folder, name=document.name)
        if document.pk and document.origin and same.exclude(pk=document.pk).exists():
            raise forms.ValidationError(
                gettext("The folder already has a document %(name)s of this owner.") % {"name": document.name}
            )
        return folder

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        if self.refusal:
            raise forms.ValidationError(self.refusal)
        return values

    def audience(self) -> Audience:
        """The selected audience; call it after validation."""
        return Audience(
            everyone=self.cleaned_data["everyone"] or self.cleaned_data["guests"],
            guests=self.cleaned_data["guests"],
            user_ids=frozenset(user.pk for user in self.cleaned_data["users"]),
            group_ids=frozenset(group.pk for group in self.cleaned_data["groups"]),
        )


class NewDocumentForm(DocumentForm):
    """The form for a new document, with its file."""

    upload = forms.FileField(label=gettext_lazy("File"), allow_empty_file=True)

    def clean_upload(self) -> "UploadedFile[bytes]":
        upload: UploadedFile[bytes] = self.cleaned_data["upload"]
        if (upload.size or 0) > settings.DOCUMENT_MAX_BYTES:
            limit = f"{settings.DOCUMENT_MAX_BYTES / 1_000_000:g} MB"
            raise forms.ValidationError(gettext("The file is larger than %(limit)s.") % {"limit": limit})
        return upload


class CategoryFilter(TypedValueFilter):
    """Filters by category or by a missing category; never finds documents with hidden names."""

    def rows(self, request: HttpRequest, model: Any) -> QuerySet[Document]:
        return Document.objects.without_private(request.user.pk or 0)

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        found: Any = super().queryset(request, queryset)
        return found.filter(of_named_people=False) if self.used_parameters else found

    def choices(self, changelist: Any) -> Any:
        for choice in super().choices(changelist):
            yield {**choice, "display": choice["display"] or gettext("none")}


@admin.register(Document)
class DocumentAdmin(OwnFilters, ReturnsToUnanswered, AccessPage, AddSeveral, ChangeMany, admin.ModelAdmin):  # type: ignore[type-arg]
    """All documents, regardless of their readers: this page is for administrators."""

    list_display = ["listed_name", "listed_folder", "state", "readers", "owner", "changed_at", "page_count"]
    list_filter = ["status", ("category", CategoryFilter), ("access_list__entries__group", TypedGroupFilter)]
    list_select_related = ["owner"]
    search_fields = ["name", "title", "folder", "owner__username"]
    date_hierarchy = "created_at"
    linked_by = ["owner"]
    actions = ["change_many"]

    class Media:
        js = [forms.Script("live_page.js", type="module")]

    shown = [
        "name",
        "title",
        "owner",
        "state",
        "reason_in_words",
        "language",
        "page_count",
        "size",
        "media_type",
        "version",
        "public_id",
        "created_at",
        "changed_at",
        "passages",
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Document]:
        entries = ("access_list__entries__user", "access_list__entries__group")
        every = Document.objects.with_privacy(request.user.pk or 0)
        return every.prefetch_related(*entries)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Document], search_term: str
    ) -> tuple[QuerySet[Document], bool]:
        """The search results; pickers on other pages offer only documents that the user may read."""
        found, may_repeat = super().get_search_results(request, queryset, search_term)
        if request.path == reverse("admin:autocomplete"):
            found = found.filter(access_list__in=AccessEntry.lists_of(request.user.pk or 0))
        elif search_term.strip():
            # Searching must not reveal hidden names: match private documents only by their owner's user name.
            owners = Q()
            for word in search_term.split():
                owners &= Q(owner__username__icontains=word)
            found = found.filter(Q(of_named_people=False) | owners)
        return found, may_repeat

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        # The category filter leaves out documents with hidden names; other lookups by category would find
        # them and so reveal their categories.
        others = lookup.startswith("category__") and lookup != "category__isnull"
        return not others and super().lookup_allowed(lookup, value, request)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        if change := pending_change():
            messages.warning(request, change)
        return super().changelist_view(request, extra_context)

    def get_form(self, request: Any, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        kwargs["form"] = DocumentForm if obj else NewDocumentForm
        made = super().get_form(request, obj, change, **kwargs)
        return type(made.__name__, (made,), {"refusal": getattr(request, "upload_refusal", "")})

    def has_change_permission(self, request: HttpRequest, obj: Document | None = None) -> bool:
        """Parts of an archive or a message cannot be changed separately."""
        return (obj is None or not obj.part_of_id) and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Document | None = None) -> bool:
        return (obj is None or not obj.part_of_id) and super().has_delete_permission(request, obj)

    def get_fields(self, request: HttpRequest, obj: Document | None = None) -> list[Any]:
        if obj and obj.part_of_id:
            return ["part_of", "folder", "category", "valid_until", *self.shown]
        rights = ["everyone", "guests", "users", "groups", "folder", "category"]
        return [*rights, "valid_until", *self.shown] if obj else ["upload", *rights]

    def get_readonly_fields(self, request: HttpRequest, obj: Document | None = None) -> list[str]:
        return ["part_of", *self.shown] if obj else []

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().changeform_view(request, *args, **kwargs)
        except UploadRefused as refusal:
            # Nothing was saved: show the form again, now with the refusal as an error.
            request.upload_refusal = in_words(refusal.message)  # type: ignore[attr-defined]
            return super().changeform_view(request, *args, **kwargs)

    def save_model(self, request: HttpRequest, obj: Document, form: Any, change: bool) -> None:
        if change:
            changed = {name: getattr(obj, name) for name in ("folder", "category", "valid_until")}
            if written := {name: value for name, value in changed.items() if name in form.changed_data}:
                Document.objects.filter(pk=obj.pk).update(**written, changed_at=timezone.now())
                subject = f"Changed ({details_in_words(obj, written)}) {obj.name_for_audit}"
                actor = user_of(request)
                record(AuditEntry.Action.DOCUMENT_CHANGED, actor=actor, person=obj.owner, subject=subject)
            former = obj.access_list_id
            change_rights(request.user, obj, form.audience(), in_admin=True)
            if obj.access_list_id != former:
                _warn_without_readers(request, obj, form.audience())
            return
        upload: UploadedFile[bytes] = form.cleaned_data["upload"]
        owner, sender = user_of(request), session_principal(request)
        put = upsert(
            upload,
            upload.name or "",
            owner=owner,
            audience=form.audience(),
            folder=form.cleaned_data["folder"],
            category=form.cleaned_data["category"],
            check_sender=SenderCheck(sender, partial(demand_staff, sender)),
        )
        record_upserted(owner, put)
        if put.outcome == "unchanged":
            messages.info(
                request, gettext("This file is already here, with these rights. Nothing was changed.")
            )
        else:
            _warn_without_readers(request, put.document, form.audience())
        obj.pk = put.document.pk
        obj.refresh_from_db()

    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponse:
        """The page of a document.

        It shows the text, so it is audited if the viewer may not read the document in the portal.
        """
        reader = request.user
        if isinstance(reader, User) and self.has_view_permission(request):
            document = shown_object(self, request, object_id)
            readable = Document.objects.filter(access_list__in=AccessEntry.lists_of(reader.pk))
            if not readable.filter(pk=document.pk).exists():
                act, subject = AuditEntry.Action.DOCUMENT_READ, document.name_for_audit
                record_before(act, actor=reader, person=document.owner, subject=subject)
            # If `opens` is true, the page links to the document in the portal.
            kwargs["extra_context"] = {
                **(kwargs.get("extra_context") or {}),
                "opens": readable.filter(pk=document.pk).exists(),
                "file": content_address(document.public_id, document.name),
                "is_pdf": document.media_type == "application/pdf" and document.page_count,
            }
        return super().change_view(request, object_id, *args, **kwargs)

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        actor = user_of(request)
        for document in queryset:
            subject = f"Deleted {document.name_for_audit}"
            record(AuditEntry.Action.DOCUMENT_CHANGED, actor=actor, person=document.owner, subject=subject)
        return super().log_deletions(request, queryset)

    def delete_model(self, request: HttpRequest, obj: Document) -> None:
        documents.delete_document(obj)

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        actions = super().get_actions(request)
        # Django's confirmation page would list every document; use a bulk change to delete many.
        actions.pop("delete_selected", None)
        return actions

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        # Leave out the document's passages, of which there may be thousands.
        missing = set() if self.has_delete_permission(request) else {"document"}
        held = [
            f"{document}: {gettext(DOCUMENT_ON_HOLD)}" for document in objs if is_on_hold(document.owner_id)
        ]
        return [str(document) for document in objs], {gettext("documents"): len(objs)}, missing, held

    @admin.display(description=gettext_lazy("Name"), ordering=_unless_private("name"))
    def listed_name(self, document: Document) -> str:
        return str(document) if document.is_private else document.name

    @admin.display(description=gettext_lazy("Folder"), ordering=_unless_private("folder"))
    def listed_folder(self, document: Document) -> str:
        return "" if document.is_private else document.folder

    @admin.display(description=gettext_lazy("Status"), ordering="status")
    def state(self, document: Document) -> str:
        # live_page.js refreshes the page while a state begins with “…”, the mark of unfinished documents.
        ready, failed = document.status == Document.Status.READY, document.status == Document.Status.FAILED
        mark = "✗" if ready and document.is_expired else MARKS.get(Document.Status(document.status), "…")
        reason = in_words(document.reason) if failed else ""
        return f"{mark} {state(document).words}{reason and f': {reason}'}"

    @admin.display(description=gettext_lazy("Reason"))
    def reason_in_words(self, document: Document) -> str:
        return in_words(document.reason) if document.reason else "-"

    @admin.display(description=gettext_lazy("Readers"))
    def readers(self, document: Document) -> str:
        return reader_names(document)

    @admin.display(description=gettext_lazy("Passages"))
    def passages(self, document: Document) -> str:
        found = Passage.objects.filter(document=document).order_by("position")
        rows = [(passage.anchor or "–", passage.content) for passage in found[:PASSAGES_SHOWN]]
        lines = format_html_join("", "<dt>{}</dt><dd>{}</dd>", rows)
        total = gettext("%(count)s in all") % {"count": found.count()}
        return format_html('<details><summary>{}</summary><dl dir="auto">{}</dl></details>', total, lines)


def _warn_without_readers(request: HttpRequest, document: Document, audience: Audience) -> None:
    """Warn if the chosen readers let only the owner, or nobody, read the document."""
    if audience.everyone or count_people(audience, besides=document.owner_id or 0):
        return
    if document.owner:
        text = gettext("Nobody but its owner, %(owner)s, can read this document now.")
        messages.warning(request, text % {"owner": document.owner.display_name()})
    else:
        messages.warning(request, gettext("Nobody can read this document now: it has no owner."))
