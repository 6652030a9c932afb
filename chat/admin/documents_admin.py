"""Documents in the admin: when they were last cited, which are duplicates, and which expire."""

from datetime import timedelta
from typing import Any, cast

from django.contrib import admin, messages
from django.db.models import Exists, OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext, gettext_lazy, ngettext

from chat.models import VerifiedAnswer
from chat.overview.counting import PLACE
from chat.overview.models import CountedUntil, DocumentUse
from chat.verified_answers import reach_of
from ingestion.admin import DocumentAdmin
from ingestion.models import EXPIRY_REMINDER, Document

UNUSED_DAYS = 90


class UseFilter(admin.SimpleListFilter):
    """Filters for documents that were never or not recently cited."""

    title = gettext_lazy("use")
    parameter_name = "use"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            ("never", gettext("Never cited")),
            ("lately", gettext("Not cited for %(days)s days") % {"days": UNUSED_DAYS}),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Document]) -> QuerySet[Document]:
        cited = DocumentUse.objects.filter(document=OuterRef("pk"), cited__gt=0)
        if self.value() == "never":
            return queryset.filter(~Exists(cited))
        if self.value() == "lately":
            since = timezone.localdate() - timedelta(days=UNUSED_DAYS)
            older = queryset.filter(created_at__date__lt=since)
            return older.filter(~Exists(cited.filter(day__gte=since)))
        return queryset


class StaleFilter(admin.SimpleListFilter):
    """Filters for documents that are candidates for deletion."""

    title = gettext_lazy("deletion")
    parameter_name = "stale"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            ("copy", gettext("Same file as another")),
            ("past", gettext("Last day is past")),
            ("soon", gettext("Last day within %(days)s days") % {"days": EXPIRY_REMINDER.days}),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Document]) -> QuerySet[Document]:
        today = timezone.localdate()
        if self.value() == "copy":
            others = Document.objects.filter(sha256=OuterRef("sha256")).exclude(pk=OuterRef("pk"))
            return queryset.exclude(sha256="").filter(Exists(others))
        if self.value() == "past":
            return queryset.filter(valid_until__lt=today)
        if self.value() == "soon":
            return queryset.filter(valid_until__gte=today, valid_until__lte=today + EXPIRY_REMINDER)
        return queryset


admin.site.unregister(Document)


@admin.register(Document)
class UsedDocumentAdmin(DocumentAdmin):
    """All documents, with the day of the last citation.

    Staff who may not see other people's answers see this day, too.
    """

    list_display = [*DocumentAdmin.list_display[:-2], "last_cited", "file_size", "changed_at", "page_count"]
    list_filter = [*DocumentAdmin.list_filter, UseFilter, StaleFilter]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Document]:
        uses = DocumentUse.objects.filter(document=OuterRef("pk"), cited__gt=0).order_by("-day")
        return super().get_queryset(request).annotate(last_use=Subquery(uses.values("day")[:1]))

    def save_model(self, request: HttpRequest, obj: Document, form: Any, change: bool) -> None:
        """If the document's readers have changed, warn about verified answers that cite it.

        For answers that the user who saves may open, the warning says how many people get them now.
        """
        former = obj.access_list_id
        answers = VerifiedAnswer.objects.filter(active=True, citations__document=obj.pk).distinct()
        mine = VerifiedAnswer.objects.managed_by(request.user.pk or 0)
        managed = set(mine.values_list("pk", flat=True))
        super().save_model(request, obj, form, change)
        if change and obj.access_list_id != former and request.user.has_perm("chat.view_verifiedanswer"):
            managed.update(mine.values_list("pk", flat=True))
            reach = reach_of(answers)  # omits answers that are given to everyone who signs in
            if closed := len(reach.keys() - managed):
                text = gettext("Verified answers that you cannot open cite this document: %(count)s.")
                messages.warning(request, text % {"count": closed})
            for answer in answers.filter(pk__in=reach.keys() & managed):
                if reach[answer.pk].others:
                    text = ngettext(
                        "The verified answer {answer} cites this document. Only {people} person gets it now.",
                        "The verified answer {answer} cites this document. Only {people} people get it now.",
                        reach[answer.pk].people,
                    )
                else:
                    text = gettext(
                        "The verified answer {answer} cites this document. Nobody but those who edit"
                        " verified answers gets it now."
                    )
                address = reverse("admin:chat_verifiedanswer_change", args=[answer.pk])
                link = format_html('<a href="{}">{}</a>', address, answer)
                messages.warning(request, format_html(text, answer=link, people=reach[answer.pk].people))

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """Show the time until which answers have been counted: citations in newer ones are missing."""
        counted_at = CountedUntil.objects.filter(pk=PLACE).values_list("counted_at", flat=True).first()
        return super().changelist_view(request, {"counted_at": counted_at, **(extra_context or {})})

    @admin.display(description=gettext_lazy("size"), ordering="size")
    def file_size(self, document: Document) -> str:
        return filesizeformat(document.size)

    @admin.display(description=gettext_lazy("last cited"), ordering="last_use")
    def last_cited(self, document: Document) -> Any:
        return cast(Any, document).last_use or gettext("never")  # annotated above
