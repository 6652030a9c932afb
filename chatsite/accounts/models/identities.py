"""Identities at the sign-in provider, and the groups that its tokens assign."""

from typing import Any

from django.contrib.auth.models import Group
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.signals import m2m_changed
from django.dispatch import receiver
from django.utils.translation import gettext_lazy

from .people import User


class ExternalIdentity(models.Model):
    """A person's identity at the sign-in provider.

    `subject` is never an e-mail address, because such an address can be reassigned.
    """

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="identities")
    issuer = models.CharField(max_length=500)
    subject = models.CharField(
        max_length=255, help_text=gettext_lazy("The value of the claim that identifies the person.")
    )
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
    """The time of the newest token of a deleted identity.

    A trigger stores the row, so that older tokens restore no memberships if the person's account is created
    again. It contains no personal text: `digest` is the MD5 of issuer, line feed and subject.
    """

    digest = models.UUIDField(primary_key=True)
    newest_token_at = models.BigIntegerField(help_text="`iat`, in seconds.")

    def __str__(self) -> str:
        return f"{self.digest}"


class ManagedMembership(models.Model):
    """A group membership that came from a token; a later token can remove it. Manual ones have no row."""

    identity = models.ForeignKey(ExternalIdentity, on_delete=models.CASCADE, related_name="memberships")
    group = models.ForeignKey(Group, on_delete=models.CASCADE, related_name="+")
    # The values of the claim that assigned the group; empty if an earlier version stored the membership.
    values = ArrayField(models.TextField(), default=list, db_default=[])

    class Meta:
        constraints = [models.UniqueConstraint(name="membership_unique", fields=["identity", "group"])]

    def __str__(self) -> str:
        return f"{self.identity}: {self.group}"


@receiver(m2m_changed, sender=User.groups.through)
def make_manual(action: str, instance: Any, reverse: bool, pk_set: set[int], **_: Any) -> None:
    """Treat a membership that is given by hand as manual, also if a token gave it before.

    Otherwise the next token would remove it. Memberships from tokens are stored after the person was added.
    """
    if action == "post_add":
        people, groups = (pk_set, [instance.pk]) if reverse else ([instance.pk], pk_set)
        ManagedMembership.objects.filter(identity__user__in=people, group__in=groups).delete()


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
