"""Admin pages on which every change leaves an entry in the audit log."""

from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.utils.translation import override

from chatsite.accounts.audit import record
from chatsite.accounts.models import AuditEntry, User


def user_of(request: HttpRequest) -> User:
    """The person who uses the admin."""
    if not isinstance(request.user, User):
        raise PermissionDenied
    return request.user


class AuditedChanges:
    """Writes an audit entry for each row that is added, changed or deleted on this page."""

    audited_as: AuditEntry.Action

    def about(self, obj: Any) -> User | None:
        """The person whom a row is about."""
        return None

    def described(self, obj: Any) -> str:
        """Details of a row for the audit entry, besides its name: rights, but no content."""
        return ""

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        with override("en"):  # the audit log is in English
            self._note(request, obj, "Added", self.described(obj))
        return super().log_addition(request, obj, message)  # type: ignore[misc]

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        fields = [name for each in message for act in each.values() for name in act.get("fields", ())]
        if fields:
            with override("en"):
                described = self.described(obj)
                more = ", ".join(fields) + (f"; now {described}" if described else "")
                self._note(request, obj, "Changed", more)
        return super().log_change(request, obj, message)  # type: ignore[misc]

    def log_deletions(self, request: HttpRequest, queryset: Iterable[Any]) -> Any:
        with override("en"):
            for obj in queryset:
                self._note(request, obj, "Deleted", "")
        return super().log_deletions(request, queryset)  # type: ignore[misc]

    def _note(self, request: HttpRequest, obj: Any, act: str, more: str) -> None:
        subject = f"{act} {obj._meta.verbose_name} {self.named(obj)}"
        record(
            self.audited_as,
            actor=user_of(request),
            person=self.about(obj),
            subject=f"{subject}: {more}" if more else subject,
        )

    def named(self, obj: Any) -> str:
        return f"{obj} (number {obj.pk})"


def rights_of(account: User) -> str:
    """The state, groups and permissions of an account, in words."""
    flags = {
        "active": account.is_active,
        "staff": account.is_staff,
        "superuser": account.is_superuser,
    }
    parts = [", ".join(name for name, is_set in flags.items() if is_set) or "not active"]
    if groups := sorted(account.groups.values_list("name", flat=True)):
        parts.append(f"in {', '.join(groups)}")
    if permissions := sorted(account.user_permissions.values_list("codename", flat=True)):
        parts.append(f"may {', '.join(permissions)}")
    return "; ".join(parts)


def permissions_of(group: Group) -> str:
    return f"may {', '.join(sorted(group.permissions.values_list('codename', flat=True))) or 'nothing'}"
