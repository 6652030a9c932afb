"""Admin pages of bulk changes: selection, progress, and undo."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils.formats import number_format
from django.utils.translation import gettext, gettext_lazy, ngettext

from chatsite.accounts.admin_base.read_only_admin import OwnFilters, shown_object
from chatsite.accounts.models import User
from ingestion.models import Document, DocumentQuerySet

from . import changes
from .forms import FORMS, BulkForm
from .models import BulkChange, BulkItem
from .preview import Preview, Side

Outcome, State = BulkItem.Outcome, BulkChange.State
ITEMS_SHOWN = 100  # items shown on a page
PROBLEMS_FIRST = (Outcome.REFUSED, Outcome.GONE, Outcome.UNCHANGED, Outcome.DONE, Outcome.WAITING)
MAY_CHANGE, MAY_DELETE = "ingestion.change_document", "ingestion.delete_document"


def allowed_forms(request: HttpRequest) -> list[type[BulkForm]]:
    """The forms for the kinds of change that this member of staff may make."""
    if not isinstance(request.user, User):
        return []
    may = {form: MAY_DELETE if form.kind == BulkChange.Kind.DELETE else MAY_CHANGE for form in FORMS}
    return [form for form, permission in may.items() if request.user.has_perm(permission)]


@admin.register(BulkChange)
class BulkChangeAdmin(OwnFilters, admin.ModelAdmin):  # type: ignore[type-arg]
    """Bulk changes, which are kept for `changes.RETENTION`."""

    list_display = ["id", "what", "progress", "actor", "created_at", "finished_at"]
    list_select_related = ["actor"]
    list_filter = ["state", "kind"]
    actions = None

    def has_module_permission(self, request: HttpRequest) -> bool:
        return bool(allowed_forms(request))

    def has_view_permission(self, request: HttpRequest, obj: BulkChange | None = None) -> bool:
        return bool(allowed_forms(request))

    def has_change_permission(self, request: HttpRequest, obj: BulkChange | None = None) -> bool:
        return False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: BulkChange | None = None) -> bool:
        return False

    @admin.display(description=gettext_lazy("What"))
    def what(self, change: BulkChange) -> str:
        return words(change)

    @admin.display(description=gettext_lazy("State"), ordering="state")
    def progress(self, change: BulkChange) -> str:
        return f"{change.get_state_display()}{f': {change.reason}' if change.reason else ''}"

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        change = shown_object(self, request, object_id)
        if request.method == "POST":
            return self._act(request, change)
        if change.state == State.CHOSEN:
            return self._choice(request, change)
        return self._result(request, change)

    def _act(self, request: HttpRequest, change: BulkChange) -> HttpResponse:
        assert isinstance(request.user, User)
        if "undo" in request.POST:
            if not request.user.has_perm(MAY_CHANGE):
                raise PermissionDenied
            if back := changes.undo(change, request.user):
                return redirect("admin:ingestion_bulkchange_change", back.pk)
            messages.error(request, gettext("This change cannot be undone, or is being undone already."))
        elif "stop" in request.POST or "resume" in request.POST:
            needed = MAY_DELETE if change.kind == BulkChange.Kind.DELETE else MAY_CHANGE
            if not request.user.has_perm(needed):
                raise PermissionDenied
            turn = changes.stop if "stop" in request.POST else changes.resume
            if not turn(change, request.user):
                messages.error(request, gettext("It has ended, or is already running."))
        else:
            return self._start(request, change)
        return redirect("admin:ingestion_bulkchange_change", change.pk)

    def _start(self, request: HttpRequest, change: BulkChange) -> HttpResponse:
        """Start the change, or show the form again with its errors or for confirmation."""
        kinds = {form.kind.value: form for form in allowed_forms(request)}
        chosen = kinds.get(request.POST.get("kind", ""))
        if chosen is None:
            raise PermissionDenied
        if change.state == State.CHOSEN:
            form = chosen(request.POST, prefix=chosen.kind.value)
            if not form.is_valid():
                return self._choice(request, change, form)
            chosen_documents = Document.objects.filter(pk__in=change.items.values("document"))
            if (warning := form.warning(chosen_documents)) and "confirmed" not in request.POST:
                return self._choice(request, change, form, warning, form.preview(chosen_documents))
            if change.actor_id != request.user.pk:
                raise PermissionDenied  # only the person who selected the documents may start the change
            if changes.start(change, chosen.kind, form.wanted()):
                return redirect("admin:ingestion_bulkchange_change", change.pk)
        messages.error(request, gettext("This change was already started."))
        return redirect("admin:ingestion_bulkchange_change", change.pk)

    def _choice(
        self,
        request: HttpRequest,
        change: BulkChange,
        sent: BulkForm | None = None,
        warning: str = "",
        preview: Preview | None = None,
    ) -> HttpResponse:
        shown: Sequence[BulkForm] = [
            sent if sent and sent.kind == kind.kind else kind(prefix=kind.kind.value)
            for kind in allowed_forms(request)
        ]
        if warning and sent:
            shown = [sent]
        media = sum((form.media for form in shown), forms.Media())
        # The heading's id, the heading, and the side of the preview below it.
        sides: list[tuple[str, str, Side]] = []
        if preview:
            sides = [
                ("gaining", gettext("Gain access"), preview.gaining),
                ("losing", gettext("Lose access"), preview.losing),
            ]
        return self._page(
            request,
            change,
            forms=shown,
            warning=warning,
            preview=preview,
            sides=sides,
            sent=sent,
            media=self.media + media,
        )

    def _result(self, request: HttpRequest, change: BulkChange) -> HttpResponse:
        counted = changes.outcomes(change)
        outcome = request.GET.get("outcome", "")
        items = change.items.order_by("pk")
        if outcome in counted:
            items = items.filter(outcome=outcome)
        page = Paginator(items, ITEMS_SHOWN).get_page(request.GET.get("p"))
        named = {
            each.pk: each for each in _named_for(request).filter(pk__in=[item.document_id for item in page])
        }
        tally = [(each, counted[each.value]) for each in PROBLEMS_FIRST if each.value in counted]
        return self._page(
            request,
            change,
            tally=tally,
            outcome=outcome,
            done=change.total - counted.get(Outcome.WAITING, 0),
            running=change.state == State.RUNNING,
            resumable=change.state == State.STOPPED and Outcome.WAITING.value in counted,
            page=page,
            rows=[(item, named.get(item.document_id)) for item in page],
            undoable=changes.can_be_undone(change) and counted.get(Outcome.DONE, 0),
            undone_by=BulkChange.objects.filter(undoes=change).first(),
            media=self.media,
        )

    def _page(self, request: HttpRequest, change: BulkChange, **context: Any) -> HttpResponse:
        known = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "change": change,
            "title": words(change),
            "sample": _named_for(request).filter(pk__in=change.items.order_by("pk").values("document")[:5]),
        }
        return TemplateResponse(request, "admin/ingestion/bulkchange/change.html", known | context)


def _named_for(request: HttpRequest) -> DocumentQuerySet:
    return Document.objects.with_privacy(request.user.pk or 0)


def words(change: BulkChange) -> str:
    """A one-line description of the change."""
    of = ngettext("%(count)s document", "%(count)s documents", change.total)
    of %= {"count": number_format(change.total, force_grouping=True)}
    if change.undoes_id:
        return gettext("Undo of change %(number)s (%(kind)s): %(documents)s") % {
            "number": change.undoes_id,
            "kind": change.get_kind_display(),
            "documents": of,
        }
    if not change.kind:
        return gettext("Change %(documents)s") % {"documents": of}
    return f"{change.get_kind_display()}: {of}"


class ChangeMany:
    """The action of the document list that selects documents for a change."""

    @admin.action(
        description=gettext_lazy("Change or delete the chosen documents…"), permissions=["change", "delete"]
    )
    def change_many(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        assert isinstance(request.user, User)
        change = changes.choose(
            request.user, queryset.prefetch_related(None).select_related(None).only("pk", "owner")
        )
        return redirect("admin:ingestion_bulkchange_change", change.pk)
