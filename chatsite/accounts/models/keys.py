"""API keys of people and service accounts."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext, gettext_lazy

from chatsite.accounts.api_keys import (
    DEFAULT_SCOPES,
    KEY_PREFIX_LENGTH,
    Scope,
    default_scopes,
    hash_key,
    network_of,
    new_key,
)

from .people import User

EXPIRY_WARNING = timedelta(days=30)


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    def usable(self) -> "ApiKeyQuerySet":
        unexpired = models.Q(expires_at=None) | models.Q(expires_at__gt=timezone.now())
        return self.filter(unexpired, revoked_at=None, user__is_active=True)

    def expiring(self) -> "ApiKeyQuerySet":
        """Valid keys that expire so soon that their owners are warned."""
        return self.usable().filter(expires_at__lt=timezone.now() + EXPIRY_WARNING)

    def owned_by_user(self, user_id: int) -> "ApiKeyQuerySet":
        return self.filter(user_id=user_id)

    def revoke(self) -> int:
        """Revoke the keys that are not revoked yet, and return their number."""
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
        """Create a key; return its row and the secret, which is not stored.

        The key is valid for `days` (by default, as configured); 0 means no expiry. `scopes` limit its use;
        `addresses` are the networks from which it is valid; if empty, it is valid everywhere.
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
    """A key with which a program has its owner's rights; only its prefix and hash are stored."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=100, blank=True)
    prefix = models.CharField(max_length=16, editable=False)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True, editable=False)
    expires_at = models.DateTimeField(
        null=True, editable=False, help_text=gettext_lazy("A key without a date does not expire.")
    )
    revoked_at = models.DateTimeField(null=True, blank=True)
    scopes = ArrayField(
        models.CharField(max_length=40, choices=Scope),
        default=default_scopes,
        db_default=DEFAULT_SCOPES,
        help_text=gettext_lazy("What the key may be used for."),
    )

    addresses = ArrayField(
        models.CharField(max_length=43),
        default=list,
        db_default=[],
        blank=True,
        help_text=gettext_lazy(
            "Addresses and networks (192.0.2.0/24) from which the key may be used. "
            "If you leave them empty, it works from everywhere."
        ),
    )
    acts_for_others = models.BooleanField(
        gettext_lazy("acts on behalf of others"),
        default=False,
        db_default=False,
        help_text=gettext_lazy(
            "Its program may act with the rights of a person whom it names; this is recorded in the "
            "audit log."
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
        """A line for the owner, with the dates of creation, last use, and expiry or revocation."""
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
        """Whole days until the key expires, if its owner should be warned; otherwise None."""
        if self.expires_at is None or self.expires_at > timezone.now() + EXPIRY_WARNING:
            return None
        return max(0, (self.expires_at - timezone.now()).days)


def _date(moment: datetime, form: str = "") -> str:
    """The date in the page's time zone."""
    return date_format(timezone.localtime(moment), form or gettext("j M Y"))
