"""The queue in the admin: jobs of the workers, in the site's terms, not Procrastinate's."""

import json
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.functional import Promise
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext, gettext_lazy
from procrastinate.contrib.django.admin import ProcrastinateJobAdmin
from procrastinate.contrib.django.models import ProcrastinateJob

from chatsite.accounts.admin_base.read_only_admin import OwnFilters
from chatsite.http.languages import date_and_time
from ingestion.bulk import changes

from . import fair_queue

MAX_ARGUMENTS = 2_000  # characters of a job's arguments that are shown
JOB_STATES = {
    "todo": gettext_lazy("waiting"),
    "doing": gettext_lazy("running"),
    "failed": gettext_lazy("failed"),
    "succeeded": gettext_lazy("done"),
    "cancelled": gettext_lazy("cancelled"),
    "aborted": gettext_lazy("aborted"),
}
EVENTS = {
    "deferred": gettext_lazy("queued"),
    "started": gettext_lazy("started"),
    "deferred_for_retry": gettext_lazy("queued again"),
    "failed": gettext_lazy("failed"),
    "succeeded": gettext_lazy("done"),
    "cancelled": gettext_lazy("cancelled"),
    "abort_requested": gettext_lazy("asked to stop"),
    "aborted": gettext_lazy("aborted"),
    "scheduled": gettext_lazy("scheduled"),
}
WORK: dict[str, str | Promise] = {
    fair_queue.TASK: gettext_lazy("Read a document"),
    changes.TASK: gettext_lazy("Change many documents"),
    "ingestion.delete_old_changes": gettext_lazy("Delete old bulk changes"),
    "ingestion.purge_versions": gettext_lazy("Delete old versions of documents"),
    "ingestion.recover_stalled_jobs": gettext_lazy("Resume jobs of workers that ended"),
    "ingestion.remove_orphans": gettext_lazy("Remove files without a document"),
    "accounts.delete_old_deliveries": gettext_lazy("Delete old deliveries of webhooks"),
    "accounts.give_up_deliveries": gettext_lazy("Give up deliveries of webhooks beyond the limit"),
    "procrastinate.builtin_tasks.remove_old_jobs": gettext_lazy("Delete old jobs"),
    "chat.apply_retention": gettext_lazy("Apply the retention rules"),
    "chat.count_ended_runs": gettext_lazy("Count answers"),
    "chat.judge_questions": gettext_lazy("Find unanswered questions"),
    "chat.judge_all_questions": gettext_lazy("Find unanswered questions of 30 days"),
    "chat.prove": gettext_lazy("Run an evaluation"),
    "chat.queue_lost_proofs": gettext_lazy("Resume interrupted evaluations"),
    "chat.seal_audit_log": gettext_lazy("Seal and send the audit log"),
    "chat.trim_audit_log": gettext_lazy("Remove old entries of the audit log"),
}

admin.site.unregister(ProcrastinateJob)


class StateFilter(admin.SimpleListFilter):
    """Filters by the state of jobs, in plain words."""

    title, parameter_name = gettext_lazy("state"), "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(state, str(words)) for state, words in JOB_STATES.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(status=self.value()) if self.value() else queryset


class WorkFilter(admin.SimpleListFilter):
    """Filters by the kind of job, in plain words."""

    title, parameter_name = gettext_lazy("work"), "task"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        tasks = ProcrastinateJob.objects.order_by("task_name").values_list("task_name", flat=True).distinct()
        return [(task, work_of(task)) for task in tasks]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(task_name=self.value()) if self.value() else queryset


def work_of(task: str) -> str:
    """The name of a task's work.

    Tasks that WORK lacks, such as those of former versions, get a name made from that of the task.
    """
    return str(WORK.get(task, task.rpartition(".")[2].replace("_", " ").capitalize()))


@admin.register(ProcrastinateJob)
class JobAdmin(OwnFilters, ProcrastinateJobAdmin):
    """Jobs of the workers. Superusers can retry, cancel and abort them."""

    list_display = ["number", "work", "arguments", "job_state", "last_event"]
    list_filter = [StateFilter, WorkFilter]
    inlines = []
    fields = ["work", "arguments", "job_state", "events", "queue", "locked_by", "rank", "due", "tries"]

    def get_readonly_fields(self, request: Any, obj: ProcrastinateJob | None = None) -> Any:
        return self.fields

    @admin.display(description=gettext_lazy("number"), ordering="pk")
    def number(self, job: ProcrastinateJob) -> int:
        return int(job.pk)

    @admin.display(description=gettext_lazy("work"), ordering="task_name")
    def work(self, job: ProcrastinateJob) -> str:
        return work_of(job.task_name)

    @admin.display(description=gettext_lazy("arguments"))
    def arguments(self, job: ProcrastinateJob) -> str:
        return format_html("<code>{}</code>", json.dumps(job.args)[:MAX_ARGUMENTS]) if job.args else "–"

    @admin.display(description=gettext_lazy("state"), ordering="status")
    def job_state(self, job: ProcrastinateJob) -> str:
        return str(JOB_STATES.get(job.status, job.status))

    @admin.display(description=gettext_lazy("last event"))
    def last_event(self, job: ProcrastinateJob) -> str:
        event = next(iter(job.procrastinateevent_set.all()), None)
        if event is None or event.at is None:
            return "–"
        return f"{date_and_time(event.at)}: {EVENTS.get(event.type, event.type)}"

    @admin.display(description=gettext_lazy("events"))
    def events(self, job: ProcrastinateJob) -> str:
        """The job's events, newest first."""
        rows = [
            (date_and_time(event.at), EVENTS.get(event.type, event.type))
            for event in job.procrastinateevent_set.all()
            if event.at
        ]
        return format_html("<ol>{}</ol>", format_html_join("", "<li>{}: {}</li>", rows)) if rows else "–"

    @admin.display(description=gettext_lazy("queue"))
    def queue(self, job: ProcrastinateJob) -> str:
        return job.queue_name

    @admin.display(description=gettext_lazy("lock"))
    def locked_by(self, job: ProcrastinateJob) -> str:
        return job.lock or job.queueing_lock or "–"

    @admin.display(description=gettext_lazy("priority"))
    def rank(self, job: ProcrastinateJob) -> int:
        return job.priority

    @admin.display(description=gettext_lazy("not before"))
    def due(self, job: ProcrastinateJob) -> str:
        return date_and_time(job.scheduled_at) if job.scheduled_at else "–"

    @admin.display(description=gettext_lazy("attempts"))
    def tries(self, job: ProcrastinateJob) -> int:
        return job.attempts

    @admin.action(description=gettext_lazy("Try failed or running jobs again"))
    def retry(self, request: HttpRequest, queryset: QuerySet[ProcrastinateJob]) -> None:
        ProcrastinateJobAdmin.retry(self, request, queryset)

    @admin.action(description=gettext_lazy("Cancel waiting jobs"))
    def cancel(self, request: HttpRequest, queryset: QuerySet[ProcrastinateJob]) -> None:
        ProcrastinateJobAdmin.cancel(self, request, queryset)

    @admin.action(description=gettext_lazy("Stop waiting and running jobs"))
    def abort(self, request: HttpRequest, queryset: QuerySet[ProcrastinateJob]) -> None:
        ProcrastinateJobAdmin.abort(self, request, queryset)

    actions = ["retry", "cancel", "abort"]

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        context = {"title": gettext("Job of the queue"), "subtitle": "", **(extra_context or {})}
        return super().change_view(request, object_id, form_url, context)

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        return super().get_actions(request) if request.user.is_superuser else {}

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        return super().changelist_view(request, {"title": gettext("Queue"), **(extra_context or {})})
