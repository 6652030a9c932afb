"""A change of many documents at once, and its outcome for each of them."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext, gettext_lazy


class BulkChange(models.Model):
    """One bulk change: documents are selected, the change is defined, and a worker performs it.

    It stores ids of documents and people instead of names, so that it can outlive both.
    """

    class Kind(models.TextChoices):
        READERS = "readers", gettext_lazy("Readers")
        CATEGORY = "category", gettext_lazy("Category")
        FOLDER = "folder", gettext_lazy("Folder")
        LABELS = "labels", gettext_lazy("Labels")
        LAST_DAY = "last_day", gettext_lazy("Last day")
        OWNER = "owner", gettext_lazy("Owner")
        READ_AGAIN = "read_again", gettext_lazy("Read again")
        DELETE = "delete", gettext_lazy("Delete")

    class State(models.TextChoices):
        CHOSEN = "chosen", gettext_lazy("Not decided yet")
        RUNNING = "running", gettext_lazy("Running")
        DONE = "done", gettext_lazy("Done")
        STOPPED = "stopped", gettext_lazy("Stopped")

    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+", db_index=False
    )
    kind = models.CharField(max_length=10, choices=Kind, blank=True)
    wanted = models.JSONField(
        default=dict, help_text=gettext_lazy("The values in the form, which depend on the kind of change.")
    )
    undoes = models.OneToOneField("self", null=True, on_delete=models.CASCADE, related_name="undone_by")
    state = models.CharField(max_length=10, choices=State, default=State.CHOSEN)
    reason = models.CharField(
        max_length=200, blank=True, help_text=gettext_lazy("Why the change stopped early.")
    )
    total = models.PositiveIntegerField(default=0, help_text=gettext_lazy("The number of documents."))
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-pk"]
        verbose_name = gettext_lazy("bulk change")
        verbose_name_plural = gettext_lazy("bulk changes")
        default_permissions: ClassVar[list[str]] = []  # the permissions for documents apply

    def __str__(self) -> str:
        return gettext("Change %(number)s") % {"number": self.pk}


class BulkItem(models.Model):
    """One document of a bulk change, with the outcome. The document may be deleted meanwhile."""

    class Outcome(models.TextChoices):
        WAITING = "waiting", gettext_lazy("Waiting")
        DONE = "done", gettext_lazy("Changed")
        UNCHANGED = "unchanged", gettext_lazy("Unchanged")
        REFUSED = "refused", gettext_lazy("Refused")
        GONE = "gone", gettext_lazy("Gone")

    change = models.ForeignKey(BulkChange, on_delete=models.CASCADE, related_name="items", db_index=False)
    document = models.ForeignKey(
        "ingestion.Document",
        on_delete=models.DO_NOTHING,
        related_name="+",
        db_constraint=False,
        db_index=False,
    )
    owner = models.BigIntegerField(null=True, help_text="The document's owner when it was chosen.")
    outcome = models.CharField(max_length=10, choices=Outcome, default=Outcome.WAITING)
    reason = models.CharField(max_length=200, blank=True)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["change", "document"], name="bulk_item_once")]
        indexes = [
            models.Index(name="bulk_item_waiting", fields=["change", "id"], condition=Q(outcome="waiting"))
        ]

    def __str__(self) -> str:
        return f"{self.change_id}: {self.document_id}"
