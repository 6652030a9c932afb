"""Webhooks: send events to programs as Standard Webhooks (https://www.standardwebhooks.com).

An event is stored in the transaction of the change that it reports: no event is lost, and none reports a
change that was rolled back. The stored event contains ids and states; a worker looks up any other data when
it sends the event (`sending`), with the endpoint owner's rights at that time.
"""

from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from chatsite.accounts.models import WebhookDelivery, WebhookEndpoint

Event = WebhookEndpoint.Event
Data = dict[str, Any]
TEST = "webhook.test"
# An endpoint may have this many tests and replays within MANUAL_PERIOD, and no more than this many waiting.
MAX_MANUAL_DELIVERIES = 20
MANUAL_PERIOD = timedelta(minutes=1)

# A Lookup returns an event's current data for the endpoint's owner (by id), or None if the owner may not see
# them. `_lookups` has one for each first part of an event's name, such as “document”.
Lookup = Callable[[int, WebhookDelivery], Data | None]
_lookups: dict[str, Lookup] = {}


def register(subject: str, lookup: Lookup) -> None:
    """Let `lookup` provide the data of events whose names begin with `subject` and a dot."""
    _lookups[subject] = lookup


def data_for(owner_id: int, delivery: WebhookDelivery) -> Data | None:
    """The data to send; None if the owner may no longer see it."""
    if delivery.event == TEST:
        return dict(delivery.data)
    return _lookups[delivery.event.partition(".")[0]](owner_id, delivery)


def announce(event: Event, listeners: Callable[[Collection[int]], Mapping[int, Data]]) -> None:
    """Store an event for the endpoints whose owners may see it, in the caller's transaction.

    `listeners` gets the ids of the owners of all subscribed endpoints, and returns the data for those who may
    see the event; it is not called if there are no endpoints.
    """
    endpoints = list(WebhookEndpoint.objects.listening(event))
    if not endpoints:
        return
    recipients = listeners({endpoint.owner_id for endpoint in endpoints})
    for endpoint in endpoints:
        if endpoint.owner_id in recipients:
            enqueue(endpoint, event, recipients[endpoint.owner_id])


def has_listeners(event: Event) -> bool:
    """Whether any endpoint listens to events of this type."""
    return WebhookEndpoint.objects.listening(event).exists()


def enqueue(endpoint: WebhookEndpoint, event: str, data: Data) -> WebhookDelivery:
    """Queue an event, to be sent by a worker after the transaction has committed."""
    return WebhookDelivery.objects.create(endpoint=endpoint, event=event, data=data)


class TooManyManualDeliveries(Exception):
    """Too many tests and replays of an endpoint were requested within a minute, or are waiting."""


@transaction.atomic
def enqueue_test(endpoint: WebhookEndpoint) -> WebhookDelivery:
    """Queue a test event, and end a pause of the endpoint. Raises TooManyManualDeliveries."""
    _count_manual_delivery(endpoint)
    WebhookEndpoint.objects.filter(pk=endpoint.pk).update(paused_until=None)
    return enqueue(endpoint, TEST, {"webhook_id": str(endpoint.pk)})


@transaction.atomic
def replay(deliveries: QuerySet[WebhookDelivery]) -> int:
    """Queue delivered or failed messages again, and return their number.

    Each message keeps its id, so that receivers can ignore repetitions. Pauses of the endpoints end.
    """
    ended = deliveries.exclude(state=WebhookDelivery.State.WAITING)
    endpoints = WebhookEndpoint.objects.select_for_update(no_key=True).order_by("pk")
    for endpoint in endpoints.filter(pk__in=ended.values("endpoint")):
        WebhookEndpoint.objects.filter(pk=endpoint.pk).update(paused_until=None)
    return ended.update(state=WebhookDelivery.State.WAITING, attempts=0, next_at=timezone.now())


@transaction.atomic
def replay_one(delivery: WebhookDelivery) -> None:
    """Queue one delivery again, at its owner's request, unless it is still waiting.

    Raises TooManyManualDeliveries.
    """
    if delivery.state != WebhookDelivery.State.WAITING:
        _count_manual_delivery(delivery.endpoint)
        replay(WebhookDelivery.objects.filter(pk=delivery.pk))


def _count_manual_delivery(endpoint: WebhookEndpoint) -> None:
    """Count one more test or replay.

    Locks the endpoint, so that concurrent requests are counted too. Recent requests count even if their
    messages were already sent; otherwise there would be no limit for receivers that respond at once.
    """
    locked = WebhookEndpoint.objects.select_for_update(no_key=True).get(pk=endpoint.pk)
    now = timezone.now()
    recent = [sent for sent in locked.sent_by_hand if sent > now - MANUAL_PERIOD]
    replayed = Q(attempts=0, attempted_at__isnull=False)  # a replay starts again with no attempts
    waiting = endpoint.deliveries.filter(Q(event=TEST) | replayed, state=WebhookDelivery.State.WAITING)
    if max(len(recent), waiting[:MAX_MANUAL_DELIVERIES].count()) >= MAX_MANUAL_DELIVERIES:
        raise TooManyManualDeliveries
    locked.sent_by_hand = [*recent, now]
    locked.save(update_fields=["sent_by_hand"])
