"""Usage figures by day, and the position up to which runs are counted."""

from django.conf import settings
from django.contrib.auth.models import Group
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils.translation import gettext_noop

from ingestion.models import Document


class DayFigures(models.Model):
    """Usage figures of one day, for everyone or for a group; see chat.overview.

    These are only numbers, which remain when a conversation is deleted or a person is erased.
    """

    day = models.DateField(help_text="The day on which the questions were asked, in the site's time zone.")
    group = models.ForeignKey(
        Group,
        null=True,
        on_delete=models.CASCADE,
        related_name="+",
        help_text="If empty, the row counts everyone.",
    )
    people = models.PositiveIntegerField(default=0, help_text="The number of people who asked.")
    questions = models.PositiveIntegerField(default=0)
    answered = models.PositiveIntegerField(default=0)
    unsure = models.PositiveIntegerField(default=0)
    refused = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    stopped = models.PositiveIntegerField(
        default=0, help_text="Answers that the person who asked has stopped."
    )
    prompt_tokens = models.PositiveBigIntegerField(default=0)
    completion_tokens = models.PositiveBigIntegerField(default=0)
    first_words = ArrayField(
        models.PositiveIntegerField(),
        default=list,
        help_text="Answers by the time to their first word (chat.overview.first_word).",
    )

    class Meta:
        default_permissions = ()
        permissions = [("view_figures", gettext_noop("Can see how the site is used"))]
        constraints = [
            models.UniqueConstraint(name="figures_of_day", fields=["day", "group"], nulls_distinct=False)
        ]

    def __str__(self) -> str:
        return f"{self.day} {self.group_id or 'everyone'}"


class Asker(models.Model):
    """A person who asked on a day, to count people only once in a period.

    Deleted with the account.
    """

    day = models.DateField()
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")

    class Meta:
        default_permissions = ()
        constraints = [models.UniqueConstraint(name="asker_of_day", fields=["day", "person"])]

    def __str__(self) -> str:
        return f"{self.day} {self.person_id}"


class DocumentUse(models.Model):
    """How many runs of a day found a document, and how many cited it."""

    day = models.DateField()
    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="+")
    found = models.PositiveIntegerField()
    cited = models.PositiveIntegerField()

    class Meta:
        default_permissions = ()
        constraints = [models.UniqueConstraint(name="document_use_of_day", fields=["day", "document"])]

    def __str__(self) -> str:
        return f"{self.day} {self.document_id}: {self.cited}"


class CountedUntil(models.Model):
    """The time until which ended runs have been counted: one row for each kind of count.

    The job that counts locks the row.
    """

    finished_at = models.DateTimeField(help_text="Runs that ended later are not counted yet.")
    counted_at = models.DateTimeField(help_text="When the worker last counted.")

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.finished_at}"
