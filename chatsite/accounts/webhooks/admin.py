"""Webhooks and their deliveries in the admin."""

from typing import Any

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext, gettext_lazy

from chatsite.accounts.admin_base.audited_admin import user_of
from chatsite.accounts.admin_base.read_only_admin import ReadOnly
from chatsite.accounts.audit import record
from chatsite.accounts.models import (
    AuditEntry,
    WebhookDelivery,
    WebhookEndpoint,
)

from . import replay

DELIVERIES_SHOWN = 50
SWITCHED_OFF = "It was disabled by an administrator."


class DeliveryInline(ReadOnly, admin.TabularInline):  # type: ignore[type-arg]
    """The newest deliveries of a webhook."""

    model = WebhookDelivery
    fields = ("created_at", "event", "state", "attempts", "status_code", "detail", "next_at")
    readonly_fields = (*fields,)
    extra = 0
    can_delete = False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("accounts.view_webhookendpoint")

    def get_formset(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        formset = super().get_formset(request, obj, **kwargs)
        newest = WebhookDelivery.objects.filter(endpoint=obj).values("pk")[:DELIVERIES_SHOWN]

        class Newest(formset):  # type: ignore[misc, valid-type]
            def get_queryset(self) -> QuerySet[WebhookDelivery]:
                return WebhookDelivery.objects.filter(pk__in=list(newest.values_list("pk", flat=True)))

        return Newest


@admin.register(WebhookEndpoint)
class WebhookAdmin(ReadOnly, admin.ModelAdmin):  # type: ignore[type-arg]
    """Webhooks and their deliveries. Owners configure webhooks through the API.

    Staff can disable webhooks, and send failed deliveries again.
    """

    list_display = ["name", "owner", "host_name", "active", "failing_since", "created_at"]
    list_filter = ["active"]
    list_select_related = ["owner"]
    search_fields = ["name", "owner__username"]
    fields = (
        "name",
        "owner",
        "host_name",
        "events",
        "active",
        "reason",
        "failing_since",
        "paused_until",
        "created_at",
    )
    readonly_fields = (*fields,)
    inlines = [DeliveryInline]
    actions = ["switch_off", "send_again"]

    @admin.display(description=gettext_lazy("host"))
    def host_name(self, endpoint: WebhookEndpoint) -> str:
        return endpoint.host

    def has_switch_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("accounts.change_webhookendpoint")

    @admin.action(description=gettext_lazy("Switch off"), permissions=["switch"])
    def switch_off(self, request: HttpRequest, queryset: QuerySet[WebhookEndpoint]) -> None:
        actor = user_of(request)
        with transaction.atomic():
            for endpoint in queryset.select_related("owner").filter(active=True):
                endpoint.active, endpoint.reason = False, SWITCHED_OFF
                endpoint.save(update_fields=["active", "reason"])
                subject = f"Disabled webhook {endpoint.pk}"
                record(AuditEntry.Action.WEBHOOK_CHANGED, actor=actor, person=endpoint.owner, subject=subject)

    @admin.action(description=gettext_lazy("Send failed deliveries again"), permissions=["switch"])
    def send_again(self, request: HttpRequest, queryset: QuerySet[WebhookEndpoint]) -> None:
        given_up = WebhookDelivery.objects.filter(
            endpoint__in=queryset, endpoint__active=True, state=WebhookDelivery.State.FAILED
        )
        messages.success(request, gettext("Sent again: %(count)s.") % {"count": replay(given_up)})
