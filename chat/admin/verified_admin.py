"""Verified answers in the admin: editing, and the reasons why an answer is not active.

Managers see an answer only if they may read all of its sources in the portal. Only the owner sees an answer
with a deleted source.
"""

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Field, ForeignKey, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.text import format_lazy
from django.utils.translation import gettext, gettext_lazy, ngettext
from django.views.decorators.http import require_POST

from chat.engine.verified import Unsupported, cites_source, unsupported_statements
from chat.models import VerifiedAnswer, VerifiedAnswerQuerySet, VerifiedCitation, VerifiedQuestion
from chat.unanswered.unanswered_admin import MAX_WORDINGS, UnansweredPage, reader_of
from chat.unanswered.unanswered_list import MAX_DOCUMENTS, MIN_PEOPLE
from chat.verified_answers import (
    RECORDED_FOR,
    Reach,
    digest_of,
    first_match,
    is_due,
    near_wordings,
    passage_with,
    reach_of,
    reasons_withheld,
    recorded_matches,
)
from chatsite.accounts.admin_base.audited_admin import user_of
from chatsite.accounts.admin_base.pickers import AutocompleteAdmin
from chatsite.accounts.admin_base.read_only_admin import GROUPS_DELETED, OwnFilters, RowsOnly
from chatsite.accounts.admin_base.returning_admin import ReturnsToUnanswered
from chatsite.accounts.audit import record, record_before
from chatsite.accounts.models import AuditEntry
from chatsite.accounts.principal import Principal
from chatsite.http.parameters import LARGEST_KEY, whole_number
from ingestion.models import Document
from ingestion.search import retrieval
from ingestion.search.passage_completion import complete_passages

VALID = timedelta(days=365)  # how long a new answer is valid by default
CONFIRMED = "confirmed"  # name of the checkbox that confirms statements without support in the sources
MAX_TRIED = 100  # questions in one test


class QuestionInline(admin.TabularInline):  # type: ignore[type-arg]
    model = VerifiedQuestion
    form = forms.modelform_factory(
        VerifiedQuestion,
        fields=["text"],
        widgets={"text": forms.TextInput({"aria-label": gettext_lazy("Question"), "size": 80})},
    )
    min_num = 1
    validate_min = True

    def get_extra(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> int:
        return max(2, len(asked_in(request)))


class CitationForm(forms.ModelForm):  # type: ignore[type-arg]
    """A source of an answer: a document, and some of its words, which identify the passage."""

    passage_id: int

    class Meta:
        model = VerifiedCitation
        fields = ["document", "words"]
        widgets = {
            "words": forms.TextInput(attrs={"aria-label": gettext_lazy("Words of the document"), "size": 60})
        }

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        document, words = values.get("document"), values.get("words")
        if document and words:
            passage = passage_with(document, words)
            if passage is None:
                raise forms.ValidationError({"words": gettext("The document does not contain these words.")})
            self.passage_id = passage.pk
            self.instance.position = passage.position
            self.instance.digest = digest_of(passage)
            self.instance.sha256 = document.sha256
        return values

    def has_changed(self) -> bool:
        """Treat each existing source as changed: saving confirms the current text of all sources."""
        return super().has_changed() or bool(self.instance.pk)


class CitationFormSet(forms.BaseInlineFormSet):  # type: ignore[type-arg]
    """At least one source, in the order of the numbers by which the answer cites them.

    Statements that the sources do not support are listed before anything is saved, and must be confirmed.
    """

    def __init__(self, *args: Any, reader: Principal, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.reader = reader
        self.doubtful: list[Unsupported] = []

    def clean(self) -> None:
        super().clean()
        kept = [each for each in self.forms if each.cleaned_data and not each.cleaned_data.get("DELETE")]
        if not any(each.cleaned_data.get("document") for each in kept):
            raise forms.ValidationError(gettext("A verified answer needs at least one document."))
        if any(self.errors):
            return
        cited = [each.passage_id for each in kept if isinstance(each, CitationForm)]
        passages = complete_passages(self.reader, retrieval.load(self.reader, cited))
        self.doubtful = unsupported_statements(self.instance.text, passages)
        if self.doubtful and CONFIRMED not in self.data:
            unclear = gettext(
                "The passages cited do not clearly say: “%(words)s”. Nothing has been saved yet."
            )
            contradicted = gettext(
                "The passages say something else: “%(said)s”. The answer says: “%(words)s”. Nothing has"
                " been saved yet."
            )
            raise forms.ValidationError(
                [
                    *(
                        (contradicted if each.said else unclear) % {"said": each.said, "words": each.words}
                        for each in self.doubtful
                    ),
                    gettext(
                        "If they are right anyway, tick “I have checked these statements” at the end "
                        "of the form and save again."
                    ),
                ]
            )


class CitationInline(AutocompleteAdmin, admin.TabularInline):  # type: ignore[type-arg]
    model = VerifiedCitation
    form = CitationForm
    formset = CitationFormSet
    autocomplete_fields = ["document"]
    verbose_name = gettext_lazy("source")
    verbose_name_plural = gettext_lazy("sources, [1] first")

    def get_extra(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> int:
        return 1 if obj else max(1, len(_sources_in(request)))

    def formfield_for_foreignkey(
        self, db_field: "ForeignKey[Any, Any]", request: HttpRequest, **kwargs: Any
    ) -> Any:
        if db_field.name == "document":
            kwargs["queryset"] = Document.objects.visible_to(reader_of(request)).searchable()
        field = super().formfield_for_foreignkey(db_field, request, **kwargs)
        if field and db_field.name == "document":
            field.widget.attrs["aria-label"] = gettext("Document")
        return field


class TryForm(forms.Form):
    """The manager's own test questions, one per line."""

    questions = forms.CharField(
        label=gettext_lazy("Questions"),
        widget=forms.Textarea(attrs={"rows": 6, "cols": 80}),
        max_length=MAX_TRIED * VerifiedQuestion.MAX_CHARACTERS,
        help_text=format_lazy(
            gettext_lazy("One per line, at most {most}. Also try some that must not get this answer."),
            most=MAX_TRIED,
        ),
    )

    def clean_questions(self) -> list[str]:
        lines = [line.strip() for line in self.cleaned_data["questions"].splitlines() if line.strip()]
        if len(lines) > MAX_TRIED:
            raise forms.ValidationError(
                gettext("These are %(count)s questions; try at most %(most)s at once.")
                % {"count": len(lines), "most": MAX_TRIED}
            )
        return lines


class ReachChangeList(ChangeList):
    """Counts the people who may get each answer on a page, in one step for all answers."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        found = reach_of(self.result_list)
        for answer in self.result_list:
            answer.reach = found.get(answer.pk)


@admin.register(VerifiedAnswer)
class VerifiedAnswerAdmin(OwnFilters, RowsOnly, ReturnsToUnanswered, AutocompleteAdmin, UnansweredPage):
    has_tools = True  # adds links above the list
    list_display = ["__str__", "state", "people", "owner", "team", "valid_until", "changed_at"]
    list_filter = ["active", "valid_until"]
    list_select_related = ["owner"]
    search_fields = ["text", "questions__text", "team", "owner__username"]
    autocomplete_fields = ["owner", "groups"]
    inlines = [QuestionInline, CitationInline]
    readonly_fields = ["state"]
    fieldsets = [
        (
            None,
            {
                "fields": ["text", "active", "state"],
                "description": gettext_lazy(
                    "Given only to questions that are worded like one of those below. Add the wordings that "
                    "people use, also in other languages."
                ),
            },
        ),
        (
            gettext_lazy("Who vouches for it, and until when"),
            {"fields": ["owner", "team", "valid_until", "remind_on"]},
        ),
        (gettext_lazy("Who gets this answer"), {"fields": ["groups"]}),
    ]

    def get_queryset(self, request: HttpRequest) -> VerifiedAnswerQuerySet:
        everything = VerifiedAnswer.objects.prefetch_related("questions", "citations__document")
        return everything.managed_by(request.user.pk or 0)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Require the permission to add sources, because an answer is only valid with sources."""
        return super().has_add_permission(request) and request.user.has_perm("chat.add_verifiedcitation")

    def has_change_permission(self, request: HttpRequest, obj: VerifiedAnswer | None = None) -> bool:
        """Require the permission to change sources, because saving compares them with the text."""
        allowed = super().has_change_permission(request, obj)
        return allowed and request.user.has_perm("chat.change_verifiedcitation")

    def formfield_for_dbfield(self, db_field: "Field[Any, Any]", request: HttpRequest, **kwargs: Any) -> Any:
        """Let managers select the owner, without links to add, change or delete accounts."""
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if db_field.name == "owner" and field:
            field.widget.can_add_related = field.widget.can_change_related = False
            field.widget.can_delete_related = False
        return field

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        initial: dict[str, Any] = dict(super().get_changeform_initial_data(request))
        initial.setdefault("owner", request.user.pk)
        initial.setdefault("valid_until", timezone.localdate() + VALID)
        return initial

    def get_formset_kwargs(self, request: HttpRequest, obj: Any, inline: Any, prefix: str) -> dict[str, Any]:
        """Fill in the questions and documents from the URL.

        The list of unanswered questions links to such URLs.
        """
        kwargs: dict[str, Any] = super().get_formset_kwargs(request, obj, inline, prefix)
        if isinstance(inline, CitationInline):
            kwargs["reader"] = reader_of(request)
            if obj.pk is None:  # also on submission, so that an unchanged row counts as empty
                kwargs["initial"] = [{"document": number} for number in _sources_in(request)]
        if isinstance(inline, QuestionInline) and obj.pk is None and request.method == "GET":
            kwargs["initial"] = [{"text": text} for text in asked_in(request)]
        return kwargs

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        answer = form.instance
        answer.citation_count = answer.citations.count()
        if not change or "groups" in form.changed_data:
            answer.restricted = answer.groups.exists()
        elif answer.restricted and not answer.groups.exists():
            messages.warning(request, gettext(GROUPS_DELETED))
        answer.save()
        if not cites_source(answer.text, answer.citation_count):
            messages.warning(
                request,
                gettext(
                    "Readers will see this answer without a source: its text does not contain the "
                    "number of a source, such as [1]."
                ),
            )
        doubtful = sum(len(each.doubtful) for each in formsets if isinstance(each, CitationFormSet))
        confirmed = (
            f", though its sources do not clearly support {doubtful} of its statements" if doubtful else ""
        )
        _audit(request, "Changed" if change else "Added", answer, confirmed if doubtful else "")

    def delete_model(self, request: HttpRequest, obj: VerifiedAnswer) -> None:
        _audit(request, "Deleted", obj)
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: "QuerySet[VerifiedAnswer]") -> None:
        for answer in queryset:
            _audit(request, "Deleted", answer)
        VerifiedAnswer.objects.filter(pk__in=[answer.pk for answer in queryset]).delete()

    def changelist_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if self.has_view_permission(request) and request.method == "GET":
            mine = self.get_queryset(request).filter(owner=request.user.pk, active=True)
            due = sum(is_due(answer, timezone.localdate()) for answer in mine)
            if due:
                messages.warning(
                    request,
                    gettext("Your verified answers that are due for review: %(count)s.") % {"count": due},
                )
        return super().changelist_view(request, *args, **kwargs)

    @admin.display(description=gettext_lazy("state"))
    def state(self, answer: VerifiedAnswer) -> str:
        if answer._state.adding:
            return gettext("New: it goes live when you save it.")
        reasons = list(reasons_withheld(answer, timezone.localdate()))
        if (reach := _reach(answer)) and not reach.others:
            reasons.append(gettext("nobody else may read its source"))
        if reasons:
            return gettext("Silent: %(why)s") % {"why": "; ".join(reasons)}
        return (
            gettext("Active, due for review") if is_due(answer, timezone.localdate()) else gettext("Active")
        )

    @admin.display(description=gettext_lazy("who may get it"))
    def people(self, answer: VerifiedAnswer) -> str:
        reach = _reach(answer)
        if reach is None:
            return gettext("everyone")
        return ngettext("%(count)s person", "%(count)s people", reach.people) % {"count": reach.people}

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return ReachChangeList

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.try_view)
        wordings = self.admin_site.admin_view(require_POST(self.add_wording))
        in_vain = self.admin_site.admin_view(self.unanswered_view)
        return [
            path("<int:answer_id>/try/", view, name="chat_verifiedanswer_try"),
            path("<int:answer_id>/wordings/", wordings, name="chat_verifiedanswer_wordings"),
            path("unanswered/", in_vain, name="chat_verifiedanswer_unanswered"),
            *super().get_urls(),
        ]

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> Any:
        """Django's page, with recorded questions that are similar but do not get the answer yet.

        Showing these questions is audited.
        """
        answer = kwargs.get("obj")
        if request.method == "GET" and answer and self.has_change_permission(request, answer):
            patterns = [question.text for question in answer.questions.all()]
            if near := near_wordings(patterns, request.user.pk or 0):
                actor = user_of(request)
                subject = f"Recorded questions near verified answer {answer.pk}"
                record_before(AuditEntry.Action.UNANSWERED_LISTED, actor=actor, subject=subject)
                context |= {"near": near, "days": RECORDED_FOR.days, "people": MIN_PEOPLE}
        return super().render_change_form(request, context, *args, **kwargs)

    def add_wording(self, request: HttpRequest, answer_id: int) -> HttpResponse:
        """Add a question to an answer with one click."""
        answer = get_object_or_404(self.get_queryset(request), pk=answer_id)
        may_add = request.user.has_perm("chat.add_verifiedquestion")
        if not (may_add and self.has_change_permission(request, answer)):
            raise PermissionDenied
        text = request.POST.get("text", "").replace("\0", "").strip()[: VerifiedQuestion.MAX_CHARACTERS]
        if text and not answer.questions.filter(text=text).exists():
            with transaction.atomic():
                answer.questions.create(text=text)
                answer.save()
                _audit(request, "Changed", answer, f", with the question “{text}”")
            messages.success(
                request, gettext("The answer has one more question: “%(text)s”.") % {"text": text}
            )
        return redirect("admin:chat_verifiedanswer_change", answer.pk)

    def try_view(self, request: HttpRequest, answer_id: int) -> HttpResponse:
        """Show which questions would get this answer: recorded ones, and those that the manager types."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        answer = get_object_or_404(self.get_queryset(request), pk=answer_id)
        patterns = [question.text for question in answer.questions.all()]
        form = TryForm(request.POST or None)
        tried: list[tuple[str, str]] = []
        if request.method == "POST" and form.is_valid():
            tried = [(asked, first_match(asked, patterns)) for asked in form.cleaned_data["questions"]]
        actor = user_of(request)
        subject = f"Recorded questions for verified answer {answer.pk}"
        record_before(AuditEntry.Action.UNANSWERED_LISTED, actor=actor, subject=subject)
        context = {
            **self.admin_site.each_context(request),
            "title": gettext("Which questions get this answer?"),
            "opts": VerifiedAnswer._meta,
            "answer": answer,
            "form": form,
            "tried": tried,
            "recorded": recorded_matches(patterns),
            "days": RECORDED_FOR.days,
            "people": MIN_PEOPLE,
        }
        return TemplateResponse(request, "admin/chat/verifiedanswer/try.html", context)


def asked_in(request: HttpRequest) -> list[str]:
    """The questions in the URL."""
    asked = request.GET.getlist("question")[:MAX_WORDINGS]
    return [text[: VerifiedQuestion.MAX_CHARACTERS] for text in asked if text.strip()]


def _reach(answer: Any) -> Reach | None:
    """The number of people who may get the answer; None for everyone.

    The list page has already counted them.
    """
    return answer.reach if hasattr(answer, "reach") else reach_of([answer]).get(answer.pk)


def _sources_in(request: HttpRequest) -> list[int]:
    """The documents in the URL that the manager may cite, in the order of the URL."""
    named = (whole_number(each, LARGEST_KEY) for each in request.GET.getlist("source")[:MAX_DOCUMENTS])
    wanted = list(dict.fromkeys(number for number in named if number is not None))
    readable = Document.objects.visible_to(reader_of(request)).searchable()
    known = set(readable.filter(pk__in=wanted).values_list("pk", flat=True))
    return [number for number in wanted if number in known]


def _audit(request: HttpRequest, what: str, answer: VerifiedAnswer, confirmed: str = "") -> None:
    actor = user_of(request)
    sources = ", ".join(str(citation.document.public_id) for citation in answer.citations.all())
    nobody_or_all = "nobody: its groups were deleted" if answer.restricted else "all who read its sources"
    groups = ", ".join(answer.groups.values_list("name", flat=True)) or nobody_or_all
    subject = f"{what} {answer.pk} “{answer}”, until {answer.valid_until}, for {groups}, sources {sources}"
    record(AuditEntry.Action.VERIFIED_CHANGED, actor=actor, subject=subject + confirmed)
