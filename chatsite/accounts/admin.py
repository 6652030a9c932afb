"""Users, groups, API keys, sign-in mappings and identities, and the audit log in the admin."""

from http import HTTPStatus
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Count, ForeignKey, ManyToManyField, Q, QuerySet, Value
from django.db.models.functions import Concat
from django.forms import CheckboxSelectMultiple, ModelForm, ModelMultipleChoiceField
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.html import format_html
from django.utils.text import Truncator, capfirst
from django.utils.translation import gettext, gettext_lazy, pgettext_lazy

from .admin_base.admin_filters import TypedGroupFilter
from .admin_base.audited_admin import AuditedChanges, permissions_of, rights_of, user_of
from .admin_base.pickers import AutocompleteAdmin
from .admin_base.read_only_admin import OwnFilters, ReadOnly
from .audit import record, record_before
from .forms import AdminSignInForm, ApiKeyAdminForm
from .models import (
    ApiKey,
    AuditEntry,
    ExternalIdentity,
    GroupMapping,
    User,
)
from .oidc.claimed_accounts import drop_unmapped_memberships, unlink
from .privileges import (
    administered_by,
    grantable_groups,
    grantable_permissions,
    may_administer,
    may_administer_group,
)
from .sessions import end_sessions
from .webhooks import admin as _webhooks  # noqa: F401 (registers its page)

SUPERUSERS_ONLY = ("is_superuser", "legal_hold")
ACTS = {
    "add": gettext_lazy("add"),
    "change": gettext_lazy("change"),
    "delete": gettext_lazy("delete"),
    "view": gettext_lazy("view"),
}
SUBJECT_SHOWN = 400  # characters of an audit entry's subject that the list shows

admin.site.index_title = gettext_lazy("Content, people and keys")
admin.site.login_form = AdminSignInForm


def offered_permissions(request: HttpRequest, holder: str) -> QuerySet[Permission]:
    """The permissions that the current user may give, without those that have no effect.

    Django's permissions to add, change, delete and view a model have an effect if the admin has a page or
    inline for it; on a read-only page, only “view” does. All other permissions are the site's own. `holder`
    is the lookup from a permission to the person or group being edited, whose permissions stay in the list.
    """
    models = filter(admin.site.is_registered, apps.get_models())
    pages = {model: admin.site.get_model_admin(model) for model in models}
    shown = {model for model, page in pages.items() if not isinstance(page, ReadOnly)}
    shown |= {inline.model for page in pages.values() for inline in page.inlines}
    whole = [each.pk for each in ContentType.objects.get_for_models(*shown).values()]
    looked_at = [each.pk for each in ContentType.objects.get_for_models(*pages).values()]
    plain = Q(codename__endswith=Concat(Value("_"), "content_type__model"))
    useful = ~plain | Q(content_type__in=whole) | Q(content_type__in=looked_at, codename__startswith="view_")
    kept = request.resolver_match.kwargs.get("object_id", "") if request.resolver_match else ""
    if kept.isdecimal():
        useful |= Q(pk__in=Permission.objects.filter(**{holder: int(kept)}).values("pk"))
    return grantable_permissions(request.user).filter(useful)


def permission_name(permission: Permission) -> str:
    """The displayed name of a permission.

    Django's permissions are named like “Documents: add”; those of the site have names of their own.
    """
    model = permission.content_type.model_class()
    act, _, name = permission.codename.partition("_")
    if model is None or name != permission.content_type.model or act not in ACTS:
        return gettext(permission.name)
    return f"{capfirst(model._meta.verbose_name_plural)}: {ACTS[act]}"


class PermissionsField(ModelMultipleChoiceField):  # type: ignore[type-arg]
    """Permissions by their translated names."""

    def label_from_instance(self, obj: Any) -> str:
        return permission_name(obj)


@admin.register(User)
class UserAdmin(OwnFilters, AuditedChanges, AutocompleteAdmin, DjangoUserAdmin):  # type: ignore[type-arg]
    """Accounts: names, groups and rights.

    Staff can view, but not change or delete, accounts with rights that they do not have themselves.
    """

    audited_as = AuditEntry.Action.ACCOUNT_CHANGED
    list_display = ["username", "first_name", "last_name", "is_active", "is_staff", "last_login"]
    list_filter = [
        "is_active",
        "is_staff",
        ("service_for", admin.EmptyFieldListFilter),
        ("groups", TypedGroupFilter),
    ]
    change_user_password_template = "admin/accounts/user/change_password.html"  # noqa: S105

    def about(self, obj: User) -> User:
        return obj

    def described(self, obj: User) -> str:
        return rights_of(obj)

    def log_change(self, request: HttpRequest, obj: User, message: Any) -> Any:
        """Log a change, also in the audit log.

        A new password only gets Django's log entry here; `user_change_password` writes its audit entry.
        """
        only_password = isinstance(message, str) or request.path.endswith("/password/")
        return (
            DjangoUserAdmin.log_change(self, request, obj, message)
            if only_password
            else super().log_change(request, obj, message)
        )

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        found: QuerySet[User] = super().get_queryset(request)
        return found.filter(guest_until=None)  # guests are created and removed automatically

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        allowed = super().has_change_permission(request, obj)
        return allowed and (obj is None or may_administer(request.user, obj))

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        allowed = super().has_delete_permission(request, obj)
        return allowed and (obj is None or may_administer(request.user, obj))

    def get_exclude(self, request: HttpRequest, obj: User | None = None) -> Any:
        return None if request.user.is_superuser else list(SUPERUSERS_ONLY)

    def get_fieldsets(self, request: HttpRequest, obj: User | None = None) -> Any:
        """Show the superuser flag and the legal hold (of existing accounts) only to superusers."""
        fieldsets = super().get_fieldsets(request, obj)
        if request.user.is_superuser:
            return (
                [*fieldsets, (gettext_lazy("Legal hold"), {"fields": ["legal_hold"]})] if obj else fieldsets
            )
        return [
            (
                title,
                {**options, "fields": [name for name in options["fields"] if name not in SUPERUSERS_ONLY]},
            )
            for title, options in fieldsets
        ]

    def save_model(self, request: HttpRequest, obj: User, form: "ModelForm[User]", change: bool) -> None:
        super().save_model(request, obj, form, change)
        if "legal_hold" in form.changed_data:
            actor = user_of(request)
            record(
                AuditEntry.Action.HOLD_CHANGED, actor=actor, person=obj, subject=obj.legal_hold or "lifted"
            )

    def get_autocomplete_fields(self, request: HttpRequest) -> list[str]:
        """Superusers search all groups by typing; other staff choose from their own few groups."""
        return ["groups"] if request.user.is_superuser else []

    def formfield_for_manytomany(
        self, db_field: "ManyToManyField[Any, Any]", request: HttpRequest, **kwargs: Any
    ) -> Any:
        if db_field.name == "groups":
            kwargs["queryset"] = grantable_groups(request.user)
        elif db_field.name == "user_permissions":
            kwargs["queryset"] = offered_permissions(request, "user")
            kwargs["form_class"] = PermissionsField
            # the default widget shows two lists, one of which may be empty and has no label
            kwargs["widget"] = CheckboxSelectMultiple
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:
        """Set a new password, and end all of the person's sessions except that of this request.

        For their own password, staff are sent to the portal's page, which asks for the current one.
        """
        person = self.get_object(request, unquote(id))
        if person and person.pk == request.user.pk:
            return redirect("accounts:password")
        if person and person.service_for:
            raise PermissionDenied("A service account has no password: it belongs to a program.")
        response = super().user_change_password(request, id, form_url)
        if person and request.method == "POST" and response.status_code == HTTPStatus.FOUND:
            actor = user_of(request)
            record(AuditEntry.Action.PASSWORD_SET, actor=actor, person=person)
            end_sessions(person.pk)
            if "revoke_keys" in request.POST:
                count = ApiKey.objects.owned_by_user(person.pk).usable().revoke()
                record(
                    AuditEntry.Action.KEYS_REVOKED, actor=actor, person=person, subject=f"API keys: {count}"
                )
                messages.success(request, gettext("API keys revoked: %(count)s.") % {"count": count})
        return response


admin.site.unregister(Group)


@admin.register(Group)
class GroupAdmin(OwnFilters, AuditedChanges, DjangoGroupAdmin):
    """Groups.

    Staff who are not superusers may change or delete only groups to which they belong, and may give these
    only permissions that they have themselves.
    """

    audited_as = AuditEntry.Action.GROUP_CHANGED
    list_display = ["name", "people"]

    def get_queryset(self, request: HttpRequest) -> "QuerySet[Group]":
        return super().get_queryset(request).annotate(members=Count("user", filter=Q(user__is_active=True)))

    @admin.display(description=gettext_lazy("people"), ordering="members")
    def people(self, obj: Group) -> int:
        """The number of members with an active account."""
        return obj.members  # type: ignore[attr-defined, no-any-return]

    def described(self, obj: Group) -> str:
        return permissions_of(obj)

    def has_change_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        allowed = super().has_change_permission(request, obj)
        return allowed and (obj is None or may_administer_group(request.user, obj))

    def has_delete_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        allowed = super().has_delete_permission(request, obj)
        return allowed and (obj is None or may_administer_group(request.user, obj))

    def formfield_for_manytomany(
        self, db_field: "ManyToManyField[Any, Any]", request: HttpRequest | None = None, **kwargs: Any
    ) -> Any:
        if db_field.name == "permissions" and request is not None:
            kwargs["queryset"] = offered_permissions(request, "group")
            kwargs["form_class"] = PermissionsField
            kwargs["widget"] = CheckboxSelectMultiple
        return super().formfield_for_manytomany(db_field, request, **kwargs)


@admin.register(ApiKey)
class ApiKeyAdmin(OwnFilters, AuditedChanges, AutocompleteAdmin, admin.ModelAdmin):  # type: ignore[type-arg]
    """API keys. A new key is shown once; its hash is never shown.

    Within its scopes, a key gives access to everything that its person may read, including their own
    documents. Only superusers create keys for others; staff rename, revoke and delete only those of people
    whom they may administer.
    """

    audited_as = AuditEntry.Action.KEYS_REVOKED
    list_display = [
        "prefix",
        "name",
        "user",
        "scopes",
        "created_at",
        "last_used_at",
        "expires_at",
        "revoked_at",
    ]
    list_filter = [("revoked_at", admin.EmptyFieldListFilter)]
    list_select_related = ["user"]
    search_fields = ["prefix", "name", "user__username"]
    actions = ["revoke"]
    form = ApiKeyAdminForm

    def about(self, obj: ApiKey) -> User:
        return obj.user

    def log_addition(self, request: HttpRequest, obj: ApiKey, message: Any) -> Any:
        """Only write Django's log: the creation of a key has a separate audit entry."""
        return admin.ModelAdmin.log_addition(self, request, obj, message)

    def log_change(self, request: HttpRequest, obj: ApiKey, message: Any) -> Any:
        """Only write Django's log: `save_model` writes the audit entry, which has the former name."""
        return admin.ModelAdmin.log_change(self, request, obj, message)

    def has_change_permission(self, request: HttpRequest, obj: ApiKey | None = None) -> bool:
        allowed = super().has_change_permission(request, obj)
        return allowed and (obj is None or may_administer(request.user, obj.user))

    def has_delete_permission(self, request: HttpRequest, obj: ApiKey | None = None) -> bool:
        allowed = super().has_delete_permission(request, obj)
        return allowed and (obj is None or may_administer(request.user, obj.user))

    def get_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> list[Any]:
        shown = ["prefix", "created_at", "last_used_at", "expires_at", "revoked_at"]
        others = ["acts_for_others"] if obj or request.user.is_superuser else []
        return ["user", "name", "scopes", "addresses", *others, *(shown if obj else ["days"])]

    def get_readonly_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> list[str]:
        kept = ["user", "scopes", "addresses", "acts_for_others", "prefix", "created_at", "last_used_at"]
        kept += ["expires_at", "revoked_at"]
        return kept if obj else []

    def get_autocomplete_fields(self, request: HttpRequest) -> list[str]:
        return ["user"] if request.user.is_superuser else []

    def formfield_for_foreignkey(
        self, db_field: "ForeignKey[Any, Any]", request: HttpRequest, **kwargs: Any
    ) -> Any:
        if db_field.name == "user" and not request.user.is_superuser:
            own = User.objects.filter(username=request.user.get_username())
            kwargs |= {"queryset": own, "initial": request.user.pk}
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: ApiKey, form: "ModelForm[ApiKey]", change: bool) -> None:
        actor = user_of(request)
        if change:
            super().save_model(request, obj, form, change)
            if "name" in form.changed_data:
                subject = f"Renamed API key {obj} (number {obj.pk}), formerly “{form.initial['name']}”"
                record(AuditEntry.Action.ACCOUNT_CHANGED, actor=actor, person=obj.user, subject=subject)
            return
        made, secret = ApiKey.objects.issue(
            obj.user,
            obj.name,
            form.cleaned_data["days"],
            scopes=obj.scopes,
            addresses=obj.addresses,
            acts_for_others=obj.acts_for_others and request.user.is_superuser,
        )
        others = ", acts for others" if made.acts_for_others else ""
        record(AuditEntry.Action.KEY_MADE, actor=actor, person=obj.user, subject=f"{made}{others}")
        obj.pk = made.pk
        obj.refresh_from_db()
        ends = f"{made.expires_at:%Y-%m-%d}" if made.expires_at else gettext("never")
        messages.warning(
            request,
            gettext("The new key, shown only this once (expires: %(day)s): %(key)s")
            % {"day": ends, "key": secret},
        )

    @admin.action(description=gettext_lazy("Revoke the chosen keys"), permissions=["change"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> None:
        actor = user_of(request)
        chosen = ApiKey.objects.filter(
            pk__in=queryset.values("pk"), revoked_at=None, user__in=administered_by(request.user)
        )
        with transaction.atomic():
            keys = list(chosen.select_related("user").select_for_update(of=("self",)))
            count = ApiKey.objects.filter(pk__in=[key.pk for key in keys]).revoke()
            for key in keys:
                record(AuditEntry.Action.KEYS_REVOKED, actor=actor, person=key.user, subject=str(key))
        messages.success(
            request,
            gettext("Revoked: %(count)s. Programs that use them are refused from now on.") % {"count": count},
        )


@admin.register(GroupMapping)
class GroupMappingAdmin(OwnFilters, AuditedChanges, AutocompleteAdmin, admin.ModelAdmin):  # type: ignore[type-arg]
    """Maps groups of the sign-in provider to groups of the site.

    Staff who are not superusers may only map to groups to which they belong.
    """

    audited_as = AuditEntry.Action.MAPPING_CHANGED
    list_display = ["value", "group", "issuer"]
    list_select_related = ["group"]
    search_fields = ["value", "group__name"]

    def has_change_permission(self, request: HttpRequest, obj: GroupMapping | None = None) -> bool:
        allowed = super().has_change_permission(request, obj)
        return allowed and (obj is None or may_administer_group(request.user, obj.group))

    def has_delete_permission(self, request: HttpRequest, obj: GroupMapping | None = None) -> bool:
        allowed = super().has_delete_permission(request, obj)
        return allowed and (obj is None or may_administer_group(request.user, obj.group))

    def get_autocomplete_fields(self, request: HttpRequest) -> list[str]:
        return ["group"] if request.user.is_superuser else []

    def formfield_for_foreignkey(
        self, db_field: "ForeignKey[Any, Any]", request: HttpRequest, **kwargs: Any
    ) -> Any:
        if db_field.name == "group":
            kwargs["queryset"] = grantable_groups(request.user)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: GroupMapping, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        drop_unmapped_memberships(changed=obj if change and form.has_changed() else None)

    def delete_model(self, request: HttpRequest, obj: GroupMapping) -> None:
        super().delete_model(request, obj)
        drop_unmapped_memberships()

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[GroupMapping]) -> None:
        super().delete_queryset(request, queryset)
        drop_unmapped_memberships()

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {"issuer": settings.OIDC_ISSUER}


@admin.register(ExternalIdentity)
class ExternalIdentityAdmin(OwnFilters, AuditedChanges, admin.ModelAdmin):  # type: ignore[type-arg]
    """Identities from the sign-in provider: read-only, but can be deleted."""

    audited_as = AuditEntry.Action.IDENTITY_REMOVED
    list_display = ["user", "subject", "claim", "issuer", "created_at"]
    list_select_related = ["user"]
    search_fields = ["user__username", "subject"]

    def about(self, obj: ExternalIdentity) -> User:
        return obj.user

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: ExternalIdentity | None = None) -> bool:
        return False

    def delete_model(self, request: HttpRequest, obj: ExternalIdentity) -> None:
        unlink(ExternalIdentity.objects.filter(pk=obj.pk))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[ExternalIdentity]) -> None:
        unlink(ExternalIdentity.objects.filter(pk__in=queryset.values("pk")))

    def has_delete_permission(self, request: HttpRequest, obj: ExternalIdentity | None = None) -> bool:
        allowed = super().has_delete_permission(request, obj)
        return allowed and (obj is None or may_administer(request.user, obj.user))


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnly, admin.ModelAdmin):  # type: ignore[type-arg]
    """The audit log: sign-ins, and actions that concern rights or other people's content.

    Nobody can add, change or delete entries here. Entries may contain questions that people asked, so viewing
    them is audited, too.
    """

    list_display = ["created_at", "actor", "action", "person", "shortened"]
    list_filter = ["action", "created_at"]
    search_fields = ["actor", "person", "subject", "request_id"]
    date_hierarchy = "created_at"
    show_full_result_count = False
    fields = ("created_at", "action", "actor", "actor_id", "person", "person_id", "whole", "request_id")

    def changelist_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        searched = [f"{name}={value}" for name, values in request.GET.lists() for value in values]
        self._record(request, ", ".join(searched))
        return super().changelist_view(request, *args, **kwargs)

    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponse:
        self._record(request, f"Entry {object_id}")
        return super().change_view(request, object_id, *args, **kwargs)

    def _record(self, request: HttpRequest, subject: str) -> None:
        if self.has_view_permission(request) and isinstance(request.user, User):
            record_before(AuditEntry.Action.LOG_READ, actor=request.user, subject=subject)

    @admin.display(description=pgettext_lazy("audit", "Subject"))
    def shortened(self, entry: AuditEntry) -> str:
        return in_english(Truncator(entry.subject).chars(SUBJECT_SHOWN))

    @admin.display(description=pgettext_lazy("audit", "Subject"))
    def whole(self, entry: AuditEntry) -> str:
        return in_english(entry.subject)


def in_english(words: str) -> str:
    """Mark words of the audit log as English, whatever the language of the page."""
    return format_html('<span lang="en">{}</span>', words)
