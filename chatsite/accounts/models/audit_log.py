"""The audit log, its chain of hashes and its delivery, and staff access to others' content."""

from typing import ClassVar

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy, gettext_noop

from .people import User


class AuditEntry(models.Model):
    """A sign-in or sign-out, or an action on accounts, rights, others' content or settings.

    See chatsite.accounts.audit. Entries have no foreign keys, because they outlive the accounts and objects
    that they name. The database refuses changes, except to names and subjects while a person is erased, and
    deletions, except while old entries are removed.
    """

    class Action(models.TextChoices):
        EXPLAIN_ACCESS = "explain_access", gettext_lazy("Asked why somebody may read a document")
        SEARCH_AS = "search_as", gettext_lazy("Searched as another person")
        RIGHTS_CHANGED = "rights_changed", gettext_lazy("Changed who may read a document")
        KEY_MADE = "key_made", gettext_lazy("Created an API key for somebody")
        KEYS_REVOKED = "keys_revoked", gettext_lazy("Revoked somebody's API keys")
        PASSWORD_SET = "password_set", gettext_lazy("Set somebody's password")
        SIGN_IN_REFUSED = "sign_in_refused", gettext_lazy("Was not allowed to sign in")
        CONVERSATION_READ = "conversation_read", gettext_lazy("Read somebody's conversation")
        CONVERSATIONS_LISTED = "conversations_listed", gettext_lazy("Listed conversations of others")
        FEEDBACK_READ = "feedback_read", gettext_lazy("Read feedback on an answer")
        FEEDBACK_LISTED = "feedback_listed", gettext_lazy("Listed feedback on answers")
        SHARES_LISTED = "shares_listed", gettext_lazy("Listed shared links of others")
        SHARE_READ = "share_read", gettext_lazy("Viewed somebody's shared link")
        SHARE_CREATED = "share_created", gettext_lazy("Created a shared link")
        SHARE_RENEWED = "share_renewed", gettext_lazy("Gave a shared link a new address")
        SHARE_REVOKED = "share_revoked", gettext_lazy("Revoked a shared link")
        VERIFIED_CHANGED = "verified_changed", gettext_lazy("Changed a verified answer")
        UNANSWERED_LISTED = "unanswered_listed", gettext_lazy("Viewed unanswered questions")
        UNANSWERED_DISMISSED = "unanswered_dismissed", gettext_lazy("Dismissed unanswered questions")
        WORDS_CHANGED = "words_changed", gettext_lazy("Changed the glossary")
        EVALUATION_CHANGED = "proof_changed", gettext_lazy("Changed the evaluation questions")
        EVALUATION_STARTED = "proof_started", gettext_lazy("Started an evaluation")
        EVALUATION_READ = "proof_read", gettext_lazy("Viewed an evaluation with the rights of others")
        PERSON_EXPORTED = "person_exported", gettext_lazy("Exported all data of a person")
        PERSON_ERASED = "person_erased", gettext_lazy("Erased a person")
        ACTED_FOR = "acted_for", gettext_lazy("Acted on behalf of somebody with an API key")
        SERVICE_CREATED = "service_created", gettext_lazy("Created a service account")
        HOLD_CHANGED = "hold_changed", gettext_lazy("Set or lifted a legal hold")
        SIGN_IN = "sign_in", gettext_lazy("Signed in")
        SIGN_OUT = "sign_out", gettext_lazy("Signed out")
        ACCOUNT_CHANGED = "account_changed", gettext_lazy("Added, changed or deleted an account")
        GROUP_CHANGED = "group_changed", gettext_lazy("Added, changed or deleted a group")
        MAPPING_CHANGED = "mapping_changed", gettext_lazy("Changed the mapping of a group")
        IDENTITY_REMOVED = "identity_removed", gettext_lazy("Unlinked an account from the sign-in provider")
        ALLOWANCE_CHANGED = "allowance_changed", gettext_lazy("Changed a message allowance")
        RETENTION_CHANGED = "retention_changed", gettext_lazy("Changed the retention rules")
        AGENT_CHANGED = "agent_changed", gettext_lazy("Changed an agent")
        TEXTS_CHANGED = "texts_changed", gettext_lazy("Changed the texts of the site")
        DOCUMENT_CHANGED = (
            "document_changed",
            gettext_lazy("Added, changed or deleted a document as staff"),
        )
        DOCUMENT_READ = "document_read", gettext_lazy("Read a document of others in the admin")
        MEMBERS_CHANGED = "members_changed", gettext_lazy("Changed the members of a project")
        CONVERSATION_DELETED = "conversation_deleted", gettext_lazy("Deleted somebody's conversation")
        WEBHOOK_CHANGED = "webhook_changed", gettext_lazy("Created, changed or deleted a webhook")
        LOG_READ = "log_read", gettext_lazy("Viewed the audit log")
        LOG_EXPORTED = "log_exported", gettext_lazy("Exported the audit log")
        LOG_TRIMMED = "log_trimmed", gettext_lazy("Removed old entries of the audit log")

    created_at = models.DateTimeField(auto_now_add=True, db_index=True)
    action = models.CharField(max_length=20, choices=Action)
    actor = models.CharField(
        max_length=200,
        help_text=gettext_lazy("Who did it: a user name, or a description such as “command of …”."),
    )
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
        help_text="The numbers and positions of account names in the subject.",
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
    """An entry's link in the hash chain (see audit.chain).

    `words` is the digest of the entry's names and subject with `salt`. When a person is erased, the salt is
    removed, so that nobody can verify guesses of the old names; the chain remains valid. The database refuses
    any other change, and deletions except while old entries are removed.
    """

    position = models.BigIntegerField(primary_key=True, help_text="From 1, without a gap.")
    entry = models.BigIntegerField(unique=True, help_text="The number of the entry.")
    salt = models.CharField(max_length=32)
    words = models.CharField(max_length=64)
    hash = models.CharField(max_length=64, help_text="The hash of this entry and of the previous hash.")

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.position}: {self.hash}"


class AuditDelivery(models.Model):
    """The position up to which the audit log was sent to an external server.

    See audit.audit_stream.
    """

    target = models.CharField(max_length=10, primary_key=True, help_text="syslog or webhook.")
    position = models.BigIntegerField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.target}: {self.position}"


class Look(models.Model):
    """Access of staff to another person's content, with a reason.

    It is disclosed to the person later. If no conversation is set, it was a search with the person's rights,
    or an export of all data. The model keeps its original name, because a release must not rename tables that
    the previous release uses.
    """

    MAX_REASON: ClassVar = 500  # characters

    reader = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    person = models.ForeignKey(User, on_delete=models.CASCADE, related_name="looks")
    conversation = models.UUIDField(
        null=True,
        help_text="The id of the conversation that was read; null for a search or an export of all data.",
    )
    searched = models.BooleanField(
        default=False, db_default=False, help_text="A search with the rights of the person."
    )
    reason = models.CharField(max_length=MAX_REASON)
    begun_at = models.DateTimeField(default=timezone.now)
    seen_at = models.DateTimeField(null=True, help_text="When the person was shown it.")

    class Meta:
        ordering = ["-begun_at"]
        indexes = [models.Index(fields=["person", "-begun_at"], name="looks_of_person")]
        default_permissions = []
        permissions = [
            ("read_others", gettext_noop("Can read the conversations of others, with a reason")),
            ("export_others", gettext_noop("Can export all data of a person, with a reason")),
        ]

    def __str__(self) -> str:
        return f"look {self.pk}"
