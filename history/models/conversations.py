"""Conversations, and the projects that they may belong to."""

import uuid
from typing import ClassVar

from django.conf import settings
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.db.models import Q
from django.db.models.expressions import RawSQL
from django.utils import timezone
from django.utils.translation import gettext, gettext_lazy

from chatsite.accounts.principal import Principal
from ingestion.access.models import AccessList


class ConversationQuerySet(models.QuerySet["Conversation"]):
    def owned_by(self, principal: Principal) -> "ConversationQuerySet":
        """The caller's own conversations, without deleted and unlisted ones."""
        return self.filter(owner_id=principal.user_id, deleted_at=None, listed=True)

    def current(self) -> "ConversationQuerySet":
        """The conversations that are not archived."""
        return self.filter(archived_at=None)

    def deleted_by(self, principal: Principal) -> "ConversationQuerySet":
        """The caller's deleted conversations, which can be restored until they are purged."""
        return self.filter(owner_id=principal.user_id, deleted_at__isnull=False)


class ProjectQuerySet(models.QuerySet["Project"]):
    def owned_by(self, principal: Principal) -> "ProjectQuerySet":
        return self.filter(owner_id=principal.user_id)

    def joined_by(self, principal: Principal) -> "ProjectQuerySet":
        """Projects that belong to other active accounts and have the caller as a member."""
        member = RawSQL(IS_MEMBER, [principal.user_id], models.BooleanField())  # noqa: S611
        return self.exclude(owner_id=principal.user_id).filter(member)

    def open_to(self, principal: Principal) -> "ProjectQuerySet":
        """The caller's own projects, and those that :meth:`joined_by` returns."""
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

    Members have their own conversations in a project, which neither its owner nor other members see.
    """

    MAX_NAME_CHARACTERS: ClassVar = 100
    MAX_INSTRUCTIONS_CHARACTERS: ClassVar = 1_000

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="projects", db_index=False
    )  # the index project_list covers it
    name = models.CharField(max_length=MAX_NAME_CHARACTERS)
    instructions = models.CharField(
        max_length=MAX_INSTRUCTIONS_CHARACTERS,
        blank=True,
        help_text="How its owner wants answers in it: wishes, with less authority than the site's "
        "instructions.",
    )
    scope = models.CharField(
        max_length=600,
        blank=True,
        help_text="The scope of a new conversation in it; empty for everything that its owner may read.",
    )
    access_list = models.ForeignKey(
        AccessList,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="+",
        help_text="Its owner and members; empty for its owner alone.",
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
    )  # the index conversation_list covers it
    title = models.CharField(max_length=200, blank=True)
    title_by_owner = models.BooleanField(
        default=False, help_text=gettext_lazy("The owner chose the title, which is never replaced.")
    )
    mode = models.CharField(max_length=10, choices=Mode, default=Mode.STANDARD)
    listed = models.BooleanField(
        default=True,
        help_text=gettext_lazy(
            "False: a program stores the conversation itself; the site does not list it, and purges it soon."
        ),
    )
    scope = models.CharField(
        max_length=600,
        blank=True,
        db_default="",
        help_text=gettext_lazy(
            "The part of the documents in which its questions are searched; empty for all."
        ),
    )
    project = models.ForeignKey(
        Project,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="conversations",
        db_index=False,
    )  # the index conversation_project covers it
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
        help_text=gettext_lazy("Left out of the list since then; a new question adds it again."),
    )
    deleted_at = models.DateTimeField(null=True, blank=True)
    seen_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text=gettext_lazy("When its owner last opened it; empty if never."),
    )
    search = SearchVectorField(
        null=True,
        editable=False,
        help_text=gettext_lazy("The words of its title, with a word for its owner."),
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
        # no title: it is private, and Django's pages show this text
        return gettext("conversation %(number)s") % {"number": self.id}
