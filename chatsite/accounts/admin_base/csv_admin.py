"""Admin pages with import from a CSV file and export to one.

They are for lists that people also keep in a spreadsheet.
"""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.http import require_safe

from chatsite.accounts.api.authentication import session_principal
from chatsite.accounts.models import User
from chatsite.accounts.principal import still_valid
from chatsite.http.csv_cells import MAX_FILE_BYTES, BadFile

from .audited_admin import user_of


class CsvForm(forms.Form):
    """A CSV file."""

    upload = forms.FileField(label=gettext_lazy("CSV file"))


class CsvAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Adds the pages `file/`, for imports, and `csv_name`, the exported file."""

    csv_name = "list.csv"
    csv_title: str | Promise = ""  # title of the page for imports
    csv_columns: str | Promise = ""  # what a file should contain

    def may_import(self, request: HttpRequest) -> bool:
        return super().has_add_permission(request)

    def import_csv(self, user: User, content: bytes) -> str:
        """Import the whole file, audit the import, and return the message to show. Raises BadFile."""
        raise NotImplementedError

    def export_csv(self, user: User) -> str:
        raise NotImplementedError

    def get_urls(self) -> list[URLPattern]:
        view, name = self.admin_site.admin_view, f"{self.opts.app_label}_{self.opts.model_name}"
        return [
            path("file/", view(self.file_page), name=f"{name}_file"),
            path(self.csv_name, view(require_safe(self.csv_file)), name=f"{name}_csv"),
            *super().get_urls(),
        ]

    def file_page(self, request: HttpRequest) -> HttpResponse:
        if not self.may_import(request):
            raise PermissionDenied
        form = CsvForm(request.POST or None, request.FILES or None)
        form.fields["upload"].help_text = str(self.csv_columns)
        if request.method == "POST" and form.is_valid():
            upload: UploadedFile[bytes] = form.cleaned_data["upload"]
            try:
                with transaction.atomic():
                    done = self.import_csv(user_of(request), upload.read(MAX_FILE_BYTES + 1))
                    # An import takes seconds, and the permission may be withdrawn meanwhile.
                    request.user = User.objects.get(pk=user_of(request).pk)
                    allowed = self.admin_site.has_permission(request) and self.may_import(request)
                    if not (allowed and still_valid(session_principal(request))):
                        raise PermissionDenied
            except BadFile as refusal:
                form.add_error("upload", gettext("%(refusal)s Nothing was imported.") % {"refusal": refusal})
            else:
                messages.success(request, done)
                return redirect(f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist")
        return self.page(request, "admin/csv_file.html", str(self.csv_title), form=form)

    def csv_file(self, request: HttpRequest) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        content = self.export_csv(user_of(request))
        response = HttpResponse(content, content_type="text/csv; charset=utf-8")
        response["Content-Disposition"] = f'attachment; filename="{self.csv_name}"'
        return response

    def page(self, request: HttpRequest, template: str, title: str, **values: Any) -> HttpResponse:
        context = {**self.admin_site.each_context(request), "title": title, "opts": self.opts, **values}
        return TemplateResponse(request, template, context)
