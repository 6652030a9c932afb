"""Accounts of people and programs, their keys, sessions, audit log and webhooks."""

import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import ClassVar
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.hashers import verify_password
from django.contrib.auth.models import AbstractUser, Group
from django.contrib.postgres.fields import ArrayField
from django.contrib.sessions.models import Session
from django.db import models
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext, gettext_lazy, gettext_noop

from . import hashing
from .api_keys import (
    DEFAULT_SCOPES,
    KEY_PREFIX_LENGTH,
    Scope,
    default_scopes,
    hash_key,
    network_of,
    new_key,
)

MAX_WISH = 1_000  # characters
EXPIRY_WARNING = timedelta(days=30)


class User(AbstractUser):
    """A person who signs in, or (with `guest_until`) a guest: a session that has not signed in."""

    guest_until = models.DateTimeField(
        null=True,
        blank=True,
        editable=False,
        db_index=True,
        help_text=gettext_lazy("When a guest's row is removed."),
    )

    guest_address = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text=gettext_lazy("A keyed hash of the address that a guest came from."),
    )

    language = models.CharField(
        max_length=10,
        blank=True,
        default="",
        db_default="",
        help_text=gettext_lazy("Of the pages and messages for this person. Empty: that of the browser."),
    )

    legal_hold = models.CharField(
        max_length=300,
        blank=True,
        default="",
        db_default="",
        help_text=gettext_lazy(
            "Why nothing of this person may be erased, for example a file number. Empty: no hold."
        ),
    )

    wish = models.CharField(
        max_length=MAX_WISH,
        blank=True,
        default="",
        db_default="",
        help_text=gettext_lazy(
            "How this person likes answers to their questions in the portal, in their own words."
        ),
    )

    hints_seen = models.BooleanField(
        default=False,
        db_default=False,
        editable=False,
        help_text=gettext_lazy("The first hints of the portal."),
    )

    service_for = models.CharField(
        gettext_lazy("service account of"),
        max_length=100,
        blank=True,
        default="",
        db_default="",
        help_text=gettext_lazy("The program that this account belongs to. It has API keys and no password."),
    )

    def check_password(self, raw_password: str | None) -> bool:
        """As Django's, one hash at a time; upgrades hashes with a lower cost."""
        correct, outdated = hashing.in_turn(verify_password, raw_password, self.password)
        if correct and outdated:
            self.set_password(raw_password)
            self._password = None  # not a new password: no notification
            self.save(update_fields=["password"])
        return correct

    def set_password(self, raw_password: str | None) -> None:
        hashing.in_turn(super().set_password, raw_password)

    @property
    def is_guest(self) -> bool:
        return self.guest_until is not None

    @property
    def is_service(self) -> bool:
        return bool(self.service_for)

    def may_as_staff(self, permission: str) -> bool:
        """Whether the permission applies in the admin: former staff may still have it."""
        return self.is_staff and self.has_perm(permission)

    def display_name(self) -> str:
        return gettext("Guest") if self.is_guest else self.get_full_name() or self.username


class Device(models.Model):
    """A browser with a session of the person, for their list of devices; deleted with its session."""

    session = models.OneToOneField(Session, on_delete=models.CASCADE, related_name="device")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="devices")
    browser = models.CharField(max_length=40, help_text="A product's name; empty: unknown.", blank=True)
    system = models.CharField(max_length=40, help_text="A product's name; empty: unknown.", blank=True)
    signed_in_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-signed_in_at"]

    def __str__(self) -> str:
        return f"device {self.pk}"


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    def usable(self) -> "ApiKeyQuerySet":
        unexpired = models.Q(expires_at=None) | models.Q(expires_at__gt=timezone.now())
        return self.filter(unexpired, revoked_at=None, user__is_active=True)

    def expiring(self) -> "ApiKeyQuerySet":
        """Valid ones that expire soon, so that their owners are warned."""
        return self.usable().filter(expires_at__lt=timezone.now() + EXPIRY_WARNING)

    def owned_by_user(self, user_id: int) -> "ApiKeyQuerySet":
        return self.filter(user_id=user_id)

    def revoke(self) -> int:
        """Revoke the keys now, except those revoked before; returns their number."""
        return self.filter(revoked_at=None).update(revoked_at=timezone.now())

    def issue(
        self,
        user: User,
        name: str,
        days: int | None = None,
        scopes: Sequence[str] = DEFAULT_SCOPES,
        *,
        addresses: Sequence[str] = (),
        acts_for_others: bool = False,
    ) -> tuple["ApiKey", str]:
        """Create a key; returns it and its text, which is not stored.

        It is valid for `days`, by default those of the settings; 0 is for ever. `scopes` limit its use, and
        `addresses` are the networks from which it is valid (none: everywhere).
        """
        secret = new_key()
        days = settings.API_KEY_DAYS if days is None else days
        row = self.create(
            user=user,
            name=name,
            prefix=secret[:KEY_PREFIX_LENGTH],
            digest=hash_key(secret),
            scopes=[scope for scope in Scope.values if scope in scopes],
            expires_at=timezone.now() + timedelta(days=days) if days else None,
            addresses=[network_of(address) for address in addresses],
            acts_for_others=acts_for_others,
        )
        return row, secret


class ApiKey(models.Model):
    """A program's key with its owner's rights. Only its hash is stored."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=100, blank=True)
    prefix = models.CharField(max_length=16, editable=False)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True, editable=False)
    expires_at = models.DateTimeField(
        null=True, editable=False, help_text=gettext_lazy("Empty: it does not expire.")
    )
    revoked_at = models.DateTimeField(null=True, blank=True)
    scopes = ArrayField(
        models.CharField(max_length=40, choices=Scope),
        default=default_scopes,
        db_default=DEFAULT_SCOPES,
        help_text=gettext_lazy("What it may be used for."),
    )

    addresses = ArrayField(
        models.CharField(max_length=43),
        default=list,
        db_default=[],
        blank=True,
        help_text=gettext_lazy(
            "Addresses and networks (192.0.2.0/24) that it may be used from. Empty: everywhere."
        ),
    )
    acts_for_others = models.BooleanField(
        gettext_lazy("acts on behalf of others"),
        default=False,
        db_default=False,
        help_text=gettext_lazy(
            "Its program may act with the rights of a person whom it names; the audit log tells."
        ),
    )

    objects = ApiKeyQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at"]
        verbose_name = gettext_lazy("API key")

    def __str__(self) -> str:
        return f"{self.prefix}… ({self.name})" if self.name else f"{self.prefix}…"

    @property
    def scope_labels(self) -> list[str]:
        return [str(Scope(scope).label) for scope in self.scopes if scope in Scope]

    @property
    def dates(self) -> str:
        """When it was created, last used, and expires or was revoked, for its owner."""
        parts = [gettext("Created %(day)s") % {"day": _date(self.created_at)}]
        if self.revoked_at:
            return ", ".join([*parts, gettext("revoked %(day)s") % {"day": _date(self.revoked_at)}])
        if self.last_used_at:
            moment = _date(self.last_used_at, gettext("j M Y, H:i"))
            parts.append(gettext("last used %(moment)s") % {"moment": moment})
        else:
            parts.append(gettext("not used yet"))
        if self.expires_at is None:
            parts.append(gettext("does not expire"))
        else:
            end = gettext("expired %(day)s") if self.is_expired else gettext("expires %(day)s")
            parts.append(end % {"day": _date(self.expires_at)})
        return ", ".join(parts)

    @property
    def is_expired(self) -> bool:
        return self.expires_at is not None and self.expires_at <= timezone.now()

    @property
    def days_left(self) -> int | None:
        """Whole days until it expires, if its owner is to be warned."""
        if self.expires_at is None or self.expires_at > timezone.now() + EXPIRY_WARNING:
            return None
        return max(0, (self.expires_at - timezone.now()).days)


def _date(moment: datetime, form: str = "") -> str:
    """In the page's time zone."""
    return date_format(timezone.localtime(moment), form or gettext("j M Y"))


class SignInAttempt(models.Model):
    """A failed attempt to sign in; many of them slow down the next ones (see throttling)."""

    digest = models.CharField(max_length=64, help_text="Of what it counts for: a name, an address, or both.")
    created_at = models.DateTimeField(default=timezone.now, db_index=True)

    class Meta:
        indexes = [models.Index(fields=["digest", "created_at"], name="sign_in_attempts")]

    def __str__(self) -> str:
        return f"{self.created_at:%Y-%m-%d %H:%M}"


class GuestRate(models.Model):
    """What guests did in the last minute, from one address or in total (see guest_limits)."""

    key = models.CharField(max_length=80, primary_key=True)
    moments = ArrayField(models.DateTimeField())

    def __str__(self) -> str:
        return self.key


class ExternalIdentity(models.Model):
    """A person's identity at the sign-in provider; never an e-mail address, which can be reassigned."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="identities")
    issuer = models.CharField(max_length=500)
    subject = models.CharField(max_length=255, help_text=gettext_lazy("The value of that claim."))
    claim = models.CharField(
        max_length=3,
        blank=True,
        default="",
        db_default="",
        help_text=gettext_lazy(
            "`sub` or `oid`; empty for an account that was linked before this was stored."
        ),
    )
    newest_token_at = models.BigIntegerField(
        default=0,
        db_default=0,
        editable=False,
        help_text=gettext_lazy("`iat` of the newest token, in seconds: older ones change no memberships."),
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name_plural = gettext_lazy("external identities")
        constraints = [models.UniqueConstraint(name="identity_unique", fields=["issuer", "claim", "subject"])]

    def __str__(self) -> str:
        return f"{self.subject} ({self.issuer})"


class FormerIdentity(models.Model):
    """The time of the newest token of a deleted identity, kept by a trigger: older tokens are refused.

    Contains no text of the person: `digest` is the MD5 of issuer, line feed and subject.
    """

    digest = models.UUIDField(primary_key=True)
    newest_token_at = models.BigIntegerField(help_text="`iat`, in seconds.")

    def __str__(self) -> str:
        return f"{self.digest}"


class ManagedMembership(models.Model):
    """A membership given by a token and removed by a later one; manual memberships have no row."""

    identity = models.ForeignKey(ExternalIdentity, on_delete=models.CASCADE, related_name="memberships")
    group = models.ForeignKey(Group, on_delete=models.CASCADE, related_name="+")

    class Meta:
        constraints = [models.UniqueConstraint(name="membership_unique", fields=["identity", "group"])]

    def __str__(self) -> str:
        return f"{self.identity}: {self.group}"


class GroupMapping(models.Model):
    """A group of the provider and the group here that it maps to."""

    issuer = models.CharField(max_length=500, help_text=gettext_lazy("As in OIDC_ISSUER."))
    value = models.CharField(
        max_length=255, help_text=gettext_lazy("One value of the claim that lists groups.")
    )
    group = models.ForeignKey(Group, on_delete=models.CASCADE, related_name="+")

    class Meta:
        constraints = [models.UniqueConstraint(name="mapping_unique", fields=["issuer", "value", "group"])]

    def __str__(self) -> str:
        return f"{self.value} → {self.group}"


class AuditEntry(models.Model):
    """An act of staff or of a command that concerns rights or others' content (see auditing).

    Without foreign keys, because entries outlive their subjects; the database refuses changes, except to
    names and subjects when a person is erased.
    """

    class Action(models.TextChoices):
        EXPLAIN_ACCESS = "explain_access", gettext_lazy("Asked why somebody may read a document")
        SEARCH_AS = "search_as", gettext_lazy("Searched as another person")
        RIGHTS_CHANGED = "rights_changed", gettext_lazy("Changed who may read a document")
        KEY_MADE = "key_made", gettext_lazy("Made an API key for somebody")
        KEYS_REVOKED = "keys_revoked", gettext_lazy("Revoked somebody's API keys")
        PASSWORD_SET = "password_set", gettext_lazy("Set somebody's password")
        SIGN_IN_REFUSED = "sign_in_refused", gettext_lazy("Was refused to sign in")
        CONVERSATION_READ = "conversation_read", gettext_lazy("Read somebody's conversation")
        CONVERSATIONS_LISTED = "conversations_listed", gettext_lazy("Listed conversations of others")
        FEEDBACK_READ = "feedback_read", gettext_lazy("Read feedback on an answer")
        FEEDBACK_LISTED = "feedback_listed", gettext_lazy("Listed feedback on answers")
        SHARES_LISTED = "shares_listed", gettext_lazy("Listed shared links of others")
        SHARE_READ = "share_read", gettext_lazy("Looked at somebody's shared link")
        SHARE_REVOKED = "share_revoked", gettext_lazy("Revoked somebody's shared link")
        VERIFIED_CHANGED = "verified_changed", gettext_lazy("Changed a verified answer")
        UNANSWERED_LISTED = "unanswered_listed", gettext_lazy("Looked at what was asked in vain")
        UNANSWERED_DISMISSED = "unanswered_dismissed", gettext_lazy("Dismissed what was asked in vain")
        WORDS_CHANGED = "words_changed", gettext_lazy("Changed the words of the house")
        PROOF_CHANGED = "proof_changed", gettext_lazy("Changed the questions of the proof")
        PROOF_STARTED = "proof_started", gettext_lazy("Started a run of the proof")
        PROOF_READ = "proof_read", gettext_lazy("Looked at a run of the proof with the rights of others")
        PERSON_EXPORTED = "person_exported", gettext_lazy("Exported all that a person has")
        PERSON_ERASED = "person_erased", gettext_lazy("Erased a person")
        ACTED_FOR = "acted_for", gettext_lazy("Acted on behalf of somebody by an API key")
        SERVICE_CREATED = "service_created", gettext_lazy("Created a service account")
        HOLD_CHANGED = "hold_changed", gettext_lazy("Set or lifted a legal hold")
        SIGN_IN = "sign_in", gettext_lazy("Signed in")
        SIGN_OUT = "sign_out", gettext_lazy("Signed out")
        ACCOUNT_CHANGED = "account_changed", gettext_lazy("Added, changed or deleted an account")
        GROUP_CHANGED = "group_changed", gettext_lazy("Added, changed or deleted a group")
        MAPPING_CHANGED = "mapping_changed", gettext_lazy("Changed the mapping of a group")
        IDENTITY_REMOVED = "identity_removed", gettext_lazy("Unlinked an account from the sign-in provider")
        ALLOWANCE_CHANGED = "allowance_changed", gettext_lazy("Changed how many messages somebody may send")
        RETENTION_CHANGED = "retention_changed", gettext_lazy("Changed how long things are kept")
        AGENT_CHANGED = "agent_changed", gettext_lazy("Changed an agent")
        TEXTS_CHANGED = "texts_changed", gettext_lazy("Changed the texts of the site")
        DOCUMENT_CHANGED = (
            "document_changed",
            gettext_lazy("Added, changed or deleted a document as staff"),
        )
        DOCUMENT_READ = "document_read", gettext_lazy("Read a document of others in the admin")
        MEMBERS_CHANGED = "members_changed", gettext_lazy("Changed the members of a project")
        CONVERSATION_DELETED = "conversation_deleted", gettext_lazy("Deleted somebody's conversation")
        WEBHOOK_CHANGED = "webhook_changed", gettext_lazy("Made, changed or deleted a webhook")
        LOG_READ = "log_read", gettext_lazy("Looked at the audit log")
        LOG_EXPORTED = "log_exported", gettext_lazy("Exported the audit log")
        LOG_TRIMMED = "log_trimmed", gettext_lazy("Removed old entries of the audit log")

    created_at = models.DateTimeField(auto_now_add=True, db_index=True)
    action = models.CharField(max_length=20, choices=Action)
    actor = models.CharField(max_length=200, help_text=gettext_lazy("Who did it; a command is told as such."))
    actor_id = models.BigIntegerField(null=True)
    person = models.CharField(
        max_length=150, blank=True, db_index=True, help_text=gettext_lazy("Whom it is about.")
    )
    person_id = models.BigIntegerField(null=True)
    subject = models.TextField(blank=True, help_text=gettext_lazy("The document, the question, the key."))
    named = models.JSONField(
        default=list,
        db_default=models.Value([], models.JSONField()),
        editable=False,
        help_text="Names of accounts in the subject: their numbers and places.",
    )
    request_id = models.CharField(
        max_length=64, blank=True, help_text=gettext_lazy("As in the log of the site.")
    )

    class Meta:
        ordering = ["-pk"]
        verbose_name_plural = gettext_lazy("audit log")
        default_permissions = ["view"]
        permissions = [
            (
                "view_as_others",
                gettext_noop("Can see why others may read a document, and search as they would"),
            )
        ]

    def __str__(self) -> str:
        return f"{self.created_at:%Y-%m-%d %H:%M} {self.actor}: {self.get_action_display()}"


class AuditSeal(models.Model):
    """An entry's link in the hash chain; see audit.chain. The database refuses changes.

    `words` is the digest of the entry's names and subject with `salt`. When a person is erased, the salt is
    removed: then old names cannot be guessed, and the chain remains valid.
    """

    position = models.BigIntegerField(primary_key=True, help_text="From 1, without a gap.")
    entry = models.BigIntegerField(unique=True, help_text="The number of the entry.")
    salt = models.CharField(max_length=32)
    words = models.CharField(max_length=64)
    hash = models.CharField(max_length=64, help_text="Of this entry and the hash before.")

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.position}: {self.hash}"


class AuditDelivery(models.Model):
    """The position up to which the audit log was sent to an external server; see audit.streaming."""

    target = models.CharField(max_length=10, primary_key=True, help_text="syslog or webhook.")
    position = models.BigIntegerField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.target}: {self.position}"


class Look(models.Model):
    """An access of staff to another person's content, with a reason. It is disclosed to the person later.

    Without a conversation: a search with the person's rights, or an export of all data.
    """

    MAX_REASON: ClassVar = 500  # characters

    reader = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    person = models.ForeignKey(User, on_delete=models.CASCADE, related_name="looks")
    conversation = models.UUIDField(
        null=True, help_text="The id of the conversation that was read; none for an export of everything."
    )
    searched = models.BooleanField(
        default=False, db_default=False, help_text="A search with the rights of the person."
    )
    reason = models.CharField(max_length=MAX_REASON)
    begun_at = models.DateTimeField(default=timezone.now)
    seen_at = models.DateTimeField(null=True, help_text="When the person read of it.")

    class Meta:
        ordering = ["-begun_at"]
        indexes = [models.Index(fields=["person", "-begun_at"], name="looks_of_person")]
        default_permissions = []
        permissions = [
            ("read_others", gettext_noop("Can read the conversations of others, for a reason")),
            ("export_others", gettext_noop("Can export all that somebody has, for a reason")),
        ]

    def __str__(self) -> str:
        return f"look {self.pk}"


class WebhookEndpointQuerySet(models.QuerySet["WebhookEndpoint"]):
    def listening(self, event: str) -> "WebhookEndpointQuerySet":
        """Those subscribed to events of this type, of owners who can sign in."""
        return self.filter(
            active=True, events__contains=[event], owner__is_active=True, owner__guest_until=None
        )


class WebhookEndpoint(models.Model):
    """A program's URL for events, with the rights of its owner."""

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
        help_text=gettext_lazy("By which it was made or last changed: without it nothing is sent."),
    )
    name = models.CharField(max_length=100, blank=True)
    url = models.CharField(max_length=2_000)
    events = ArrayField(models.CharField(max_length=30, choices=Event))
    secret = models.TextField(
        editable=False, help_text=gettext_lazy("Encrypted with a key made from the site's secret key.")
    )
    former_secret = models.TextField(blank=True, editable=False)
    former_secret_until = models.DateTimeField(
        null=True, editable=False, help_text=gettext_lazy("Until then it signs, too.")
    )
    active = models.BooleanField(default=True)
    reason = models.CharField(
        max_length=200, blank=True, editable=False, help_text=gettext_lazy("Why it was switched off.")
    )
    failing_since = models.DateTimeField(null=True, editable=False)
    paused_until = models.DateTimeField(
        null=True, editable=False, help_text=gettext_lazy("It does not answer; until then none is tried.")
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = WebhookEndpointQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at"]
        verbose_name = gettext_lazy("webhook")

    def __str__(self) -> str:
        return self.name or self.host

    @property
    def host(self) -> str:
        """The part of the URL that others may see: the rest may contain secrets."""
        return urlsplit(self.url).hostname or ""


class WebhookDelivery(models.Model):
    """An event for one endpoint, and its outcome. Its data are ids and states, never content."""

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
        null=True, default=timezone.now, help_text=gettext_lazy("Of the next attempt.")
    )
    attempted_at = models.DateTimeField(null=True)
    status_code = models.PositiveIntegerField(null=True)
    detail = models.CharField(
        max_length=200, blank=True, help_text=gettext_lazy("What the last attempt met, in words.")
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
