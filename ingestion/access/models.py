"""Access lists: people and groups who may read a document, open a share or use a project."""

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models
from django.db.models import Q
from django.db.models.expressions import RawSQL
from django.utils.translation import gettext, gettext_lazy


class AccessList(models.Model):
    """A set of people and groups, such as the readers of a document.

    Equal sets share a row (see ingestion.access.lists).
    """

    digest = models.CharField(max_length=64, unique=True, editable=False)

    def __str__(self) -> str:
        return f"Access list {self.pk}"


class AccessEntry(models.Model):
    """One entry of an access list: a user, a group, or everyone.

    An entry with neither a user nor a group applies to everyone, with or without guests.
    """

    access_list = models.ForeignKey(AccessList, on_delete=models.CASCADE, related_name="entries")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="+")
    group = models.ForeignKey(Group, null=True, on_delete=models.CASCADE, related_name="+")
    guests = models.BooleanField(
        default=False, help_text=gettext_lazy("Everyone, and those who have not signed in.")
    )

    class Meta:
        verbose_name_plural = gettext_lazy("access entries")
        constraints = [
            models.CheckConstraint(
                name="access_entry_guests_are_of_everyone",
                condition=Q(guests=False) | Q(user=None, group=None),
            ),
            models.CheckConstraint(name="access_entry_user_or_group", condition=Q(user=None) | Q(group=None)),
            models.UniqueConstraint(
                name="access_entry_unique", fields=["access_list", "user", "group"], nulls_distinct=False
            ),
        ]
        indexes = [
            models.Index(
                name="access_entry_everyone", fields=["access_list"], condition=Q(user=None, group=None)
            )
        ]

    def __str__(self) -> str:
        if self.user or self.group:
            return str(self.user or self.group)
        return gettext("everyone, also guests") if self.guests else gettext("everyone")

    @staticmethod
    def lists_of(user_id: int) -> RawSQL:
        """The ids of the access lists that include this person now, as a subquery."""
        mine = "SELECT mine.access_list_id FROM ingestion_readable_entries(%s) AS mine"
        return RawSQL(mine, [user_id])  # noqa: S611 (constant text, and a parameter)

    @staticmethod
    def including(user_id: int) -> RawSQL:
        """A subquery for the ids of the entries that include this person, even if the account is disabled."""
        mine = "SELECT mine.entry_id FROM ingestion_readable_entries(%s, even_if_disabled => true) AS mine"
        return RawSQL(mine, [user_id])  # noqa: S611 (constant text, and a parameter)
