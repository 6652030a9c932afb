"""`/api/webhooks`: the caller's webhooks, their secrets, and their deliveries."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema, extend_schema_field
from rest_framework import exceptions, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from chatsite.accounts.api.resource_views import ResourceView, id_of
from chatsite.accounts.api_keys import Scope
from chatsite.accounts.audit import record
from chatsite.accounts.models import AuditEntry, User, WebhookDelivery, WebhookEndpoint
from chatsite.http.strict_fields import (
    BoundedListField,
    StrictBooleanField,
    StrictCharField,
    StrictChoiceField,
    StrictSerializer,
)

from . import MAX_MANUAL_DELIVERIES, TooManyManualDeliveries, enqueue_test, replay_one, secrets
from .addresses import MAX_URL_CHARACTERS, Forbidden, check_url

MAX_ENDPOINTS = 10  # of one person
MAX_LISTED = 200  # newest deliveries
FORMER_SECRET_VALID = timedelta(days=1)
ENDPOINT_ID = OpenApiParameter("webhook_id", UUID, OpenApiParameter.PATH, description="The id of a webhook.")
DELIVERY_ID = OpenApiParameter(
    "delivery_id", UUID, OpenApiParameter.PATH, description="The id of a delivery."
)
TOO_MANY_MANUAL_DELIVERIES = OpenApiResponse(
    description=(
        f"{MAX_MANUAL_DELIVERIES} tests and replays wait or were just sent. Try again after Retry-After."
    )
)
MISSING = OpenApiResponse(description="The webhook or delivery does not exist, or belongs to somebody else.")


@extend_schema_field(
    {
        "type": "string",
        "maxLength": MAX_URL_CHARACTERS,
        "pattern": "^https://[a-z][a-z0-9]{0,30}([.-][a-z][a-z0-9]{0,30}){0,5}(:[1-9][0-9]{0,3})?(/[!-~]*)?$",
    }
)
class EndpointAddressField(StrictCharField):
    """The URL for events."""


class EndpointFieldsSerializer(StrictSerializer):
    """The settings of a webhook."""

    name = StrictCharField(
        max_length=100, required=False, allow_blank=True, help_text="A name for people to recognise."
    )
    url = EndpointAddressField(
        max_length=MAX_URL_CHARACTERS, help_text="An https URL outside of the site's own network."
    )
    events = BoundedListField(
        child=StrictChoiceField(WebhookEndpoint.Event.choices),
        min_length=1,
        max_length=len(WebhookEndpoint.Event),
        help_text="The event types to subscribe to.",
    )
    active = StrictBooleanField(
        required=False, help_text="Whether events are sent; true switches it on again."
    )

    def validate_url(self, url: str) -> str:
        try:
            check_url(url)
        except Forbidden as error:
            raise serializers.ValidationError(str(error)) from None
        return url

    def validate_events(self, events: list[str]) -> list[str]:
        return [event for event in WebhookEndpoint.Event.values if event in events]


class EndpointChangesSerializer(EndpointFieldsSerializer):
    """The settings of a webhook in a change; missing members keep their values."""

    url = EndpointAddressField(max_length=MAX_URL_CHARACTERS, required=False)
    events = BoundedListField(
        child=StrictChoiceField(WebhookEndpoint.Event.choices),
        required=False,
        min_length=1,
        max_length=len(WebhookEndpoint.Event),
    )


class EndpointSerializer(serializers.ModelSerializer[WebhookEndpoint]):
    """A webhook as its owner sees it."""

    reason = serializers.CharField(allow_blank=True, help_text="Why the site disabled it; otherwise empty.")
    failing_since = serializers.DateTimeField(
        allow_null=True, help_text="The first failure since the last success; null if there is none."
    )

    class Meta:
        model = WebhookEndpoint
        fields = ["id", "name", "url", "events", "active", "reason", "failing_since", "created_at"]


class EndpointWithSecretSerializer(EndpointSerializer):
    """A webhook with its secret, only in the response that creates the secret."""

    secret = serializers.CharField(
        source="new_secret",
        help_text="The secret with which events are signed; begins with whsec_. Shown only once.",
    )

    class Meta(EndpointSerializer.Meta):
        fields = [*EndpointSerializer.Meta.fields, "secret"]


class DeliverySerializer(serializers.ModelSerializer[WebhookDelivery]):
    """A sent or queued event."""

    message_id = serializers.SerializerMethodField(help_text="The value of the header `webhook-id`.")
    data = serializers.JSONField(help_text="The ids of the objects that the event is about.")  # type: ignore[assignment]
    status_code = serializers.IntegerField(
        allow_null=True, help_text="The status of the last attempt's response, if any."
    )
    detail = serializers.CharField(
        allow_blank=True, help_text="The result of the last attempt, as a sentence."
    )

    class Meta:
        model = WebhookDelivery
        fields = [
            "id", "message_id", "event", "data", "state", "attempts", "status_code", "detail",
            "created_at", "attempted_at", "next_at",
        ]  # fmt: skip

    def get_message_id(self, delivery: WebhookDelivery) -> str:
        return f"msg_{delivery.pk.hex}"


class TooMany(exceptions.APIException):
    """The caller has reached the limit of webhooks."""

    status_code = status.HTTP_409_CONFLICT


class TooManyWaiting(exceptions.APIException):
    """The permitted number of tests and replays of a webhook are waiting or were just sent."""

    status_code = status.HTTP_429_TOO_MANY_REQUESTS

    def __init__(self) -> None:
        super().__init__(
            gettext(
                "%(most)d tests and repetitions for this webhook are waiting or were just sent: try "
                "again later."
            )
            % {"most": MAX_MANUAL_DELIVERIES}
        )


class _View(ResourceView):
    required_scopes = (Scope.WEBHOOKS,)
    serializer_class: Any = EndpointSerializer
    not_found = (WebhookEndpoint.DoesNotExist, WebhookDelivery.DoesNotExist)
    api_tag = "Webhooks"

    def endpoint(self, webhook_id: str, *, to_change: bool = False) -> WebhookEndpoint:
        """The caller's webhook; `to_change` locks it until the transaction ends."""
        rows = WebhookEndpoint.objects.select_for_update() if to_change else WebhookEndpoint.objects.all()
        return rows.get(pk=id_of(webhook_id), owner=self.principal.user_id)

    def key_id(self) -> int | None:
        """The id of the request's API key: a webhook stops when that key expires or is revoked."""
        return int(self.principal.credential) if self.principal.method == "api_key" else None

    def note(self, what: str, endpoint: WebhookEndpoint) -> None:
        owner = User.objects.get(pk=self.principal.user_id)
        subject = f"{what} webhook {endpoint.pk} to {endpoint.host}"
        record(AuditEntry.Action.WEBHOOK_CHANGED, actor=owner, person=owner, subject=subject)


class WebhooksView(_View):
    """Lists and creates the caller's webhooks."""

    @extend_schema(summary="The caller's webhooks, newest first", responses=EndpointSerializer(many=True))
    def get(self, request: Request) -> Response:
        mine = WebhookEndpoint.objects.filter(owner=self.principal.user_id)
        return Response(EndpointSerializer(mine, many=True).data)

    @extend_schema(
        summary="Create a webhook",
        request=EndpointFieldsSerializer,
        responses={
            201: EndpointWithSecretSerializer,
            409: OpenApiResponse(description="The caller has reached the limit of webhooks."),
        },
    )
    def post(self, request: Request) -> Response:
        asked = EndpointFieldsSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        secret = secrets.new_secret()
        with transaction.atomic():
            User.objects.select_for_update(no_key=True).get(
                pk=self.principal.user_id
            )  # concurrent requests are serialized
            if WebhookEndpoint.objects.filter(owner=self.principal.user_id).count() >= MAX_ENDPOINTS:
                raise TooMany(
                    gettext("You have %(most)d webhooks already: delete one.") % {"most": MAX_ENDPOINTS}
                )
            endpoint = WebhookEndpoint.objects.create(
                owner_id=self.principal.user_id,
                api_key_id=self.key_id(),
                secret=secrets.encrypt(secret),
                **asked.validated_data,
            )
            self.note("Made", endpoint)
        endpoint.new_secret = secret  # type: ignore[attr-defined]
        return Response(EndpointWithSecretSerializer(endpoint).data, status=status.HTTP_201_CREATED)


class WebhookView(_View):
    """One of the caller's webhooks."""

    @extend_schema(
        summary="A webhook", parameters=[ENDPOINT_ID], responses={200: EndpointSerializer, 404: MISSING}
    )
    def get(self, request: Request, webhook_id: str) -> Response:
        return Response(EndpointSerializer(self.endpoint(webhook_id)).data)

    @extend_schema(
        summary="Change a webhook; missing members are kept",
        parameters=[ENDPOINT_ID],
        request=EndpointChangesSerializer,
        responses={200: EndpointSerializer, 404: MISSING},
    )
    def patch(self, request: Request, webhook_id: str) -> Response:
        self.endpoint(webhook_id)
        asked = EndpointChangesSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        changes: dict[str, Any] = {**asked.validated_data, "api_key_id": self.key_id()}
        if changes.get("active"):
            changes |= {"reason": "", "failing_since": None, "paused_until": None}
        with transaction.atomic():
            endpoint = self.endpoint(webhook_id, to_change=True)
            for name, value in changes.items():
                setattr(endpoint, name, value)
            endpoint.save(update_fields=changes)
            self.note("Changed", endpoint)
        return Response(EndpointSerializer(endpoint).data)

    @extend_schema(
        summary="Delete a webhook with its deliveries",
        parameters=[ENDPOINT_ID],
        responses={204: None, 404: MISSING},
    )
    def delete(self, request: Request, webhook_id: str) -> Response:
        with transaction.atomic():
            endpoint = self.endpoint(webhook_id, to_change=True)
            self.note("Deleted", endpoint)
            endpoint.delete()
        return Response(status=status.HTTP_204_NO_CONTENT)


class WebhookSecretView(_View):
    """Replaces the secret of a webhook."""

    @extend_schema(
        summary="Replace the secret; the former one also signs for a day",
        parameters=[ENDPOINT_ID],
        request=None,
        responses={200: EndpointWithSecretSerializer, 404: MISSING},
    )
    def post(self, request: Request, webhook_id: str) -> Response:
        secret = secrets.new_secret()
        with transaction.atomic():
            endpoint = self.endpoint(webhook_id, to_change=True)
            endpoint.former_secret, endpoint.secret = endpoint.secret, secrets.encrypt(secret)
            endpoint.former_secret_until = timezone.now() + FORMER_SECRET_VALID
            endpoint.save(update_fields=["former_secret", "secret", "former_secret_until"])
            self.note("Replaced the secret of", endpoint)
        endpoint.new_secret = secret  # type: ignore[attr-defined]
        return Response(EndpointWithSecretSerializer(endpoint).data)


class WebhookTestView(_View):
    """Sends a test event, whose only data is the id of the webhook."""

    @extend_schema(
        summary="Send an event of the type webhook.test, once",
        parameters=[ENDPOINT_ID],
        request=None,
        responses={202: DeliverySerializer, 404: MISSING, 429: TOO_MANY_MANUAL_DELIVERIES},
    )
    def post(self, request: Request, webhook_id: str) -> Response:
        try:
            delivery = enqueue_test(self.endpoint(webhook_id))
        except TooManyManualDeliveries:
            raise TooManyWaiting from None
        return Response(DeliverySerializer(delivery).data, status=status.HTTP_202_ACCEPTED)


class WebhookDeliveriesView(_View):
    """The deliveries of a webhook."""

    @extend_schema(
        summary=f"The newest {MAX_LISTED} deliveries of the last 30 days",
        parameters=[ENDPOINT_ID],
        responses={200: DeliverySerializer(many=True), 404: MISSING},
    )
    def get(self, request: Request, webhook_id: str) -> Response:
        rows = self.endpoint(webhook_id).deliveries.all()[:MAX_LISTED]
        return Response(DeliverySerializer(rows, many=True).data)


class WebhookReplayView(_View):
    """Sends a delivery again."""

    @extend_schema(
        summary="Send a delivery again, under the same id",
        parameters=[ENDPOINT_ID, DELIVERY_ID],
        request=None,
        responses={202: DeliverySerializer, 404: MISSING, 429: TOO_MANY_MANUAL_DELIVERIES},
    )
    def post(self, request: Request, webhook_id: str, delivery_id: str) -> Response:
        endpoint = self.endpoint(webhook_id)
        delivery = endpoint.deliveries.get(pk=id_of(delivery_id))
        try:
            replay_one(delivery)
        except TooManyManualDeliveries:
            raise TooManyWaiting from None
        delivery.refresh_from_db()
        return Response(DeliverySerializer(delivery).data, status=status.HTTP_202_ACCEPTED)
