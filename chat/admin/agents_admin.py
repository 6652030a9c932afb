"""Agents, message allowances, retention periods and runs in the admin."""

from django.contrib import admin
from django.utils.translation import gettext_lazy

from chat.models import Agent, MessageAllowance, Retention, Run
from chatsite.accounts.admin_base.audited_admin import AuditedChanges
from chatsite.accounts.admin_base.pickers import AutocompleteAdmin
from chatsite.accounts.admin_base.read_only_admin import OwnFilters, ReadOnly
from chatsite.accounts.models import AuditEntry, User
from chatsite.http.languages import date_and_time


@admin.register(Agent)
class AgentAdmin(OwnFilters, AuditedChanges, admin.ModelAdmin):  # type: ignore[type-arg]
    audited_as = AuditEntry.Action.AGENT_CHANGED
    list_display = ["name", "description", "may_search", "model", "order", "active"]
    list_editable = ["order", "active"]
    search_fields = ["name", "description"]


@admin.register(MessageAllowance)
class MessageAllowanceAdmin(OwnFilters, AuditedChanges, AutocompleteAdmin, admin.ModelAdmin):  # type: ignore[type-arg]
    """Daily message allowances.

    A person's own allowance applies, otherwise that of their most generous group, otherwise the general one.
    """

    audited_as = AuditEntry.Action.ALLOWANCE_CHANGED
    list_display = ["__str__", "user", "group", "messages"]
    list_select_related = ["user", "group"]
    autocomplete_fields = ["user", "group"]
    search_fields = ["user__username", "group__name"]

    def about(self, obj: MessageAllowance) -> User | None:
        return obj.user


@admin.register(Retention)
class RetentionAdmin(OwnFilters, AuditedChanges, AutocompleteAdmin, admin.ModelAdmin):  # type: ignore[type-arg]
    """How long conversations, feedback and files are kept, by group."""

    audited_as = AuditEntry.Action.RETENTION_CHANGED
    list_display = ["__str__", "conversations", "feedback", "files"]
    list_select_related = ["group"]
    autocomplete_fields = ["group"]
    search_fields = ["group__name"]

    def described(self, obj: Retention) -> str:
        days = {"conversations": obj.conversations, "feedback": obj.feedback, "files": obj.files}
        return ", ".join(f"{name} {each or 'no limit'}" for name, each in days.items())


@admin.register(Run)
class RunAdmin(ReadOnly, admin.ModelAdmin):  # type: ignore[type-arg]
    """Running and ended runs, without the text of questions."""

    list_display = [
        "id",
        "owner",
        "conversation_number",
        "created_at",
        "leased_until",
        "stop_requested",
        "finished_at",
    ]
    list_filter = [("finished_at", admin.EmptyFieldListFilter), "stop_requested"]
    list_select_related = ["owner", "lease"]
    search_fields = ["id", "owner__username"]
    date_hierarchy = "created_at"
    fields = (
        "id", "owner", "conversation_number", "question_number", "answer_number", "created_at",
        "leased_until", "stop_requested", "finished_at", "idempotency_key",
    )  # fmt: skip

    @admin.display(description=gettext_lazy("conversation"))
    def conversation_number(self, run: Run) -> str:
        return str(run.conversation_id)

    @admin.display(description=gettext_lazy("number of the question"))
    def question_number(self, run: Run) -> str:
        return str(run.question_id)

    @admin.display(description=gettext_lazy("number of the answer"))
    def answer_number(self, run: Run) -> str:
        return str(run.answer_id)

    @admin.display(description=gettext_lazy("lease expires"))
    def leased_until(self, run: Run) -> str:
        lease = getattr(run, "lease", None)
        return date_and_time(lease.until) if lease else "–"
