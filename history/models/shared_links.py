"""Links that share a conversation or an answer, and who has opened them."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.db.models.expressions import RawSQL
from django.utils import timezone
from django.utils.translation import gettext, gettext_lazy

from chatsite.accounts.principal import Principal
from chatsite.http.languages import date_and_time
from ingestion.access.models import AccessList

from .conversations import Conversation
from .messages import Message


class ShareQuerySet(models.QuerySet["Share"]):
    def owned_by(self, principal: Principal) -> "ShareQuerySet":
        return self.filter(conversation__owner_id=principal.user_id, conversation__listed=True)

    def received_by(self, principal: Principal) -> "ShareQuerySet":
        """Other people's open shares that name the caller or their groups, or were opened by the caller.

        Opened shares are left out if the caller may no longer open them. The annotation `is_new`
        marks shares that the caller has not opened.
        """
        reader = principal.user_id
        opened = OpenedShare.objects.filter(share=OuterRef("pk"), reader=reader)
        received = RawSQL(IS_RECEIVED, [reader, reader, reader], models.BooleanField())  # noqa: S611
        others = self.live().exclude(conversation__owner_id=reader)
        return others.filter(received).annotate(is_new=~Exists(opened))

    def live(self) -> "ShareQuerySet":
        """The shares whose link works: neither expired nor revoked.

        Their conversation is listed and not deleted, and its owner is active.
        """
        return self.filter(
            Q(expires_at=None) | Q(expires_at__gt=timezone.now()),
            revoked_at=None,
            conversation__deleted_at=None,
            conversation__listed=True,
            conversation__owner__is_active=True,
        )

    def revoke(self) -> int:
        """Revoke the shares that are not revoked yet. Returns their number."""
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
    """A link through which others can read a conversation, or one answer of it.

    Readers see only what their own rights allow. Only the hash of its token is stored. Messages that are
    added later are never shown.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="shares")
    answer = models.ForeignKey(
        Message,
        null=True,
        on_delete=models.CASCADE,
        related_name="+",
        help_text=gettext_lazy("The only answer that it shows; empty for the whole conversation."),
    )
    up_to = models.PositiveIntegerField(
        help_text=gettext_lazy("Position of the last message that it shows, with those that lead to it.")
    )
    title = models.CharField(  # noqa: DJ001 - null and empty differ
        max_length=200,
        null=True,
        editable=False,
        help_text=gettext_lazy(
            "The conversation's title when it was shared; empty if it is its first question. Null: "
            "created by a version that did not store it."
        ),
    )
    access_list = models.ForeignKey(
        AccessList, on_delete=models.PROTECT, related_name="+", help_text=gettext_lazy("Who can open it.")
    )
    digest = models.CharField(
        max_length=64, unique=True, editable=False, help_text=gettext_lazy("SHA-256 of its token.")
    )
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(
        null=True, help_text=gettext_lazy("A link without a date does not expire.")
    )
    revoked_at = models.DateTimeField(null=True, blank=True)

    objects = ShareQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return gettext("Share of %(moment)s") % {"moment": date_and_time(self.created_at)}

    def title_from(self, first: int) -> str:
        """The stored title, or the conversation's; empty if that was made from another question.

        `first` is the position of the first shown message. A generated title is made from the question at
        position 0; an edited first question has another position.
        """
        if self.title is not None:
            return self.title
        own = first == 0 or self.conversation.title_by_owner
        return self.conversation.title if own else ""

    @property
    def state(self) -> str:
        """The state of the share: “open”, “expired” or “revoked”."""
        if self.revoked_at:
            return "revoked"
        return "expired" if self.expires_at and self.expires_at <= timezone.now() else "open"


class OpenedShare(models.Model):
    """The first time a reader opened a share, which then appears on their list of received shares."""

    share = models.ForeignKey(Share, on_delete=models.CASCADE, related_name="+", db_index=False)
    reader = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    opened_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["share", "reader"], name="share_is_opened_once")]

    def __str__(self) -> str:
        return f"opened share {self.share_id}"
