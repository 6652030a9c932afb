"""Conversations in the admin: to look at with the right to, never to edit."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from chatsite.accounts.read_only_admin import ReadOnly

from .models import Conversation, Message


class MessageInline(ReadOnly, admin.TabularInline):  # type: ignore[type-arg]
    """The questions and answers of one conversation."""

    model = Message
    fields = readonly_fields = (
        "position", "role", "agent_name", "imported", "content", "state", "error_code", "request_id",
        "created_at",
    )  # fmt: skip
    extra = 0


@admin.register(Conversation)
class ConversationAdmin(ReadOnly, admin.ModelAdmin):  # type: ignore[type-arg]
    """A person's conversations. Only a superuser deletes one, with all that belongs to it."""

    list_display = ["title_shown", "owner", "mode", "created_at", "updated_at", "deleted_at"]
    list_filter = ["mode", ("deleted_at", admin.EmptyFieldListFilter)]
    list_select_related = ["owner"]
    search_fields = ["title", "owner__username"]
    date_hierarchy = "updated_at"
    inlines = [MessageInline]
    fields = readonly_fields = ("id", "owner", "title", "mode", "created_at", "updated_at", "deleted_at")

    @admin.display(description="title", ordering="title")
    def title_shown(self, conversation: Conversation) -> str:
        return str(conversation)

    def has_delete_permission(self, request: HttpRequest, *args: Any) -> bool:
        return bool(request.user.is_active and request.user.is_superuser)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Runs are read-only for themselves, but go with their conversation."""
        objects, counts, _, protected = super().get_deleted_objects(objs, request)
        return objects, counts, set(), protected
