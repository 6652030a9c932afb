"""Evaluation questions, the runs that ask them, and the results.

The models are still called “proof” because a release must not rename tables or permissions that the previous
version uses.
"""

from typing import ClassVar

from django.conf import settings
from django.contrib.auth.models import Group
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext, gettext_lazy, pgettext_lazy

from chatsite.http.languages import date_and_time
from ingestion.access.models import AccessEntry
from ingestion.models import Document


class ProofQuestionQuerySet(models.QuerySet["ProofQuestion"]):
    def managed_by(self, user_id: int) -> "ProofQuestionQuerySet":
        """Questions that expect no document, or one that this person may read.

        Questions of this person whose document was deleted are included.
        """
        readable = Q(document__access_list__in=AccessEntry.lists_of(user_id))
        gone = Q(document=None, added_by=user_id)
        return self.filter(Q(wants_nothing=True) | readable | gone)


class ProofQuestion(models.Model):
    """A question, and the document that it should find, if any. Managed in the admin; see chat.evaluation."""

    class Origin(models.TextChoices):
        HAND = "hand", gettext_lazy("by hand")
        FILE = "file", gettext_lazy("a CSV file")
        VERIFIED = "verified", gettext_lazy("a verified answer")
        UNANSWERED = "unanswered", gettext_lazy("unanswered questions")
        FEEDBACK = "feedback", gettext_lazy("an answer marked good")

    MAX_CHARACTERS: ClassVar = 500
    MAX_PLACE: ClassVar = 200

    text = models.CharField(gettext_lazy("question"), max_length=MAX_CHARACTERS)
    wants_nothing = models.BooleanField(
        gettext_lazy("nothing should be found"),
        default=False,
        help_text=gettext_lazy("For questions that no document answers: the site should say so."),
    )
    document = models.ForeignKey(
        Document,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text=gettext_lazy("Should be among the first five that are found."),
    )
    place = models.CharField(
        max_length=MAX_PLACE,
        blank=True,
        help_text=gettext_lazy(
            "As in a citation: page=4. If you leave it empty, any place in the document will do."
        ),
    )
    added_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, editable=False, on_delete=models.SET_NULL, related_name="+"
    )
    asker = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, editable=False, on_delete=models.CASCADE, related_name="+",
        help_text=gettext_lazy("Who wrote the question, if it was taken from an answer marked good."),
    )  # fmt: skip
    origin = models.CharField(
        gettext_lazy("made from"), max_length=10, choices=Origin, default=Origin.HAND, editable=False
    )
    changed_at = models.DateTimeField(auto_now=True)

    objects = ProofQuestionQuerySet.as_manager()

    class Meta:
        ordering = ["-changed_at", "-pk"]
        verbose_name = gettext_lazy("evaluation question")
        constraints = [
            models.UniqueConstraint(
                name="proof_question_once",
                fields=["text", "document", "place"],
                violation_error_message=gettext_lazy("This question is there already."),
            ),
            models.CheckConstraint(
                name="proof_question_wants_one",
                condition=Q(wants_nothing=False) | Q(document=None, place=""),
                violation_error_message=gettext_lazy("Choose a document or nothing, not both."),
            ),
        ]

    def __str__(self) -> str:
        return self.text


class ProofRun(models.Model):
    """A run of the evaluation questions that the person who starts it may see.

    The questions are asked with the rights of a group, or of this person.
    """

    class State(models.TextChoices):
        WAITING = "waiting", gettext_lazy("waiting")
        RUNNING = "running", gettext_lazy("running")
        DONE = "done", gettext_lazy("done")
        CANCELLED = "cancelled", gettext_lazy("cancelled")
        FAILED = "failed", gettext_lazy("failed")

    started_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    group = models.ForeignKey(
        Group, null=True, blank=True, on_delete=models.CASCADE, related_name="+",
        verbose_name=gettext_lazy("with the rights of"),
        help_text=gettext_lazy(
            "Without a group, the questions are asked with the rights of the person who starts the run."
        ),
    )  # fmt: skip
    note = models.CharField(
        max_length=200, blank=True, help_text=gettext_lazy("What was changed before the run.")
    )
    state = models.CharField(max_length=10, choices=State, default=State.WAITING)
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        ordering = ["-pk"]
        verbose_name = gettext_lazy("evaluation")
        default_permissions = ("add", "delete", "view")
        constraints = [
            models.UniqueConstraint(
                name="proof_run_one_unfinished",
                fields=["ended_at"],
                nulls_distinct=False,
                condition=Q(ended_at=None),
            )
        ]

    def __str__(self) -> str:
        return gettext("Run %(number)s of %(moment)s") % {
            "number": self.pk,
            "moment": date_and_time(self.created_at),
        }


class ProofResult(models.Model):
    """The result of one question in one run.

    It is deleted with the question, which determines who may see it.
    """

    class Outcome(models.TextChoices):
        WAITING = "", gettext_lazy("not asked yet")
        ANSWERED = "answered", gettext_lazy("answered")
        VERIFIED = "verified", pgettext_lazy("outcome", "a verified answer")
        UNSURE = "unsure", gettext_lazy("unsure")
        NOTHING = "nothing", gettext_lazy("nothing found")

    run = models.ForeignKey(ProofRun, on_delete=models.CASCADE, related_name="results")
    question = models.ForeignKey(ProofQuestion, on_delete=models.CASCADE, related_name="+")
    asked = models.CharField(
        max_length=64, help_text="Digest of the question and of the place that it should find."
    )
    wants_nothing = models.BooleanField()
    wanted = models.BigIntegerField(
        null=True, help_text="The expected document, unless it was deleted before the run."
    )
    outcome = models.CharField(max_length=10, choices=Outcome, default=Outcome.WAITING, blank=True)
    rank = models.PositiveSmallIntegerField(
        default=0, help_text="The rank of the expected document; 0 if it was not found."
    )
    found = ArrayField(models.BigIntegerField(), default=list, help_text="The documents found, best first.")
    statements = models.PositiveSmallIntegerField(
        default=0, help_text="The number of statements in the answer."
    )
    supported = models.PositiveSmallIntegerField(
        default=0, help_text="The number of these statements that their sources support."
    )

    class Meta:
        default_permissions = ()
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(name="proof_result_once", fields=["run", "question"])]

    def __str__(self) -> str:
        return f"{self.run_id} {self.question_id}: {self.outcome}"

    @property
    def is_right(self) -> bool:
        """Whether the result is as expected.

        The expected document must be among the first five. If no document is expected, the outcome must be
        “nothing found” or “unsure”.
        """
        return (
            self.outcome in (self.Outcome.NOTHING, self.Outcome.UNSURE)
            if self.wants_nothing
            else self.rank > 0
        )
