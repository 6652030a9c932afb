"""People and programs that may ask: users, and the keys their programs present."""

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.utils import timezone

from .keys import KEY_PREFIX_LENGTH, hash_key, new_key


class User(AbstractUser):
    """A person who signs in. Its own model from the first migration, so that it can grow."""

    def display_name(self) -> str:
        return self.get_full_name() or self.username


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    def usable(self) -> "ApiKeyQuerySet":
        return self.filter(revoked_at=None, user__is_active=True)

    def owned_by_user(self, user_id: int) -> "ApiKeyQuerySet":
        return self.filter(user_id=user_id)

    def revoke(self) -> int:
        """Refuse the keys from now on; when one was revoked first is kept. Says how many it was."""
        return self.filter(revoked_at=None).update(revoked_at=timezone.now())

    def issue(self, user: User, name: str) -> tuple["ApiKey", str]:
        """Create a key; the second value is the only time its text exists outside the caller's hands."""
        secret = new_key()
        row = self.create(user=user, name=name, prefix=secret[:KEY_PREFIX_LENGTH], digest=hash_key(secret))
        return row, secret


class ApiKey(models.Model):
    """A key of a program, which acts with its user's rights. Only its hash is stored."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=100, blank=True)
    prefix = models.CharField(max_length=16, editable=False)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True, editable=False)
    revoked_at = models.DateTimeField(null=True, blank=True)

    objects = ApiKeyQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at"]
        verbose_name = "API key"

    def __str__(self) -> str:
        return f"{self.prefix}… ({self.name or 'no name'})"


class SignInAttempt(models.Model):
    """A try to sign in that has not succeeded; enough of them close the door for a while (see throttling)."""

    digest = models.CharField(max_length=64, help_text="Of the name typed and the address it came from.")
    created_at = models.DateTimeField(default=timezone.now, db_index=True)

    class Meta:
        indexes = [models.Index(fields=["digest", "created_at"], name="sign_in_attempts")]

    def __str__(self) -> str:
        return f"{self.created_at:%Y-%m-%d %H:%M}"
