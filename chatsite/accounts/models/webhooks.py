"""Webhooks and their deliveries."""

import uuid
from urllib.parse import urlsplit

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy

from .keys import ApiKey
from .people import User


class WebhookEndpointQuerySet(models.QuerySet["WebhookEndpoint"]):
    def listening(self, event: str) -> "WebhookEndpointQuerySet":
        """The active endpoints that subscribe to events of this type.

        Endpoints of disabled accounts and of guests are excluded.
        """
        return self.filter(
            active=True, events__contains=[event], owner__is_active=True, owner__guest_until=None
        )


class WebhookEndpoint(models.Model):
    """A program's URL for events; it gets only events that the webhook's owner may see."""

    class Event(models.TextChoices):
        DOCUMENT_READY = "document.ready"
        DOCUMENT_FAILED = "document.failed"
        DOCUMENT_DELETED = "document.deleted"
        ACCESS_CHANGED = "access.changed"
        ANSWER_COMPLETED = "answer.completed"
        ANSWER_FEEDBACK = "answer.feedback"
        QUESTION_UNANSWERED = "question.unanswered"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(User, on_delete=models.CASCADE, related_name="webhooks")
    api_key = models.ForeignKey(
        ApiKey,
        null=True,
        on_delete=models.CASCADE,
        related_name="+",
        help_text=gettext_lazy(
            "The key with which the webhook was created or last changed. Without this key, nothing is sent."
        ),
    )
    name = models.CharField(max_length=100, blank=True)
    url = models.CharField(max_length=2_000)
    events = ArrayField(models.CharField(max_length=30, choices=Event))
    secret = models.TextField(
        editable=False, help_text=gettext_lazy("Encrypted with a key made from the site's secret key.")
    )
    former_secret = models.TextField(blank=True, editable=False)
    former_secret_until = models.DateTimeField(
        null=True, editable=False, help_text=gettext_lazy("Until then, messages are also signed with it.")
    )
    active = models.BooleanField(default=True)
    reason = models.CharField(
        max_length=200, blank=True, editable=False, help_text=gettext_lazy("Why it was switched off.")
    )
    failing_since = models.DateTimeField(null=True, editable=False)
    paused_until = models.DateTimeField(
        null=True,
        editable=False,
        help_text=gettext_lazy("The address does not respond; until then nothing is sent."),
    )
    # Times of the owner's recent tests and replays, whose number is limited.
    sent_by_hand = ArrayField(models.DateTimeField(), default=list, db_default=[], editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = WebhookEndpointQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at"]
        verbose_name = gettext_lazy("webhook")

    def __str__(self) -> str:
        return self.name or self.host

    @property
    def host(self) -> str:
        """The host of the URL. Others may see only the host, because the rest may contain secrets."""
        return urlsplit(self.url).hostname or ""


class WebhookDelivery(models.Model):
    """An event for one endpoint, with the delivery's outcome. Its data are ids and states, never content."""

    class State(models.TextChoices):
        WAITING = "waiting", gettext_lazy("Waiting")
        DELIVERED = "delivered", gettext_lazy("Delivered")
        FAILED = "failed", gettext_lazy("Given up")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    endpoint = models.ForeignKey(WebhookEndpoint, on_delete=models.CASCADE, related_name="deliveries")
    event = models.CharField(max_length=30)
    data = models.JSONField()
    created_at = models.DateTimeField(auto_now_add=True)
    state = models.CharField(max_length=10, choices=State, default=State.WAITING)
    attempts = models.PositiveIntegerField(default=0)
    next_at = models.DateTimeField(
        null=True, default=timezone.now, help_text=gettext_lazy("The time of the next attempt.")
    )
    attempted_at = models.DateTimeField(null=True)
    status_code = models.PositiveIntegerField(null=True)
    detail = models.CharField(
        max_length=200, blank=True, help_text=gettext_lazy("The result of the last attempt, as text.")
    )

    class Meta:
        ordering = ["-created_at"]
        verbose_name_plural = gettext_lazy("webhook deliveries")
        indexes = [
            models.Index(fields=["endpoint", "-created_at"], name="webhook_log"),
            models.Index(
                fields=["endpoint", "next_at"], condition=models.Q(state="waiting"), name="webhook_due"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.event} {self.pk}"
