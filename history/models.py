"""Conversations, their messages, and the sources of each answer."""

import uuid
from typing import ClassVar

from django.conf import settings
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.db.models.expressions import RawSQL
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext, gettext_lazy

from chatsite.accounts.principal import Principal
from ingestion.access.models import AccessList
from ingestion.models import Document


class ConversationQuerySet(models.QuerySet["Conversation"]):
    def owned_by(self, principal: Principal) -> "ConversationQuerySet":
        """The caller's own, without deleted and unlisted ones."""
        return self.filter(owner_id=principal.user_id, deleted_at=None, listed=True)

    def current(self) -> "ConversationQuerySet":
        """Those that are not archived."""
        return self.filter(archived_at=None)

    def deleted_by(self, principal: Principal) -> "ConversationQuerySet":
        """The caller's deleted ones that can still be restored."""
        return self.filter(owner_id=principal.user_id, deleted_at__isnull=False)


class ProjectQuerySet(models.QuerySet["Project"]):
    def owned_by(self, principal: Principal) -> "ProjectQuerySet":
        return self.filter(owner_id=principal.user_id)

    def joined_by(self, principal: Principal) -> "ProjectQuerySet":
        """Those of other, active accounts that the caller is a member of."""
        member = RawSQL(IS_MEMBER, [principal.user_id], models.BooleanField())  # noqa: S611
        return self.exclude(owner_id=principal.user_id).filter(member)

    def open_to(self, principal: Principal) -> "ProjectQuerySet":
        """The caller's own, and those that they are a member of."""
        reader = principal.user_id
        own_or_joined = f"history_project.owner_id = %s OR ({IS_MEMBER})"
        return self.filter(RawSQL(own_or_joined, [reader, reader], models.BooleanField()))  # noqa: S611


# chat/runs/sql/owner_instructions.sql has the same rule.
IS_MEMBER = """
history_project.access_list_id = ANY(
    ARRAY(SELECT mine.access_list_id FROM ingestion_readable_entries(%s) AS mine)
)
AND EXISTS (SELECT FROM accounts_user AS owner WHERE owner.id = history_project.owner_id AND owner.is_active)
"""


class Project(models.Model):
    """Conversations under a name, with instructions and a scope for their questions.

    Members have their own conversations in it, which neither its owner nor other members see.
    """

    MAX_NAME_CHARACTERS: ClassVar = 100
    MAX_INSTRUCTIONS_CHARACTERS: ClassVar = 1_000

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="projects", db_index=False
    )  # index project_list
    name = models.CharField(max_length=MAX_NAME_CHARACTERS)
    instructions = models.CharField(
        max_length=MAX_INSTRUCTIONS_CHARACTERS,
        blank=True,
        help_text="How its owner likes answers in it: wishes, below the instructions of the site.",
    )
    scope = models.CharField(
        max_length=600,
        blank=True,
        help_text="What a new conversation in it is searched in; empty: all that its owner may read.",
    )
    access_list = models.ForeignKey(
        AccessList,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="+",
        help_text="Its owner and members; empty: its owner alone.",
    )
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(
        default=timezone.now, help_text="When its owner last asked a question in it, or changed it."
    )

    objects = ProjectQuerySet.as_manager()

    class Meta:
        ordering = ["-updated_at", "-id"]
        constraints = [models.CheckConstraint(condition=~Q(name=""), name="project_has_a_name")]
        indexes = [models.Index(fields=["owner", "-updated_at", "-id"], name="project_list")]

    def __str__(self) -> str:
        return f"project {self.id}"  # without the name, which is private like a conversation's title


class Conversation(models.Model):
    """The questions and answers of one person, in order."""

    class Mode(models.TextChoices):
        STANDARD = "standard", gettext_lazy("Standard")
        MULTI_AGENT = "multiAgent", gettext_lazy("Multi Agent")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="conversations", db_index=False
    )  # index conversation_list
    title = models.CharField(max_length=200, blank=True)
    title_by_owner = models.BooleanField(
        default=False, help_text=gettext_lazy("Renamed by hand: never replaced.")
    )
    mode = models.CharField(max_length=10, choices=Mode, default=Mode.STANDARD)
    listed = models.BooleanField(
        default=True, help_text=gettext_lazy("False: a program keeps it; shown nowhere, purged soon.")
    )
    scope = models.CharField(
        max_length=600,
        blank=True,
        db_default="",
        help_text=gettext_lazy("The part of the documents that its questions are searched in; empty: all."),
    )
    project = models.ForeignKey(
        Project,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="conversations",
        db_index=False,
    )  # index conversation_project
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(
        default=timezone.now, help_text=gettext_lazy("Time of the newest message.")
    )
    pinned_at = models.DateTimeField(
        null=True, blank=True, help_text=gettext_lazy("Shown above all others since then.")
    )
    archived_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text=gettext_lazy("Left out of the list since then; a new question brings it back."),
    )
    deleted_at = models.DateTimeField(null=True, blank=True)
    seen_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text=gettext_lazy("When its owner last had it open; empty where they never had."),
    )
    search = SearchVectorField(
        null=True, editable=False, help_text=gettext_lazy("The words of its title, and whose they are.")
    )

    objects = ConversationQuerySet.as_manager()

    class Meta:
        ordering = ["-updated_at", "-id"]
        indexes = [
            models.Index(fields=["owner", "-updated_at", "-id"], name="conversation_list"),
            GinIndex(fields=["search"], name="conversation_search"),
            models.Index(
                fields=["owner", "-pinned_at"],
                condition=Q(pinned_at__isnull=False),
                name="conversation_pinned",
            ),
            models.Index(
                fields=["owner", "-updated_at", "-id"],
                condition=Q(archived_at__isnull=False),
                name="conversation_archived",
            ),
            models.Index(
                fields=["project", "-updated_at", "-id"],
                condition=Q(project__isnull=False),
                name="conversation_project",
            ),
            models.Index(
                fields=["owner"],
                condition=Q(search__isnull=True) & ~Q(title=""),
                name="conversation_without_words",
            ),
        ]

    def __str__(self) -> str:
        # without the title, which is private, because Django's pages show this
        return gettext("conversation %(number)s") % {"number": self.id}


class MessageQuerySet(models.QuerySet["Message"]):
    def owned_by(self, principal: Principal) -> "MessageQuerySet":
        return self.filter(conversation__owner_id=principal.user_id, conversation__deleted_at=None)

    def chosen(self) -> "MessageQuerySet":
        """Those of the branch that the owner reads."""
        return self.filter(chosen=True)


class Message(models.Model):
    """A question or an answer. Terminal states never change, and partial text is kept in each.

    All versions of edited questions and regenerated answers are kept: see history.branches.
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
    )  # index message_position
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
        help_text=gettext_lazy(
            "False: of a branch that is kept aside, by an edited question or another version."
        ),
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
        help_text="The run that wrote it, of the site's own answers.",
    )
    imported = models.BooleanField(
        default=False,
        help_text=gettext_lazy("Written by a program through /chat-history, which may replace it."),
    )
    client_id = models.CharField(  # noqa: DJ001 - absent ids must not collide
        max_length=200, null=True, help_text="What a program calls it; unique in its conversation."
    )
    content_type = models.CharField(
        max_length=8, blank=True, help_text="As imported: text or markdown; empty goes by the role."
    )
    client_members = models.JSONField(
        null=True, help_text="What a program said of it and gets back as it came: sources, error, timestamp."
    )
    citations = models.JSONField(
        default=list,
        help_text="Source labels that the text cites, in order of first use: chip n is item n-1.",
    )
    verification = models.JSONField(
        null=True,
        help_text="Statements of the content with their citations, verdicts and proofs; null: not compared.",
    )
    verified = models.JSONField(
        null=True, help_text="Of a verified answer: who vouched for it (by) and until which day (until)."
    )
    labels = models.JSONField(
        default=list,
        db_default=models.Value([], models.JSONField()),
        help_text="Of each source that the answer was given, by rank, also of those that are gone since.",
    )
    followups = models.JSONField(default=list)
    thoughts = models.JSONField(default=list, help_text="Steps: title, description, props. No passage text.")
    usage = models.JSONField(default=dict)
    search = SearchVectorField(null=True, editable=False, help_text="Its words, and whose they are.")
    searched_count = models.PositiveIntegerField(null=True, help_text="Documents the asker could read then.")
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
        indexes = [GinIndex(fields=["search"], name="message_search")]

    def __str__(self) -> str:
        return f"{self.get_role_display()} {self.position}"

    @property
    def can_continue(self) -> bool:
        """Whether this is one of the site's own answers, not a team's, that was cut short."""
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


class ShareQuerySet(models.QuerySet["Share"]):
    def owned_by(self, principal: Principal) -> "ShareQuerySet":
        return self.filter(conversation__owner_id=principal.user_id, conversation__listed=True)

    def received_by(self, principal: Principal) -> "ShareQuerySet":
        """Open shares of others that name the caller or a group of theirs, or that they have opened.

        `is_new` marks those that they have not opened.
        """
        reader = principal.user_id
        opened = OpenedShare.objects.filter(share=OuterRef("pk"), reader=reader)
        received = RawSQL(IS_RECEIVED, [reader, reader, reader], models.BooleanField())  # noqa: S611
        others = self.live().exclude(conversation__owner_id=reader)
        return others.filter(received).annotate(is_new=~Exists(opened))

    def live(self) -> "ShareQuerySet":
        """Those whose link works: not ended, with an existing conversation and an active account."""
        return self.filter(
            Q(expires_at=None) | Q(expires_at__gt=timezone.now()),
            revoked_at=None,
            conversation__deleted_at=None,
            conversation__listed=True,
            conversation__owner__is_active=True,
        )

    def revoke(self) -> int:
        """Revoke them now, except those revoked before; returns their number."""
        return self.filter(revoked_at=None).update(revoked_at=timezone.now())


IS_RECEIVED = """
history_share.access_list_id = ANY(
    ARRAY(
        SELECT named.access_list_id FROM ingestion_readable_entries(%s) AS named
        WHERE named.user_id IS NOT NULL OR named.group_id IS NOT NULL
    )
)
OR (
    history_share.id IN (SELECT known.share_id FROM history_openedshare AS known WHERE known.reader_id = %s)
    AND history_share.access_list_id = ANY(
        ARRAY(SELECT mine.access_list_id FROM ingestion_readable_entries(%s) AS mine)
    )
)
"""


class Share(models.Model):
    """A link that lets others read a conversation, or one answer of it, as far as they may.

    Only the hash of its token is stored. It never shows messages added later.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="shares")
    answer = models.ForeignKey(
        Message,
        null=True,
        on_delete=models.CASCADE,
        related_name="+",
        help_text=gettext_lazy("The one answer that it shows; empty: the conversation."),
    )
    up_to = models.PositiveIntegerField(
        help_text=gettext_lazy("Position of the last message that it shows, with those that lead to it.")
    )
    access_list = models.ForeignKey(
        AccessList, on_delete=models.PROTECT, related_name="+", help_text=gettext_lazy("Who can open it.")
    )
    digest = models.CharField(
        max_length=64, unique=True, editable=False, help_text=gettext_lazy("SHA-256 of its token.")
    )
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(null=True, help_text=gettext_lazy("Empty: it does not expire."))
    revoked_at = models.DateTimeField(null=True, blank=True)

    objects = ShareQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        moment = date_format(timezone.localtime(self.created_at), gettext("j M Y, H:i"))
        return gettext("Share of %(moment)s") % {"moment": moment}

    @property
    def state(self) -> str:
        """open, expired or revoked."""
        if self.revoked_at:
            return "revoked"
        return "expired" if self.expires_at and self.expires_at <= timezone.now() else "open"


class OpenedShare(models.Model):
    """The first time a reader opened a share, for their list of what is shared with them."""

    share = models.ForeignKey(Share, on_delete=models.CASCADE, related_name="+", db_index=False)
    reader = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    opened_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["share", "reader"], name="share_is_opened_once")]

    def __str__(self) -> str:
        return f"opened share {self.share_id}"


class SourceQuerySet(models.QuerySet["Source"]):
    def visible_to(self, principal: Principal) -> "SourceQuerySet":
        """Sources whose document the reader may open now, regardless of when the answer was written."""
        return self.filter(document__in=Document.objects.visible_to(principal))


class Source(models.Model):
    """A passage that was given to the model for an answer, with its text at that time.

    Deleted with its document, so that no text remains; a citation without a readable row is shown as gone.
    """

    message = models.ForeignKey(
        Message, on_delete=models.CASCADE, related_name="sources", db_index=False
    )  # index source_rank
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
        default=list, help_text="Sentences that stood for the content: text, and marks within it."
    )
    given = models.CharField(
        max_length=5, default="text", help_text="What the model was given: text, image (of the page) or both."
    )
    score = models.FloatField(help_text="0 to 1.")
    ranker_score = models.FloatField(null=True, help_text="0 to 4, where a ranker ran.")
    found_by = models.CharField(max_length=10, help_text="words, meaning, both or person.")

    objects = SourceQuerySet.as_manager()

    class Meta:
        ordering = ["message", "rank"]
        constraints = [models.UniqueConstraint(name="source_rank", fields=["message", "rank"])]

    def __str__(self) -> str:
        return self.label
