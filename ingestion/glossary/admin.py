"""The glossary in the admin, with import and export as CSV, and the built-in list."""

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.postgres.search import SearchQuery
from django.core.exceptions import PermissionDenied
from django.db.models import ManyToManyField, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.http import require_safe

from chatsite.accounts.admin_base.audited_admin import AuditedChanges, user_of
from chatsite.accounts.admin_base.csv_admin import CsvAdmin
from chatsite.accounts.admin_base.pickers import SeveralPicker
from chatsite.accounts.admin_base.read_only_admin import GROUPS_DELETED, OwnFilters, RowsOnly
from chatsite.accounts.admin_base.returning_admin import ReturnsToUnanswered
from chatsite.accounts.audit import record
from chatsite.accounts.models import AuditEntry, User
from chatsite.accounts.principal import Principal
from ingestion.models import Document, PassageWords
from ingestion.search.office_words import lines
from ingestion.search.tokens import plain_words

from . import glossary_csv
from .models import HouseWord, names_of

# Text search configurations with which a word is looked up; the index also uses those of other languages.
LANGUAGES = ("simple", "english", "german")
MAX_COUNTED = 1_000  # passages are counted up to this number; words in more of them count as equally common
MAX_ASKED = 300  # characters of the question, and of the list of its words, in the query string
ASKED = gettext_lazy(
    "People asked “{}”. Enter the words of the question that documents do not use, separated by commas, "
    "and, below, the words that documents use instead. Questions with the former also search for the latter."
)


class WordForm(forms.ModelForm):  # type: ignore[type-arg]
    """The form for an entry.

    It refuses a duplicate of another entry for the same groups, if the user manages that entry.
    """

    user: User

    class Meta:
        model = HouseWord
        fields = ["kind", "term", "synonyms", "meaning", "groups"]
        widgets = {
            "term": forms.TextInput(attrs={"size": 60}),
            "synonyms": forms.Textarea(attrs={"rows": 3, "cols": 80}),
            "meaning": forms.Textarea(attrs={"rows": 3, "cols": 80}),
        }

    def clean_synonyms(self) -> str:
        return ", ".join(names_of(self.cleaned_data["synonyms"]))

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        if not self.errors and values.get("term"):
            key = glossary_csv.key_of(HouseWord(kind=values["kind"], term=values["term"]))
            managed = HouseWord.objects.managed_by(self.user.pk, is_superuser=self.user.is_superuser)
            others = managed.filter(kind=values["kind"]).exclude(pk=self.instance.pk)
            groups = frozenset(group.pk for group in values.get("groups", ()))
            same = [word for word in others.prefetch_related("groups") if glossary_csv.key_of(word) == key]
            if any(glossary_csv.group_ids(word) == groups for word in same):
                self.add_error("term", gettext("This word is already in the list."))
        return values


@admin.register(HouseWord)
class GlossaryAdmin(OwnFilters, RowsOnly, ReturnsToUnanswered, AuditedChanges, CsvAdmin):
    """The glossary, with the entries that the user manages (see HouseWordQuerySet.managed_by)."""

    has_tools = True  # adds links above the list
    audited_as = AuditEntry.Action.WORDS_CHANGED
    form = WordForm
    list_display = ["term", "synonyms", "meaning", "for_whom"]
    list_filter = ["kind", "restricted"]
    list_per_page = 50
    search_fields = ["term", "synonyms", "meaning"]
    csv_name = "words.csv"
    csv_title = gettext_lazy("Import words from a CSV file")
    csv_columns = gettext_lazy(
        "The first line names the columns: “word”, and optionally “other words”, “meaning”, “groups”"
        " (separated by |) and “kind” (term or everyday). Existing words are updated. If one line is"
        " wrong, nothing is imported."
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[HouseWord]:
        user = user_of(request)
        managed = HouseWord.objects.managed_by(user.pk, is_superuser=user.is_superuser)
        return managed.prefetch_related("groups").order_by("term", "pk")

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """Show the question beside `term` if the page was opened from the unanswered questions."""
        if asked := request.GET.get("asked", "")[:MAX_ASKED]:
            hint = format_html(str(ASKED), asked)
            kwargs["help_texts"] = {**kwargs.get("help_texts", {}), "term": hint}
        made = super().get_form(request, obj, change, **kwargs)
        return type("WordForm", (made,), {"user": user_of(request)})

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Suggest that word of the unanswered question which is rarest in the readable documents."""
        words = names_of(request.GET.get("words", "")[:MAX_ASKED])
        initial = super().get_changeform_initial_data(request)
        return initial | {"term": rarest(user_of(request).pk, words)} if words else initial

    def formfield_for_manytomany(
        self, db_field: "ManyToManyField[Any, Any]", request: HttpRequest, **kwargs: Any
    ) -> Any:
        """Managers choose from their own groups; superusers search all groups by typing."""
        user = user_of(request)
        if user.is_superuser:
            kwargs["widget"] = SeveralPicker(db_field, self.admin_site)
        else:
            kwargs["queryset"] = user.groups.order_by("name")
            kwargs["widget"] = forms.CheckboxSelectMultiple()
        field = super().formfield_for_manytomany(db_field, request, **kwargs)
        if field:
            field.help_text = db_field.help_text
        return field

    def has_add_permission(self, request: HttpRequest) -> bool:
        return super().has_add_permission(request) and HouseWord.objects.count() < glossary_csv.MAX_WORDS

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        word: HouseWord = form.instance
        if not change or "groups" in form.changed_data:
            word.restricted = word.groups.exists()
        elif word.restricted and not word.groups.exists():
            messages.warning(request, gettext(GROUPS_DELETED))
        word.save()

    def named(self, obj: HouseWord) -> str:
        """The name for the audit log. It omits a restricted entry's word, because others can read the log."""
        return f"number {obj.pk}" if obj.restricted else super().named(obj)

    def described(self, obj: HouseWord) -> str:
        return f"for {self.for_whom(obj)}"

    @admin.display(description=gettext_lazy("for whom"))
    def for_whom(self, word: HouseWord) -> str:
        if not word.restricted:
            return gettext("everyone")
        return ", ".join(sorted(group.name for group in word.groups.all())) or gettext(
            "nobody: its groups are deleted"
        )

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        built_in = path("built-in/", view(require_safe(self.built_in)), name="ingestion_houseword_built_in")
        return [built_in, *super().get_urls()]

    def may_import(self, request: HttpRequest) -> bool:
        return super().may_import(request) and self.has_change_permission(request)

    def import_csv(self, user: User, content: bytes) -> str:
        taken = glossary_csv.read_csv(user, content)
        counts = f"{taken.new} new, {taken.changed} changed"
        record(AuditEntry.Action.WORDS_CHANGED, actor=user, subject=f"Imported words from a file: {counts}")
        return gettext("Imported: %(new)s new, %(changed)s changed.") % {
            "new": taken.new,
            "changed": taken.changed,
        }

    def export_csv(self, user: User) -> str:
        return glossary_csv.write_csv(user)

    def built_in(self, request: HttpRequest) -> HttpResponse:
        """The built-in list; changing one of its entries creates an entry in the glossary."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        wanted = plain_words(request.GET.get("q", "")[:200])
        found = [line for line in lines() if wanted in plain_words(" ".join(line))]
        return self.page(
            request,
            "admin/ingestion/houseword/built_in.html",
            gettext("Built-in everyday words"),
            lines=found,
            wanted=request.GET.get("q", ""),
        )


def rarest(reader: int, words: Sequence[str]) -> str:
    """The word that occurs in the fewest passages that the reader may read.

    If there are several such words, the longest of them.
    """
    readable = Document.objects.visible_to(Principal(reader, "session")).searchable()
    passages = PassageWords.objects.filter(document__in=readable).order_by()

    def commonness(word: str) -> tuple[int, int]:
        meant = reduce(or_, (SearchQuery(word, config=language) for language in LANGUAGES))
        return passages.filter(search=meant)[:MAX_COUNTED].count(), -len(word)

    return min(words, key=commonness)
