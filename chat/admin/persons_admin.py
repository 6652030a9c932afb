"""Exports and erases people's data in the admin.

Erasure replaces Django's own deletion, which could not stop running answers or hand over documents.
"""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.translation import gettext, gettext_lazy, ngettext

from chat.persons.erasure import ErasureRefused, count_data, erase, files_left_in_words, hold_in_words
from chat.persons.person_export import ExportRunning, export_response
from chatsite.accounts import staff_access
from chatsite.accounts.admin import UserAdmin
from chatsite.accounts.admin_base.audited_admin import user_of
from chatsite.accounts.admin_base.pickers import Picker
from chatsite.accounts.admin_base.read_only_admin import shown_object
from chatsite.accounts.models import Look, User
from ingestion.models import Document
from ingestion.storage.files import StorageFault


class ErasingForm(forms.Form):
    """Whether to hand over or delete what others use, and a confirmation."""

    documents = forms.ChoiceField(
        label=gettext_lazy("Documents that others read, verified answers and evaluation questions"),
        required=False,
        choices=[
            ("", gettext_lazy("Choose (if there are any)")),
            ("hand over", gettext_lazy("Hand over")),
            ("delete", gettext_lazy("Delete for everybody")),
        ],
    )
    successor = forms.ModelChoiceField(
        User.objects.filter(is_active=True, guest_until=None),
        label=gettext_lazy("Hand over to"),
        required=False,
        widget=Picker(Document._meta.get_field("owner"), admin.site),
        help_text=gettext_lazy("Type a part of the name."),
    )
    confirmed = forms.BooleanField(label=gettext_lazy("Erase this person. This cannot be undone."))

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        if values.get("documents") == "hand over":
            if not values.get("successor") and "successor" not in self.errors:
                self.add_error("successor", gettext("Choose who gets them."))
        else:
            values["successor"] = None
        return values


class ExportForm(forms.Form):
    """The reason for exporting another person's data."""

    reason = forms.CharField(
        label=gettext_lazy("Reason"),
        min_length=10,
        max_length=Look.MAX_REASON,
        widget=forms.TextInput(attrs={"size": 80}),
        help_text=gettext_lazy("For example, a ticket number, and who receives the file."),
    )


admin.site.unregister(User)


@admin.register(User)
class PersonAdmin(UserAdmin):
    """Accounts; deleting one erases the person (see chat.persons.erasure)."""

    def get_actions(self, request: HttpRequest) -> Any:
        """All actions except bulk deletion: people are erased one by one, with a list of what is deleted."""
        actions = super().get_actions(request)
        actions.pop("delete_selected", None)
        return actions

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        """After an account was disabled, warn that its documents may need a new owner."""
        super().save_model(request, obj, form, change)
        owned = Document.objects.filter(owner=obj).count()
        if change and "is_active" in form.changed_data and not obj.is_active and owned:
            words = ngettext(
                "{person} still owns {number} document. {link}",
                "{person} still owns {number} documents. {link}",
                owned,
            )
            link: Any = ""
            if request.user.has_perm("ingestion.change_document"):
                address = f"{reverse('admin:ingestion_document_changelist')}?owner__id__exact={obj.pk}"
                link = format_html('<a href="{}">{}</a>', address, gettext("Hand over"))
            messages.warning(request, format_html(words, person=obj, number=owned, link=link))

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.export_view)
        return [path("<int:person_id>/export/", view, name="accounts_user_export"), *super().get_urls()]

    def export_view(self, request: HttpRequest, person_id: int) -> HttpResponseBase:
        """Export all data of a person as a zip file; the reason is disclosed to the person later."""
        actor = request.user
        allowed = isinstance(actor, User) and actor.has_perm(staff_access.EXPORT_PERMISSION)
        if not allowed or not self.has_view_permission(request):
            raise PermissionDenied
        assert isinstance(actor, User)
        person = self.get_object(request, str(person_id))
        if person is None:
            raise Http404("There is no such person.")
        form = ExportForm(request.POST or None)
        if form.is_valid():
            reason, name = form.cleaned_data["reason"], f"{settings.SITE_NAME}-{person.pk}.zip"
            try:
                return export_response(request, person, actor=actor, name=name, reason=reason)
            except ExportRunning:
                form.add_error(
                    None, gettext("Your last file is still being prepared. Wait until it is ready.")
                )
            except StorageFault:
                form.add_error(None, gettext("The file storage does not respond. Try again in a moment."))
        context = {
            **self.admin_site.each_context(request),
            "title": gettext("Export all data of a person"),
            "opts": self.opts,
            "object": person,
            "holdings": count_data(person),
            "form": form,
            "days": settings.LOOK_NOTICE_DAYS,
        }
        return TemplateResponse(request, "admin/accounts/user/export.html", context)

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        person = shown_object(self, request, object_id)
        if not self.has_delete_permission(request, person):
            raise PermissionDenied
        form = ErasingForm(request.POST or None)
        if form.is_valid():
            try:
                had = erase(
                    person,
                    actor=user_of(request),
                    documents_to=form.cleaned_data["successor"],
                    delete_documents=form.cleaned_data["documents"] == "delete",
                )
            except ErasureRefused as refused:
                form.add_error(None, str(refused))
            else:
                messages.success(request, gettext("The person was erased."))
                if had.files_left:
                    messages.warning(request, files_left_in_words(had.files_left))
                return HttpResponseRedirect(reverse("admin:accounts_user_changelist"))
        shows_hold = person.legal_hold and not form.is_bound and request.user.is_superuser
        context = {
            **self.admin_site.each_context(request),
            "hold": hold_in_words(person, None) if shows_hold else "",
            "title": gettext("Erase a person"),
            "opts": self.opts,
            "object": person,
            "holdings": count_data(person),
            "form": form,
            "media": self.media + form.media,
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/accounts/user/erase.html", context)
