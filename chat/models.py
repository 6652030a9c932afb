"""Runs and their journal, agents, allowances, retention and verified answers."""

import uuid
from typing import ClassVar

from django.conf import settings
from django.contrib.auth.models import Group
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext, gettext_lazy, gettext_noop

from chatsite.accounts.principal import Principal
from history.models import Conversation, Message
from ingestion.access.models import AccessEntry
from ingestion.models import Document

from .evaluation.models import ProofQuestion, ProofResult, ProofRun  # noqa: F401 (tables of this app)
from .overview.models import Asker, CountedUntil, DayFigures, DocumentUse  # noqa: F401 (tables of this app)
from .site_texts.models import SiteTexts, StartingQuestion  # noqa: F401 (tables of this app)
from .unanswered.models import UnansweredQuestion  # noqa: F401 (tables of this app)


class AgentQuerySet(models.QuerySet["Agent"]):
    def team(self) -> "AgentQuerySet":
        """The active agents, in order."""
        return self.filter(active=True)


class Agent(models.Model):
    """A member of the team that answers in multi-agent mode. Managed in the admin."""

    name = models.CharField(max_length=100, unique=True)
    description = models.CharField(
        max_length=300,
        help_text=gettext_lazy("What the agent is good at. The coordinator chooses agents by this text."),
    )
    instructions = models.TextField(
        help_text=gettext_lazy("Instructions for the model, in addition to those of the site.")
    )
    may_search = models.BooleanField(
        default=False,
        help_text=gettext_lazy(
            "The agent may search once more for what the others left open, with the rights of the "
            "person who asks."
        ),
    )
    model = models.CharField(
        max_length=200, blank=True, help_text=gettext_lazy("Leave empty to use the site's model.")
    )
    order = models.PositiveIntegerField(default=0)
    active = models.BooleanField(default=True)

    objects = AgentQuerySet.as_manager()

    class Meta:
        ordering = ["order", "name"]

    def __str__(self) -> str:
        return self.name


class RunQuerySet(models.QuerySet["Run"]):
    def owned_by(self, principal: Principal) -> "RunQuerySet":
        return self.filter(owner_id=principal.user_id, conversation__deleted_at=None)

    def unfinished(self) -> "RunQuerySet":
        return self.filter(finished_at=None)


class Run(models.Model):
    """The generation of one answer. Its lease shows that the process writing the answer is alive."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False
    )  # needs no index of its own: `run_of_owner` begins with it
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="runs")
    question = models.ForeignKey(Message, on_delete=models.CASCADE, related_name="+")
    answer = models.OneToOneField(Message, on_delete=models.CASCADE, related_name="run")
    options = models.JSONField(default=dict, help_text=gettext_lazy("The validated options of the request."))
    idempotency_key = models.CharField(max_length=200, null=True)  # noqa: DJ001 - absent keys must not collide
    body_digest = models.CharField(
        max_length=64,
        help_text=gettext_lazy("The digest of the request. The same key with another request is refused."),
    )
    stop_requested = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True)
    last_event = models.PositiveIntegerField(
        default=0,
        db_default=0,
        help_text=gettext_lazy("The number of the event that ended the run; 0 if unknown."),
    )
    first_word_ms = models.PositiveIntegerField(
        null=True,
        help_text=gettext_lazy("From the acceptance of the run to its first text; empty without text."),
    )

    objects = RunQuerySet.as_manager()

    class Meta:
        permissions = [
            ("set_prompt", gettext_noop("Can set the model's instructions for their own questions")),
            ("see_thoughts", gettext_noop("Can see the steps behind an answer, if these are restricted")),
        ]
        constraints = [
            models.UniqueConstraint(name="run_idempotency", fields=["owner", "idempotency_key"]),
            # A conversation has at most one running answer, so that messages have an order.
            models.UniqueConstraint(
                name="run_one_unfinished", fields=["conversation"], condition=Q(finished_at=None)
            ),
        ]
        indexes = [
            models.Index(fields=["owner", "created_at"], name="run_of_owner"),
            models.Index(fields=["finished_at"], name="run_finished"),
        ]

    def __str__(self) -> str:
        return str(self.id)


class Lease(models.Model):
    """Shows that the process which writes a run is alive.

    Every unfinished run has a lease; the end of the run deletes it. Leases are renewed several times a
    second, so the table is narrow and `until` is not indexed, to allow heap-only updates (a migration sets
    the fill factor). Both the renewal and the end of the run lock the row.
    """

    run = models.OneToOneField(Run, primary_key=True, on_delete=models.CASCADE, related_name="lease")
    until = models.DateTimeField(help_text="After this time, the run's process counts as dead.")

    def __str__(self) -> str:
        return f"{self.run_id} {self.until}"


class JournalEntry(models.Model):
    """Events (chat.events.list_to_json) that one flush wrote for one run, numbered from `first`.

    Rows are written several times a second for each run, so the table has one index and no surrogate key.
    """

    pk = models.CompositePrimaryKey("run_id", "first")
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="journal", db_index=False)
    first = models.PositiveIntegerField()
    last = models.PositiveIntegerField()
    events = models.JSONField()

    def __str__(self) -> str:
        return f"{self.run_id} {self.first}-{self.last}"


class MessageAllowance(models.Model):
    """How many messages a person, each member of a group, or everyone else may send each day.

    Managed in the admin; see chat.limits.
    """

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE, related_name="+",
        help_text=gettext_lazy("A person's own number takes precedence over those of their groups."),
    )  # fmt: skip
    group = models.OneToOneField(
        Group, null=True, blank=True, on_delete=models.CASCADE, related_name="+",
        help_text=gettext_lazy(
            "The largest number applies to members of several groups. A row without a person or a "
            "group applies to everyone else."
        ),
    )  # fmt: skip
    messages = models.PositiveIntegerField(
        null=True,
        blank=True,
        verbose_name=gettext_lazy("messages a day"),
        help_text=gettext_lazy("Leave empty for no limit."),
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="allowance_user_or_group", condition=Q(user=None) | Q(group=None),
                violation_error_message=gettext_lazy("Choose a person or a group, not both."),
            ),
            models.UniqueConstraint(
                name="allowance_unique", fields=["user", "group"], nulls_distinct=False,
                violation_error_message=gettext_lazy(
                    "There is already a row for this person or group, or for everyone else."
                ),
            ),
        ]  # fmt: skip

    def __str__(self) -> str:
        whom = self.user or self.group or gettext("all others")
        many = gettext("any number") if self.messages is None else self.messages
        return f"{whom}: {many}"


DAYS = [MinValueValidator(1), MaxValueValidator(36_500)]


class Retention(models.Model):
    """The number of days for which data is kept. Managed in the admin; see chat.retention_rules."""

    group = models.OneToOneField(
        Group, null=True, blank=True, on_delete=models.PROTECT, related_name="+",
        help_text=gettext_lazy(
            "The longest time applies to members of several groups. Leave empty for a rule for all people"
            " whose groups have none."
        ),
    )  # fmt: skip
    conversations = models.PositiveIntegerField(
        null=True, blank=True, validators=DAYS,
        verbose_name=gettext_lazy("days for conversations"),
        help_text=gettext_lazy(
            "Counted from the last question or answer. Leave empty to keep conversations forever."
        ),
    )  # fmt: skip
    feedback = models.PositiveIntegerField(
        null=True, blank=True, validators=DAYS,
        verbose_name=gettext_lazy("days for feedback"),
        help_text=gettext_lazy("Leave empty to keep feedback as long as its conversation."),
    )  # fmt: skip
    files = models.PositiveIntegerField(
        null=True, blank=True, validators=DAYS,
        verbose_name=gettext_lazy("days for files"),
        help_text=gettext_lazy(
            "Applies to files that only their owner can read. Leave empty to keep them forever."
        ),
    )  # fmt: skip

    class Meta:
        verbose_name = gettext_lazy("retention rule")
        constraints = [
            models.UniqueConstraint(
                name="retention_unique", fields=["group"], nulls_distinct=False,
                violation_error_message=gettext_lazy(
                    "There is already a rule for this group or for everyone else."
                ),
            ),
        ]  # fmt: skip

    def __str__(self) -> str:
        return str(self.group or gettext("all others"))


class Usage(models.Model):
    """A person's number of messages on one day. The row is locked while a question is stored."""

    owner = models.OneToOneField(
        settings.AUTH_USER_MODEL, primary_key=True, on_delete=models.CASCADE, related_name="+"
    )
    day = models.DateField(help_text="The day in the site's time zone.")
    messages = models.PositiveIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.owner_id} {self.day}: {self.messages}"


class VerifiedAnswerQuerySet(models.QuerySet["VerifiedAnswer"]):
    def managed_by(self, user_id: int) -> "VerifiedAnswerQuerySet":
        """Answers whose sources the person may all read.

        Only the person's own answers may have sources that were deleted.
        """
        closed = VerifiedCitation.objects.exclude(
            document__access_list__in=AccessEntry.lists_of(user_id)
        ).filter(answer=models.OuterRef("pk"))
        whole = models.Q(citation_count=models.F("intact")) | models.Q(owner_id=user_id)
        return self.annotate(intact=models.Count("citations", distinct=True)).filter(
            whole, ~models.Exists(closed)
        )


class VerifiedAnswer(models.Model):
    """An answer that a person wrote, for questions that match one of its `questions`.

    Only people who may read all cited documents get it; `engine/sql/verified_answers.sql` has all conditions.
    Managed in the admin.
    """

    text = models.TextField(
        gettext_lazy("answer"), help_text=gettext_lazy("Markdown. Write [1] where the first source belongs.")
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text=gettext_lazy(
            "The person who vouches for the answer and is reminded to check it. An answer without an "
            "owner is not given."
        ),
    )
    team = models.CharField(
        max_length=100,
        blank=True,
        help_text=gettext_lazy("Shown to readers instead of the owner’s name, for example People Team."),
    )
    groups = models.ManyToManyField(
        Group,
        blank=True,
        related_name="+",
        help_text=gettext_lazy(
            "Only members of these groups get the answer, if they can read all of its sources. Without a "
            "group, everyone who can read all of them gets it."
        ),
    )
    # Remains true when the last group is deleted, so that nobody gets the answer then, instead of everyone.
    restricted = models.BooleanField(default=False, db_default=False, editable=False)
    valid_until = models.DateField(help_text=gettext_lazy("After this day the answer is no longer given."))
    remind_on = models.DateField(
        null=True,
        blank=True,
        help_text=gettext_lazy(
            "From this day on, the list shows the answer as due. Leave empty for 14 days before it ends."
        ),
    )
    active = models.BooleanField(
        gettext_lazy("in use"),
        default=True,
        help_text=gettext_lazy("If this is off, the answer is a draft and given to nobody."),
    )
    citation_count = models.PositiveSmallIntegerField(
        default=0,
        editable=False,
        help_text=gettext_lazy(
            "The number of sources. If a source is deleted, its row is deleted too, and this number shows it."
        ),
    )
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)

    objects = VerifiedAnswerQuerySet.as_manager()

    class Meta:
        ordering = ["-changed_at"]
        permissions = [("view_unanswered", gettext_noop("Can see unanswered questions"))]

    def __str__(self) -> str:
        first = self.questions.first()
        return first.text if first else gettext("Verified answer %(number)s") % {"number": self.pk}

    @property
    def signature(self) -> str:
        """The name of the person or team that verified the answer, as readers see it."""
        return self.team or (self.owner.display_name() if self.owner else "")


class VerifiedQuestion(models.Model):
    """A possible wording of a question for a verified answer."""

    MAX_CHARACTERS: ClassVar = 300

    answer = models.ForeignKey(VerifiedAnswer, on_delete=models.CASCADE, related_name="questions")
    text = models.CharField(gettext_lazy("question"), max_length=MAX_CHARACTERS)

    class Meta:
        ordering = ["pk"]
        verbose_name = gettext_lazy("question it answers")
        verbose_name_plural = gettext_lazy("questions it answers")

    def __str__(self) -> str:
        return self.text


class VerifiedCitation(models.Model):
    """A source of a verified answer: a passage with certain words in a certain version of a file."""

    answer = models.ForeignKey(VerifiedAnswer, on_delete=models.CASCADE, related_name="citations")
    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="+")
    words = models.CharField(
        max_length=500,
        help_text=gettext_lazy("A few words of the document that support the answer, copied exactly."),
    )
    position = models.PositiveIntegerField(
        editable=False, help_text="The position of the passage in its document."
    )
    digest = models.CharField(max_length=32, editable=False, help_text="The MD5 of the passage.")
    sha256 = models.CharField(max_length=64, editable=False, help_text="The SHA-256 of the file.")

    class Meta:
        ordering = ["pk"]
        verbose_name = gettext_lazy("source of a verified answer")
        verbose_name_plural = gettext_lazy("sources of verified answers")

    def __str__(self) -> str:
        return self.words


class DismissedQuestion(models.Model):
    """A wording that was removed from the list of unanswered questions; its text is not stored."""

    digest = models.CharField(max_length=64, primary_key=True, help_text="A keyed digest of its words.")
    reason = models.CharField(max_length=300)
    dismissed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    dismissed_at = models.DateTimeField(help_text="Questions that are asked later are listed again.")

    def __str__(self) -> str:
        return self.reason
