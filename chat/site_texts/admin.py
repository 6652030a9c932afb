"""The site's texts and starting questions in the admin.

Every change of the texts creates a version; versions can be compared and restored.
"""

import difflib
from io import BytesIO
from typing import Any, cast

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.db.models import Field
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.html import conditional_escape, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext, gettext_lazy
from PIL import Image

from chat.engine.trial import draft_answer
from chat.errors import words
from chat.llm import ModelError
from chat.llm.chat_model import APPEND_MARK, instructions
from chatsite.accounts.admin_base.audited_admin import AuditedChanges, user_of
from chatsite.accounts.admin_base.pickers import AutocompleteAdmin
from chatsite.accounts.admin_base.read_only_admin import OwnFilters
from chatsite.accounts.models import AuditEntry
from chatsite.accounts.principal import Principal
from chatsite.db.threads import reading_as
from chatsite.http.parameters import LARGEST_KEY, whole_number

from . import reload
from .models import MAX_TEXT, SiteTexts, StartingQuestion

MARK_BYTES = 500_000
MARK_PIXELS = 4_000  # longest edge of the uploaded image
MARK_EDGE = 128  # edge of the stored image
MAX_QUESTION = 1_000
FORMATS = ("PNG", "JPEG", "WEBP")


def as_logo(upload: "UploadedFile[Any]") -> bytes:
    """Convert an uploaded picture to a small PNG without metadata. Raises ValidationError."""
    if (upload.size or 0) > MARK_BYTES:
        raise forms.ValidationError(gettext("The file is larger than 500 KB."))
    try:
        with Image.open(upload.file or BytesIO(), formats=FORMATS) as picture:
            if max(picture.size) > MARK_PIXELS:
                raise forms.ValidationError(
                    gettext("The picture can have at most %(pixels)s × %(pixels)s pixels.")
                    % {"pixels": MARK_PIXELS}
                )
            picture.thumbnail((MARK_EDGE, MARK_EDGE))
            small = picture.convert("RGBA")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        raise forms.ValidationError(gettext("This is not a picture in PNG, JPEG or WebP.")) from None
    small.info.clear()
    target = BytesIO()
    small.save(target, "PNG", optimize=True)
    return target.getvalue()


class TextsForm(forms.ModelForm):  # type: ignore[type-arg]
    """The form for a new version, prefilled with the texts of an existing one."""

    new_logo = forms.FileField(
        label=capfirst(gettext_lazy("logo")),
        required=False,
        help_text=gettext_lazy(
            "A square picture beside the name: PNG, JPEG or WebP. Leave empty to keep the current one."
        ),
    )
    no_logo = forms.BooleanField(label=capfirst(gettext_lazy("the program's own logo")), required=False)
    begun_from = forms.IntegerField(label="", widget=forms.HiddenInput, required=False)
    newest = forms.IntegerField(label="", widget=forms.HiddenInput, required=False)

    class Meta:
        model = SiteTexts
        fields = SiteTexts.TEXTS

    def clean_new_logo(self) -> bytes | None:
        upload = self.cleaned_data["new_logo"]
        return as_logo(upload) if upload else None

    def clean_prompt(self) -> str:
        return without_append_mark(self.cleaned_data["prompt"])

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        for begin, end in (("banner_from", "banner_until"), ("maintenance_from", "maintenance_until")):
            if values.get(begin) and values.get(end) and values[end] <= values[begin]:
                self.add_error(end, gettext("The end must be after the beginning."))
        if values.get("maintenance_until") and not values.get("maintenance_from"):
            self.add_error("maintenance_from", gettext("Enter when the maintenance begins."))
        newest = SiteTexts.lock_newest()
        if newest and newest.pk != values.get("newest"):
            raise forms.ValidationError(
                gettext(
                    "%(person)s has changed the texts since you opened this page."
                    " Open it again, and make your changes there."
                )
                % {"person": newest.changed_by or gettext("Somebody")}
            )
        begun_from = SiteTexts.objects.filter(pk=values.get("begun_from") or 0).first()
        self.instance.logo = None if values.get("no_logo") else begun_from and begun_from.logo
        self.instance.logo = values.get("new_logo") or self.instance.logo
        return values

    def full_clean(self) -> None:
        super().full_clean()
        if not self.is_bound or self.errors:
            return
        if not self.instance.changes_since(SiteTexts.objects.first() or SiteTexts()):
            self.add_error(None, gettext("You have not changed anything."))


def without_append_mark(prompt: str) -> str:
    if prompt.lstrip().startswith(APPEND_MARK):
        raise forms.ValidationError(gettext("The text must not begin with %(mark)s.") % {"mark": APPEND_MARK})
    return prompt.replace("\r\n", "\n").strip()


class TryForm(forms.Form):
    """A draft of the instructions, and a question to try them with."""

    prompt = forms.CharField(
        label=gettext_lazy("instructions"),
        max_length=MAX_TEXT,
        widget=forms.Textarea(attrs={"rows": 16, "cols": 90}),
    )
    question = forms.CharField(
        label=gettext_lazy("question"),
        max_length=MAX_QUESTION,
        required=False,
        widget=forms.TextInput(attrs={"size": 80}),
    )

    def clean_prompt(self) -> str:
        return without_append_mark(self.cleaned_data["prompt"])


@admin.register(SiteTexts)
class SiteTextsAdmin(OwnFilters, AuditedChanges, admin.ModelAdmin):  # type: ignore[type-arg]
    """Versions of the texts, newest first. Versions are never changed or deleted."""

    audited_as = AuditEntry.Action.TEXTS_CHANGED
    form = TextsForm
    list_display = ["__str__", "changed_at", "changed_by", "what"]
    list_select_related = ["changed_by"]
    list_per_page = 50
    fieldsets = [
        (
            gettext_lazy("Name"),
            {"fields": ["name", "new_logo", "no_logo", "sign_in_line", "sign_in_line_de"]},
        ),
        (gettext_lazy("Welcome"), {"fields": ["welcome", "welcome_de"]}),
        (
            gettext_lazy("Banner"),
            {"fields": ["banner", "banner_de", "banner_kind", "banner_from", "banner_until"]},
        ),
        (
            gettext_lazy("Maintenance"),
            {
                "fields": [
                    "maintenance_from",
                    "maintenance_until",
                    "maintenance_words",
                    "maintenance_words_de",
                ]
            },
        ),
        (gettext_lazy("Privacy"), {"fields": ["privacy", "privacy_de"]}),
        (gettext_lazy("Language model"), {"fields": ["prompt", "begun_from", "newest"]}),
    ]

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_fieldsets(self, request: HttpRequest, obj: SiteTexts | None = None) -> Any:
        if obj is None:
            return super().get_fieldsets(request, obj)
        changes = {"fields": ["changed_at", "changed_by", "changes_since_previous", "changes_to_current"]}
        return [(None, changes), (gettext_lazy("Texts"), {"fields": SiteTexts.TEXTS})]

    def get_readonly_fields(self, request: HttpRequest, obj: SiteTexts | None = None) -> Any:
        if obj is None:
            return ()
        shown = ("changed_at", "changed_by", "changes_since_previous", "changes_to_current")
        return (*shown, *SiteTexts.TEXTS)

    def formfield_for_dbfield(self, db_field: "Field[Any, Any]", request: HttpRequest, **kwargs: Any) -> Any:
        """Label both inputs of a date and time, which share one visible label, for screen readers."""
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field and isinstance(field.widget, forms.MultiWidget):
            for part, widget in zip((gettext("day"), gettext("time")), field.widget.widgets, strict=True):
                widget.attrs["aria-label"] = f"{db_field.verbose_name}, {part}"
        return field

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        shown = {
            "title": gettext("Edit the texts of the site"),
            "show_save_and_add_another": False,
            "show_save_and_continue": False,
        }
        return super().add_view(request, form_url, (extra_context or {}) | shown)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """The texts in use, or those of the version in the URL."""
        newest = SiteTexts.objects.first()
        named = whole_number(request.GET.get("version", ""), LARGEST_KEY)
        found = SiteTexts.objects.filter(pk=named).first() if named else None
        begun_from = found or newest or SiteTexts()
        values = {name: getattr(begun_from, name) for name in SiteTexts.TEXTS}
        return values | {"begun_from": begun_from.pk, "newest": newest and newest.pk}

    def save_model(self, request: HttpRequest, obj: SiteTexts, form: Any, change: bool) -> None:
        obj.changed_by = user_of(request)
        super().save_model(request, obj, form, change)
        transaction.on_commit(reload)

    def described(self, obj: SiteTexts) -> str:
        return ", ".join(_name(field) for field in obj.changes_since(_before(obj)))

    def named(self, obj: SiteTexts) -> str:
        return str(obj.pk)

    @admin.display(description=gettext_lazy("what was changed"))
    def what(self, texts: SiteTexts) -> str:
        return ", ".join(_name(field) for field in texts.changes_since(_before(texts))) or "–"

    @admin.display(description=gettext_lazy("changes"))
    def changes_since_previous(self, texts: SiteTexts) -> str:
        return differences(_before(texts), texts)

    @admin.display(description=gettext_lazy("compared with the texts in use"))
    def changes_to_current(self, texts: SiteTexts) -> str:
        return differences(texts, SiteTexts.objects.first() or texts)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.try_view)
        return [path("try/", view, name="chat_sitetexts_try"), *super().get_urls()]

    def try_view(self, request: HttpRequest) -> HttpResponse:
        """Answer a question with a draft of the instructions and the manager's own rights.

        The answer is not stored; the manager can save the draft as the next version.
        """
        if not self.has_add_permission(request):
            raise PermissionDenied
        newest = SiteTexts.objects.first() or SiteTexts()
        form = TryForm(request.POST or None, initial={"prompt": newest.prompt or instructions("answer")})
        answer = problem = ""
        if request.method == "POST" and form.is_valid():
            draft, question = form.cleaned_data["prompt"], form.cleaned_data["question"]
            if "_keep" in request.POST:
                return self._keep(request, draft)
            if not question:
                form.add_error("question", gettext("Enter a question."))
            else:
                try:
                    with reading_as(request.user.pk):
                        principal = Principal(request.user.pk or 0, "session")
                        answer = draft_answer(principal, question, draft)
                except ModelError as error:
                    problem = words(error.code)
        context = {
            **self.admin_site.each_context(request),
            "title": gettext("Try instructions for the model"),
            "opts": SiteTexts._meta,
            "form": form,
            "answer": answer,
            "problem": problem,
        }
        return TemplateResponse(request, "admin/chat/sitetexts/try.html", context)

    @transaction.atomic
    def _keep(self, request: HttpRequest, draft: str) -> HttpResponse:
        newest = SiteTexts.lock_newest() or SiteTexts()
        values = {name: getattr(newest, name) for name in SiteTexts.TEXTS}
        if draft == (newest.prompt or instructions("answer")):
            messages.info(request, gettext("These instructions are already in use."))
            return redirect("admin:chat_sitetexts_try")
        kept = SiteTexts(**values | {"prompt": draft}, logo=newest.logo)
        self.save_model(request, kept, None, False)
        self.log_addition(request, kept, [{"added": {}}])
        messages.success(request, gettext("In use: version %(number)s.") % {"number": kept.pk})
        return redirect("admin:chat_sitetexts_changelist")


def _before(texts: SiteTexts) -> SiteTexts:
    return SiteTexts.objects.filter(pk__lt=texts.pk).first() or SiteTexts()


def _name(field: str) -> str:
    if field == "logo":
        return gettext("logo")
    return str(cast("Field[Any, Any]", SiteTexts._meta.get_field(field)).verbose_name)


def differences(old: SiteTexts, new: SiteTexts) -> SafeString:
    """The changed lines between two versions, by field."""
    parts = [
        (_name(name), _lines(getattr(old, name), getattr(new, name)))
        for name in new.changes_since(old)
        if name != "logo"
    ]
    if "logo" in new.changes_since(old):
        parts.append((_name("logo"), conditional_escape(gettext("another picture"))))
    if not parts:
        return conditional_escape(gettext("nothing"))
    return format_html_join("", "<p><strong>{}</strong></p><div>{}</div>", parts)


def _lines(old: Any, new: Any) -> SafeString:
    """The lines that only one of two values has, in order."""
    before, after = (str("" if value is None else value).splitlines() for value in (old, new))
    found = difflib.unified_diff(before, after, n=0, lineterm="")
    lines = [line for line in list(found)[2:] if line[:1] in "-+"]
    return format_html_join(
        "", "<div>{} {}</div>", [("−" if line[0] == "-" else "+", line[1:]) for line in lines]
    )


@admin.register(StartingQuestion)
class StartingQuestionAdmin(OwnFilters, AuditedChanges, AutocompleteAdmin, admin.ModelAdmin):  # type: ignore[type-arg]
    """The questions that a new conversation offers; those that the site generates follow them."""

    audited_as = AuditEntry.Action.TEXTS_CHANGED
    list_display = ["text", "group", "order"]
    list_editable = ["order"]
    list_select_related = ["group"]
    autocomplete_fields = ["group"]
    search_fields = ["text"]

    def described(self, obj: StartingQuestion) -> str:
        return f"for {obj.group or 'everyone'}"

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        transaction.on_commit(reload)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        super().delete_model(request, obj)
        transaction.on_commit(reload)

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        super().delete_queryset(request, queryset)
        transaction.on_commit(reload)
