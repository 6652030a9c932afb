"""Erasing a person in the admin.

Django's own deletion refuses there: a conversation would go too, and that is nobody's to delete in the admin.
"""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse

from chatsite.accounts.admin import UserAdmin
from chatsite.accounts.models import User

from .persons import CannotErase, erase, holdings_of


class ErasingForm(forms.Form):
    """The decision on what others use, and the confirmation."""

    documents = forms.ChoiceField(
        label="Documents that others read, verified answers and proof questions",
        required=False,
        choices=[("", "There are none"), ("hand over", "Hand over"), ("delete", "Delete for everybody")],
    )
    successor = forms.CharField(label="Hand over to (user name)", required=False, max_length=150)
    confirmed = forms.BooleanField(label="Erase this person. This cannot be undone.")

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        if values.get("documents") == "hand over":
            found = User.objects.filter(username=values.get("successor", "")).first()
            if found is None:
                self.add_error("successor", "There is no account of this name.")
            values["successor"] = found
        else:
            values["successor"] = None
        return values


admin.site.unregister(User)


@admin.register(User)
class PersonAdmin(UserAdmin):
    """People, of whom deletion erases all that is theirs."""

    def get_actions(self, request: HttpRequest) -> Any:
        """Without deletion of several: each person is confirmed on a page that says what will go."""
        actions = super().get_actions(request)
        actions.pop("delete_selected", None)
        return actions

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        person = self.get_object(request, object_id)
        if not self.has_delete_permission(request, person):
            raise PermissionDenied
        if person is None:
            return HttpResponseRedirect(reverse("admin:index"))
        form = ErasingForm(request.POST or None)
        if form.is_valid():
            try:
                erase(
                    person,
                    actor=request.user if isinstance(request.user, User) else None,
                    documents_to=form.cleaned_data["successor"],
                    delete_documents=form.cleaned_data["documents"] == "delete",
                )
            except CannotErase as refused:
                form.add_error(None, str(refused))
            else:
                messages.success(request, "The person was erased.")
                return HttpResponseRedirect(reverse("admin:accounts_user_changelist"))
        context = {
            **self.admin_site.each_context(request),
            "title": "Erase a person",
            "opts": self.opts,
            "object": person,
            "holdings": holdings_of(person),
            "form": form,
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/accounts/user/erase.html", context)
