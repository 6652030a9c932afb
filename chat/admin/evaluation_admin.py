"""Evaluations in the admin: their questions, their runs, and comparisons of runs.

Managers see only questions that expect no document, or a document that they may read in the portal, and their
own questions whose document was deleted. All numbers are computed from these questions' results.
"""

from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied
from django.db.models import Field, ForeignKey, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.http import require_safe

from chat.evaluation import evaluation_questions, run_comparison, running
from chat.evaluation.models import ProofQuestion, ProofResult, ProofRun
from chatsite.accounts.admin_base.audited_admin import AuditedChanges, user_of
from chatsite.accounts.admin_base.csv_admin import CsvAdmin
from chatsite.accounts.admin_base.pickers import AutocompleteAdmin
from chatsite.accounts.admin_base.read_only_admin import OwnFilters, RowsOnly
from chatsite.accounts.admin_base.returning_admin import ReturnsToUnanswered
from chatsite.accounts.audit import record, record_before
from chatsite.accounts.models import AuditEntry, User
from chatsite.accounts.principal import Principal
from chatsite.http.parameters import LARGEST_KEY, whole_number
from ingestion.models import Document

MAX_OPTIONS = 300  # options of a drop-down list; if there are more, a name is typed instead
MAX_OTHERS = 20  # runs that are offered for comparison on a page
VERDICTS = {
    "better": gettext_lazy("Better"),
    "worse": gettext_lazy("Worse"),
    "chance": gettext_lazy("No difference beyond chance"),
    "same": gettext_lazy("No difference"),
}


class QuestionForm(forms.ModelForm):  # type: ignore[type-arg]
    """A question, and the document that it should find, or none."""

    class Meta:
        model = ProofQuestion
        fields = ["text", "wants_nothing", "document", "place"]
        widgets = {"text": forms.TextInput(attrs={"size": 80})}

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        if not self.errors and bool(values.get("document")) == bool(values.get("wants_nothing")):
            raise forms.ValidationError(
                gettext("Choose the document that should be found, or state that nothing should be found.")
            )
        if values.get("place") and values.get("wants_nothing"):
            self.add_error("place", gettext("A place needs a document."))
        return values


class StartForm(forms.Form):
    """The group whose rights apply, and a note on what was changed."""

    group = forms.ModelChoiceField(
        Group.objects.none(),
        required=False,
        label=gettext_lazy("With the rights of"),
        empty_label=gettext_lazy("me"),
        to_field_name="name",
        help_text=gettext_lazy(
            "With a group, the questions are asked with the rights of somebody who is only in this group."
        ),
    )
    note = forms.CharField(
        max_length=200,
        required=False,
        label=gettext_lazy("What was changed"),
        widget=forms.TextInput(attrs={"size": 60}),
        help_text=gettext_lazy("For example, rights, words or documents. The list of runs shows this note."),
    )

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["group"]
        assert isinstance(field, forms.ModelChoiceField)
        groups = running.groups_of(user).order_by("name")
        if groups.count() > MAX_OPTIONS:
            field.widget = forms.TextInput(attrs={"placeholder": gettext("me")})
            field.help_text = gettext("The name of a group; leave it empty for your own rights. %(help)s") % {
                "help": field.help_text
            }
        field.queryset = groups


@admin.register(ProofQuestion)
class ProofQuestionAdmin(
    OwnFilters,
    RowsOnly,
    ReturnsToUnanswered,
    AutocompleteAdmin,
    AuditedChanges,
    CsvAdmin,
):
    has_tools = True  # adds links above the list
    audited_as = AuditEntry.Action.EVALUATION_CHANGED
    form = QuestionForm
    list_display = ["text", "wanted", "origin", "changed_at"]
    list_filter = ["wants_nothing", "origin"]
    list_select_related = ["document"]
    search_fields = ["text"]
    autocomplete_fields = ["document"]
    csv_name = "questions.csv"
    csv_title = gettext_lazy("Import questions from a CSV file")
    csv_columns = gettext_lazy(
        "The columns are “question”, “document” and, optionally, “place”. Name a document as in"
        " citations, or write “nothing” if none should be found. If one line is wrong, nothing is"
        " imported."
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[ProofQuestion]:
        return ProofQuestion.objects.managed_by(request.user.pk or 0)

    def formfield_for_foreignkey(
        self, db_field: "ForeignKey[Any, Any]", request: HttpRequest, **kwargs: Any
    ) -> Any:
        if db_field.name == "document":
            reader = Principal(request.user.pk or 0, "session")
            kwargs["queryset"] = Document.objects.visible_to(reader)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def formfield_for_dbfield(self, db_field: "Field[Any, Any]", request: HttpRequest, **kwargs: Any) -> Any:
        """Only allow selecting the document, without links to add or open documents."""
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field and db_field.name == "document":
            field.widget.can_add_related = field.widget.can_change_related = False
            field.widget.can_delete_related = field.widget.can_view_related = False
        return field

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Allow adding questions only up to the limit of a run."""
        is_full = ProofQuestion.objects.count() >= running.MAX_QUESTIONS
        return super().has_add_permission(request) and not is_full

    def save_model(self, request: HttpRequest, obj: ProofQuestion, form: Any, change: bool) -> None:
        if not change:
            obj.added_by = user_of(request)
            if request.GET.get("origin") == ProofQuestion.Origin.UNANSWERED:
                obj.origin = ProofQuestion.Origin.UNANSWERED
        super().save_model(request, obj, form, change)

    def named(self, obj: ProofQuestion) -> str:
        """The name for the audit log, without the question: its author may be erased later."""
        return f"number {obj.pk}"

    @admin.display(description=gettext_lazy("should find"), ordering="document__name")
    def wanted(self, question: ProofQuestion) -> str:
        return wanted_words(question)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        collect = path("collect/", view(self.collect), name="chat_proofquestion_collect")
        return [collect, *super().get_urls()]

    def collect(self, request: HttpRequest) -> HttpResponse:
        """Offer questions that the site already has; add the selected ones."""
        if not super().has_add_permission(request):
            raise PermissionDenied
        user = user_of(request)
        proposed = evaluation_questions.proposals(user)
        if request.method == "POST":
            keys = set(request.POST.getlist("chosen"))
            added = evaluation_questions.add(user, [each for each in proposed if each.key in keys])
            _record(user, f"Added {len(added)} existing questions")
            messages.success(request, gettext("Added: %(count)s.") % {"count": len(added)})
            return redirect("admin:chat_proofquestion_changelist")
        template = "admin/chat/proofquestion/collect.html"
        return self.page(request, template, gettext("Existing questions"), proposed=proposed)

    def import_csv(self, user: User, content: bytes) -> str:
        count = evaluation_questions.read_csv(user, content)
        _record(user, f"Added {count} questions from a file")
        return gettext("Added: %(count)s. Existing ones are unchanged.") % {"count": count}

    def export_csv(self, user: User) -> str:
        return evaluation_questions.write_csv(user)


@dataclass(frozen=True, slots=True)
class Line:
    """A question on the page of a run, or of two compared runs."""

    result: ProofResult
    found: list[str]  # documents that the viewer may read
    others: int  # number of found documents that the viewer may not read, or that were deleted since
    before: ProofResult | None = None

    @property
    def wanted(self) -> str:
        return wanted_words(self.result.question)

    @property
    def words(self) -> str:
        return result_words(self.result)

    @property
    def words_before(self) -> str:
        return result_words(self.before) if self.before else ""

    @property
    def kind(self) -> str:
        if self.before is None or self.before.is_right == self.result.is_right:
            return "same"
        return "better" if self.result.is_right else "worse"


@admin.register(ProofRun)
class ProofRunAdmin(OwnFilters, RowsOnly, AuditedChanges, admin.ModelAdmin):  # type: ignore[type-arg]
    has_tools = True  # adds links above the list
    audited_as = AuditEntry.Action.EVALUATION_CHANGED
    list_display = ["__str__", "rights", "note", "state", "started_by"]
    list_filter = ["state"]
    list_select_related = ["group", "started_by"]
    search_fields = ["note"]

    class Media:
        js = [forms.Script("live_page.js", type="module")]

    def get_queryset(self, request: HttpRequest) -> QuerySet[ProofRun]:
        return running.runs_of(user_of(request))

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    @admin.display(description=gettext_lazy("with the rights of"), ordering="group")
    def rights(self, run: ProofRun) -> str:
        return run.group.name if run.group else str(run.started_by)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(require_safe(self.compare))
        return [path("compare/", view, name="chat_proofrun_compare"), *super().get_urls()]

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Start a run."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        user = user_of(request)
        form = StartForm(user, request.POST or None)
        if request.method == "POST" and form.is_valid():
            group, note = form.cleaned_data["group"], form.cleaned_data["note"]
            try:
                run = running.start(user, group, note)
            except running.EvaluationRefused as refusal:
                messages.error(request, str(refusal))
            else:
                subject = f"Run {run.pk}, with the rights of {group.name if group else 'their own'}: {note}"
                record(AuditEntry.Action.EVALUATION_STARTED, actor=user, subject=subject)
                return redirect("admin:chat_proofrun_change", run.pk)
        count = min(ProofQuestion.objects.managed_by(user.pk).count(), running.MAX_QUESTIONS)
        return self._page(request, "start.html", gettext("Run an evaluation"), form=form, count=count)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """The results of a run; a POST cancels it."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        user = user_of(request)
        run = self.get_object(request, unquote(object_id))
        if run is None:
            raise Http404
        if request.method == "POST":
            if not self.has_add_permission(request):
                raise PermissionDenied
            if running.cancel(run):
                _record(user, f"Cancelled run {run.pk}")
                messages.success(request, gettext("Cancelled. Results so far are kept."))
            return redirect("admin:chat_proofrun_change", run.pk)
        _record_look(user, run)
        every = running.results_of(run, user)
        asked = [each for each in every if each.outcome]
        earlier = self.get_queryset(request).filter(pk__lt=run.pk).exclude(ended_at=None)
        return self._page(
            request,
            "run.html",
            str(run),
            run=run,
            rights=self.rights(run),
            may_cancel=self.has_add_permission(request),
            total=len(every),
            asked=len(asked),
            summaries=(run_comparison.summary(asked),),
            lines=_lines(user, asked),
            others=earlier.select_related("group", "started_by")[:MAX_OTHERS],
        )

    def compare(self, request: HttpRequest) -> HttpResponse:
        """Compare the runs `before` and `after` of the URL, question by question."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        user = user_of(request)
        runs = self.get_queryset(request).select_related("group", "started_by")
        before, after = (
            get_object_or_404(runs, pk=whole_number(request.GET.get(name, ""), LARGEST_KEY))
            for name in ("before", "after")
        )
        for run in (before, after):
            _record_look(user, run)
        former, asked = (
            [each for each in running.results_of(run, user) if each.outcome] for run in (before, after)
        )
        pairs = running.pairs_of(former, asked)
        comparison = run_comparison.compare(pairs)
        support = run_comparison.compare_support(pairs)
        return self._page(
            request,
            "compare.html",
            gettext("Before and after"),
            before=before,
            after=after,
            runs=(before, after),
            rights=(self.rights(before), self.rights(after)),
            comparison=comparison,
            verdict=VERDICTS[comparison.verdict],
            least=run_comparison.MIN_CHANGED,
            difference=_points(comparison.difference, comparison.low, comparison.high),
            support=_points(support.mean, support.low, support.high) if support else None,
            summaries=(
                run_comparison.summary(one for one, _ in pairs),
                run_comparison.summary(two for _, two in pairs),
            ),
            unpaired=len(former) + len(asked) - 2 * len(pairs),
            lines=sorted(
                _lines(user, [two for _, two in pairs], [one for one, _ in pairs]),
                key=lambda line: ("worse", "better", "same").index(line.kind),
            ),
        )

    def _page(self, request: HttpRequest, name: str, title: str, **values: Any) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "title": title,
            "opts": self.opts,
            "media": self.media,
            **values,
        }
        return TemplateResponse(request, f"admin/chat/proofrun/{name}", context)


def wanted_words(question: ProofQuestion) -> str:
    if question.wants_nothing:
        return gettext("nothing")
    if question.document is None:
        return gettext("a document that was deleted")
    return f"{question.document.name}#{question.place}" if question.place else question.document.name


def result_words(result: ProofResult) -> str:
    """The outcome, and the rank of the expected document."""
    outcome = str(ProofResult.Outcome(result.outcome).label)
    if result.wants_nothing:
        return outcome
    if not result.rank:
        return gettext("%(outcome)s, not found") % {"outcome": outcome}
    return gettext("%(outcome)s, found as number %(rank)s") % {"outcome": outcome, "rank": result.rank}


def _lines(user: User, results: list[ProofResult], before: list[ProofResult] | None = None) -> list[Line]:
    """The results as lines of the page, with names only of documents that `user` may read."""
    wanted = {number for result in results for number in result.found}
    readable = Document.objects.visible_to(Principal(user.pk, "session")).filter(pk__in=wanted)
    names = dict(readable.values_list("pk", "name"))
    former: list[ProofResult | None] = [*before] if before else [None] * len(results)
    lines = []
    for result, one in zip(results, former, strict=True):
        shown = [names[number] for number in result.found if number in names]
        lines.append(Line(result, shown, len(result.found) - len(shown), one))
    return lines


def _points(*shares: float) -> list[str]:
    """Percentage points with their sign."""
    return [f"{100 * share:+.1f}".replace("-", "−") for share in shares]


def _record(user: User, subject: str) -> None:
    record(AuditEntry.Action.EVALUATION_CHANGED, actor=user, subject=subject)


def _record_look(user: User, run: ProofRun) -> None:
    """Record that `user` looks at the run, if it had the rights of a group that `user` is not in."""
    if run.group and not user.groups.filter(pk=run.group.pk).exists():
        subject = f"Run {run.pk}, with the rights of {run.group.name}"
        record_before(AuditEntry.Action.EVALUATION_READ, actor=user, subject=subject)
