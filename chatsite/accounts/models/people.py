"""People, guests and service accounts; their devices, and counters for rate limits."""

from django.contrib.auth.hashers import verify_password
from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.contrib.sessions.models import Session
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext, gettext_lazy

from chatsite.accounts.passwords import hashing

MAX_WISH = 1_000  # characters


class User(AbstractUser):
    """A person with an account, a guest (`guest_until`) or a service account (`service_for`)."""

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
        help_text=gettext_lazy(
            "The language of pages and messages for this person. Without a choice, the browser decides."
        ),
    )

    legal_hold = models.CharField(
        max_length=300,
        blank=True,
        default="",
        db_default="",
        help_text=gettext_lazy(
            "Why nothing of this person may be erased, for example a file number. "
            "Leave it empty if there is no hold."
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
        """Like Django's method, which also upgrades outdated hashes, but one hash at a time."""
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
        """Whether the person is staff and has the permission; permissions of former staff have no effect."""
        return self.is_staff and self.has_perm(permission)

    def display_name(self) -> str:
        return gettext("Guest") if self.is_guest else self.get_full_name() or self.username


class Device(models.Model):
    """A browser in which a person has a session, for the person's list of devices.

    It is deleted with the session.
    """

    session = models.OneToOneField(Session, on_delete=models.CASCADE, related_name="device")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="devices")
    browser = models.CharField(max_length=40, help_text="A product's name; empty if unknown.", blank=True)
    system = models.CharField(max_length=40, help_text="A product's name; empty if unknown.", blank=True)
    signed_in_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-signed_in_at"]

    def __str__(self) -> str:
        return f"device {self.pk}"


class SignInAttempt(models.Model):
    """A row that counts a sign-in attempt until it succeeds; many rows delay later attempts.

    An attempt has a row for each digest for which it counts, such as that of its address; a first refusal
    also has a row (see passwords.throttling).
    """

    digest = models.CharField(
        max_length=64, help_text="The digest of what the attempt counts for: a name, an address, or both."
    )
    created_at = models.DateTimeField(default=timezone.now, db_index=True)

    class Meta:
        indexes = [models.Index(fields=["digest", "created_at"], name="sign_in_attempts")]

    def __str__(self) -> str:
        return f"{self.created_at:%Y-%m-%d %H:%M}"


class GuestRate(models.Model):
    """Timestamps of new guests, or of guests' questions, in the last minute.

    A row counts for one address, for one IPv6 site, or in total (see guest_limits).
    """

    key = models.CharField(max_length=80, primary_key=True)
    moments = ArrayField(models.DateTimeField())

    def __str__(self) -> str:
        return self.key
