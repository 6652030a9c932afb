"""Questions and answers, with the sources and the rating of each answer."""

import uuid
from typing import ClassVar

from django.conf import settings
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy

from chatsite.accounts.principal import Principal
from ingestion.models import Document

from .conversations import Conversation


class MessageQuerySet(models.QuerySet["Message"]):
    def owned_by(self, principal: Principal) -> "MessageQuerySet":
        return self.filter(conversation__owner_id=principal.user_id, conversation__deleted_at=None)

    def chosen(self) -> "MessageQuerySet":
        """The messages of the branch that the owner reads."""
        return self.filter(chosen=True)


class Message(models.Model):
    """A question or an answer.

    After an answer of this site has ended, its state never changes; the text written until then is kept. All
    versions of edited questions and regenerated answers are kept: see history.branches.
    """

    class Role(models.TextChoices):
        USER = "user", gettext_lazy("User")
        ASSISTANT = "assistant", gettext_lazy("Assistant")

    class State(models.TextChoices):
        QUEUED = "queued", gettext_lazy("Queued")
        STREAMING = "streaming", gettext_lazy("Streaming")
        COMPLETE = "complete", gettext_lazy("Complete")
        STOPPED = "stopped", gettext_lazy("Stopped")
        INTERRUPTED = "interrupted", gettext_lazy("Interrupted")
        FAILED = "failed", gettext_lazy("Failed")
        BLOCKED = "blocked", gettext_lazy("Blocked")

    UNFINISHED: ClassVar = (State.QUEUED, State.STREAMING)

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="messages", db_index=False
    )  # the index message_position covers it
    position = models.PositiveIntegerField(help_text=gettext_lazy("Order in the conversation, from 0."))
    follows = models.IntegerField(
        null=True,
        editable=False,
        help_text=gettext_lazy(
            "Position of the message that it follows, -1 for none; empty: the one before it."
        ),
    )
    chosen = models.BooleanField(
        default=True,
        db_default=True,
        editable=False,
        help_text=gettext_lazy("False: the message is on a branch that is not chosen."),
    )
    role = models.CharField(max_length=10, choices=Role)
    content = models.TextField(blank=True)
    state = models.CharField(max_length=11, choices=State, default=State.COMPLETE)
    finish_reason = models.CharField(max_length=20, blank=True, help_text="stop, length, or empty.")
    error_code = models.CharField(max_length=30, blank=True)
    request_id = models.CharField(max_length=64, blank=True)
    agent_name = models.CharField(max_length=100, blank=True)
    run_id = models.UUIDField(
        db_column="exchange",
        null=True,
        db_index=True,
        help_text="For the site's own answers: the run that wrote the answer.",
    )
    imported = models.BooleanField(
        default=False,
        help_text=gettext_lazy("Written by a program through /chat-history, which may replace it."),
    )
    client_id = models.CharField(  # noqa: DJ001 - null, because missing ids must not collide
        max_length=200, null=True, help_text="A program's id for it; unique in its conversation."
    )
    content_type = models.CharField(
        max_length=8, blank=True, help_text="As imported: text or markdown; if empty, it depends on the role."
    )
    client_members = models.JSONField(
        null=True,
        help_text="Members that a program has saved and gets back unchanged: sources, error, timestamp.",
    )
    citations = models.JSONField(
        default=list,
        help_text="Source labels that the text cites, in order of first use: chip n is item n-1.",
    )
    verification = models.JSONField(
        null=True,
        help_text="Statements of the content with their citations, verdicts and proofs; null if not "
        "compared.",
    )
    grade = models.CharField(
        max_length=10,
        blank=True,
        db_default="",
        default="",
        help_text="For an answer without a language model: how certain it is (history.tally.Grade).",
    )
    verified = models.JSONField(
        null=True,
        help_text="For a verified answer: who verified it (by), and until which day it is valid (until).",
    )
    labels = models.JSONField(
        default=list,
        db_default=models.Value([], models.JSONField()),
        help_text="The labels of all sources that the answer was given, by rank, including sources "
        "that were deleted later.",
    )
    followups = models.JSONField(default=list)
    thoughts = models.JSONField(default=list, help_text="Steps: title, description, props. No passage text.")
    usage = models.JSONField(default=dict)
    search = SearchVectorField(
        null=True, editable=False, help_text="The words of the message, with a word for its owner."
    )
    searched_count = models.PositiveIntegerField(
        null=True, help_text="The number of documents that the person who asked could read then."
    )
    created_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True)

    objects = MessageQuerySet.as_manager()

    class Meta:
        ordering = ["conversation", "position"]
        constraints = [
            models.UniqueConstraint(name="message_position", fields=["conversation", "position"]),
            models.UniqueConstraint(
                name="message_client_id",
                fields=["conversation", "client_id"],
                condition=Q(client_id__isnull=False),
            ),
        ]
        indexes = [
            GinIndex(fields=["search"], name="message_search"),
            # A partial index: of a conversation's many messages, few are forks (see history.branches).
            models.Index(
                fields=["conversation", "position"],
                name="message_forks",
                condition=Q(follows__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_role_display()} {self.position}"

    @property
    def can_continue(self) -> bool:
        """Whether the answer was cut short and can be continued, unlike a team's or verified one."""
        cut = self.state == self.State.INTERRUPTED or (
            self.state == self.State.COMPLETE and self.finish_reason == "length"
        )
        own = self.run_id is not None and not self.agent_name and not self.verified
        return bool(cut and own and self.content) and len(self.content) < settings.ANSWER_MAX_CHARACTERS


class Feedback(models.Model):
    """A person's rating of an answer, which they can change and delete."""

    class Rating(models.TextChoices):
        GOOD = "good", gettext_lazy("Good answer")
        BAD = "bad", gettext_lazy("Bad answer")

    class Reason(models.TextChoices):
        NOT_ANSWERED = "not_answered", gettext_lazy("It does not answer my question")
        INCORRECT = "incorrect", gettext_lazy("Something in it is wrong")
        INCOMPLETE = "incomplete", gettext_lazy("Something is missing")
        OUTDATED = "outdated", gettext_lazy("It is out of date")
        UNCLEAR = "unclear", gettext_lazy("It is hard to understand")
        WRONG_SOURCE = "wrong_source", gettext_lazy("A source does not say this")

    MAX_COMMENT_CHARACTERS: ClassVar = 2_000

    message = models.OneToOneField(
        Message, on_delete=models.CASCADE, primary_key=True, related_name="feedback"
    )
    rating = models.CharField(max_length=4, choices=Rating)
    reasons = models.JSONField(default=list, help_text=gettext_lazy("Values of Reason."))
    wrong_sources = models.JSONField(
        default=list,
        help_text=gettext_lazy("Labels of cited sources that do not say what the answer cites them for."),
    )
    comment = models.TextField(blank=True)
    shared = models.BooleanField(
        default=False, help_text=gettext_lazy("Content managers may read the question and the answer.")
    )
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["-updated_at"]
        verbose_name = verbose_name_plural = gettext_lazy("feedback")
        indexes = [models.Index(fields=["-updated_at"], name="feedback_newest")]

    def __str__(self) -> str:
        return self.get_rating_display()


class SourceQuerySet(models.QuerySet["Source"]):
    def visible_to(self, principal: Principal) -> "SourceQuerySet":
        """Sources whose document the reader may open now, regardless of when the answer was written."""
        return self.filter(document__in=Document.objects.visible_to(principal))


class Source(models.Model):
    """A passage that was found for an answer, with its text at that time.

    The row is deleted with its document, so that no text remains. A citation whose row is missing or not
    readable is shown as gone.
    """

    message = models.ForeignKey(
        Message, on_delete=models.CASCADE, related_name="sources", db_index=False
    )  # the index source_rank covers it
    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="+")
    document_version = models.PositiveIntegerField()
    passage_id = models.BigIntegerField(
        help_text="Not a key: passages are replaced when a file is read again."
    )
    rank = models.PositiveIntegerField(help_text="From 1, best first.")
    label = models.CharField(max_length=800, help_text="What an answer cites: handbook.pdf#page=3.")
    title = models.CharField(max_length=500)
    heading = models.CharField(max_length=300, blank=True)
    page = models.PositiveIntegerField(null=True)
    content = models.TextField()
    quotes = models.JSONField(
        default=list, help_text="[start, end] of the cited words in content, in characters."
    )
    captions = models.JSONField(
        default=list, help_text="Sentences that were used instead of the content: text, and marks within it."
    )
    given = models.CharField(
        max_length=5, default="text", help_text="What the model was given: text, image (of the page) or both."
    )
    score = models.FloatField(help_text="0 to 1.")
    ranker_score = models.FloatField(null=True, help_text="0 to 4, if a ranker was used.")
    found_by = models.CharField(max_length=10, help_text="words, meaning, both or person.")

    objects = SourceQuerySet.as_manager()

    class Meta:
        ordering = ["message", "rank"]
        constraints = [models.UniqueConstraint(name="source_rank", fields=["message", "rank"])]

    def __str__(self) -> str:
        return self.label
