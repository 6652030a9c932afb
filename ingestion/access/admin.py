"""An admin page that explains a person's access to a document, and searches as that person.

The page may show content that the administrator may not read, so each use is audited before anything is
shown.
"""

from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib.admin import AdminSite
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, re_path, reverse_lazy
from django.utils.text import format_lazy
from django.utils.translation import gettext, gettext_lazy

from chatsite.accounts import directory, staff_access
from chatsite.accounts.audit import (
    SUBJECT_CHARACTERS,
    record_before,
)
from chatsite.accounts.models import AuditEntry, Look, User
from chatsite.accounts.principal import Principal
from chatsite.db.threads import reading_as
from ingestion.models import Document
from ingestion.search import scopes
from ingestion.search.retrieval import SearchResult, search

from .explain import (
    Explanation,
    document_entry,
    documents_like,
    documents_named,
    explain,
    people_named,
)

PERMISSION = "accounts.view_as_others"
FOUND_SHOWN = 10
MIN_REASON = 10  # characters
MEANT_SHOWN = 5  # documents suggested if the text names none
MAX_QUESTION = SUBJECT_CHARACTERS - Look.MAX_REASON - 20  # so that question and reason fit into the audit log
NAME_CHARACTERS = 460  # length of first name, last name and user name together


@dataclass(frozen=True, slots=True)
class ExplainedDocument:
    """A document that the form names, and why the person may or may not read it."""

    document: Document
    explanation: Explanation


@dataclass(frozen=True, slots=True)
class SearchedAs:
    """What a person's search of everything finds, and how many documents it searches."""

    found: SearchResult
    searched: int


class SuggestingTextInput(forms.TextInput):
    """A text field for one name, with suggestions."""

    class Media:
        js = [forms.Script("suggest.js", type="module")]

    def __init__(self, what: str, size: int) -> None:
        address = reverse_lazy("admin:ingestion_document_access_names", args=[what])
        super().__init__(
            {"size": size, "autocomplete": "off", "spellcheck": "false"}
            | {"data-suggest": address, "data-one": True}
        )


class AccessForm(forms.Form):
    """The person, and what to check: a document, a question, or both."""

    person = forms.CharField(
        label=gettext_lazy("Person"),
        max_length=NAME_CHARACTERS,
        widget=SuggestingTextInput("people", size=40),
        help_text=gettext_lazy("User name, or first and last name; or type a few letters and choose."),
    )
    document = forms.CharField(
        label=gettext_lazy("Document"),
        max_length=1_600,
        required=False,
        widget=SuggestingTextInput("documents", size=60),
        help_text=gettext_lazy(
            "Its title, file name, number, public id or label; or type a few letters and choose. The "
            "result says why the person may or may not read it."
        ),
    )
    question = forms.CharField(
        label=gettext_lazy("Question"),
        max_length=MAX_QUESTION,
        required=False,
        widget=forms.TextInput(attrs={"size": 60}),
        help_text=gettext_lazy("The search uses only the rights of this person."),
    )
    reason = forms.CharField(
        label=gettext_lazy("Reason"),
        min_length=MIN_REASON,
        max_length=Look.MAX_REASON,
        required=False,
        widget=forms.TextInput(attrs={"size": 60}),
        help_text=format_lazy(
            gettext_lazy(
                "To search with the rights of another person: for example, a ticket number, "
                "and what you are looking for; at least {least} characters. It is written to the "
                "audit log, and the person is notified later."
            ),
            least=MIN_REASON,
        ),
    )

    def __init__(self, reader: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.reader = reader

    def clean_person(self) -> User:
        found = people_named(self.cleaned_data["person"])
        if len(found) > 1:
            raise forms.ValidationError(gettext("Several people have this name: enter a user name."))
        if not found:
            raise forms.ValidationError(gettext("There is no account with this name."))
        return found[0]

    def clean_document(self) -> list[Document]:
        text = self.cleaned_data["document"]
        found = documents_named(text) if text else []
        if text and not found:
            refused = gettext("There is no such document.")
            if meant := "; ".join(map(document_entry, documents_like(text, self.reader)[:MEANT_SHOWN])):
                refused += " " + gettext("Did you mean: %(documents)s?") % {"documents": meant}
            raise forms.ValidationError(refused)
        return found

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        if not self.errors and not values.get("document") and not values.get("question"):
            raise forms.ValidationError(gettext("Name a document, or ask a question."))
        of_another = values.get("question") and values.get("person") not in (None, self.reader)
        if of_another and not values.get("reason") and "reason" not in self.errors:
            self.add_error("reason", gettext("Give a reason for searching with the rights of this person."))
        return values


class AccessPage:
    """A mixin that adds the access page to the admin of documents."""

    admin_site: AdminSite

    def get_urls(self) -> list[URLPattern]:
        view, names = (self.admin_site.admin_view(each) for each in (self.access, self.access_names))
        return [
            path("access/", view, name="ingestion_document_access"),
            re_path(r"^access/(?P<what>people|documents)\Z", names, name="ingestion_document_access_names"),
            *super().get_urls(),  # type: ignore[misc]
        ]

    def access_names(self, request: HttpRequest, what: str) -> HttpResponse:
        """Suggestions for the fields of the page, including people who cannot sign in."""
        reader, query = request.user, request.GET.get("q", "")
        if not isinstance(reader, User) or not reader.has_perm(PERMISSION):
            raise PermissionDenied
        if what == "people":
            everybody = User.objects.filter(guest_until=None)
            found = [
                directory.entry(user) for user in directory.people(query, everybody)[: directory.MAX_RESULTS]
            ]
        else:
            found = [document_entry(each) for each in documents_like(query, reader)[: directory.MAX_RESULTS]]
        return JsonResponse({"found": list(dict.fromkeys(found))}, headers={"Cache-Control": "no-store"})

    def access(self, request: HttpRequest) -> HttpResponse:
        if not isinstance(request.user, User) or not request.user.has_perm(PERMISSION):
            raise PermissionDenied
        context: dict[str, Any] = {"title": gettext("Access of one person"), "opts": Document._meta}
        if request.method == "POST":
            form = AccessForm(request.user, request.POST)
            if form.is_valid():
                person: User = form.cleaned_data["person"]
                context["person"] = person
                explained = context["explained"] = []
                for document in form.cleaned_data["document"]:
                    subject = document.name_for_audit
                    record_before(
                        AuditEntry.Action.EXPLAIN_ACCESS, actor=request.user, person=person, subject=subject
                    )
                    explained.append(ExplainedDocument(document, explain(person, document)))
                if question := form.cleaned_data["question"]:
                    if person == request.user:
                        record_before(
                            AuditEntry.Action.SEARCH_AS, actor=person, person=person, subject=question
                        )
                    else:
                        staff_access.begin_search(request.user, person, question, form.cleaned_data["reason"])
                    principal = Principal(person.pk, "command")
                    with reading_as(person.pk):
                        # As in the portal, leave out private files that the person attached to questions.
                        apart = scopes.kept_apart(principal)
                        context["searched"] = SearchedAs(
                            search(principal, question, top=FOUND_SHOWN, without=apart),
                            scopes.count_searched(principal),
                        )
        else:
            # A link can fill in the form, but only submitting it shows results.
            asked = {name: request.GET.get(name, "") for name in AccessForm.base_fields}
            form = AccessForm(request.user, initial=asked)
        context |= {**self.admin_site.each_context(request), "form": form, "media": form.media}
        return TemplateResponse(request, "admin/ingestion/document/access.html", context)
