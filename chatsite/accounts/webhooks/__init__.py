"""Webhooks: programs hear of events as Standard Webhooks (https://www.standardwebhooks.com).

An event is written in the transaction of what it tells, with the time at which it is due: nothing is lost,
and nothing is told that did not happen. It holds ids; what is sent is looked up when a worker sends it
(`dispatching`), under the rights that the owner of the endpoint has then.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from chatsite.accounts.models import WebhookDelivery, WebhookEndpoint

Event = WebhookEndpoint.Event
Data = dict[str, Any]
TEST = "webhook.test"

# By the first word of the event: what is sent to this person now, or None where they may not hear of it.
Lookup = Callable[[int, WebhookDelivery], Data | None]
_lookups: dict[str, Lookup] = {}


def register(subject: str, lookup: Lookup) -> None:
    """Have `lookup` complete the data of events of `subject.…` for the owner of an endpoint."""
    _lookups[subject] = lookup


def data_for(owner_id: int, delivery: WebhookDelivery) -> Data | None:
    """What is sent; None if the owner may not hear of it any more."""
    if delivery.event == TEST:
        return dict(delivery.data)
    return _lookups[delivery.event.partition(".")[0]](owner_id, delivery)


def announce(event: Event, listeners: Callable[[Collection[int]], Mapping[int, Data]]) -> None:
    """Write an event down for the endpoints whose owners may hear of it; call it in its transaction.

    `listeners` gets the ids of the owners of all endpoints that want such events, and returns what those hear
    who may; it is not called where there are none.
    """
    endpoints = list(WebhookEndpoint.objects.listening(event))
    if not endpoints:
        return
    recipients = listeners({endpoint.owner_id for endpoint in endpoints})
    for endpoint in endpoints:
        if endpoint.owner_id in recipients:
            write_down(endpoint, event, recipients[endpoint.owner_id])


def announce_to(owner_id: int, event: Event, data: Data) -> None:
    """The same for what concerns one person alone."""
    for endpoint in WebhookEndpoint.objects.listening(event).filter(owner=owner_id):
        write_down(endpoint, event, data)


def write_down(endpoint: WebhookEndpoint, event: str, data: Data) -> WebhookDelivery:
    """Have an event sent, as soon as the transaction has ended."""
    return WebhookDelivery.objects.create(endpoint=endpoint, event=event, data=data)


@transaction.atomic
def write_test(endpoint: WebhookEndpoint) -> WebhookDelivery:
    """Have an event sent that tells of nothing, even to an endpoint that is left alone for a while."""
    WebhookEndpoint.objects.filter(pk=endpoint.pk).update(paused_until=None)
    return write_down(endpoint, TEST, {"webhook_id": str(endpoint.pk)})


@transaction.atomic
def replay(deliveries: QuerySet[WebhookDelivery]) -> int:
    """Send again what was delivered or given up; how many there were.

    Each keeps its id: a receiver that knows it already may ignore it.
    """
    ended = deliveries.exclude(state=WebhookDelivery.State.WAITING)
    endpoints = WebhookEndpoint.objects.select_for_update(no_key=True).order_by("pk")
    for endpoint in endpoints.filter(pk__in=ended.values("endpoint")):
        WebhookEndpoint.objects.filter(pk=endpoint.pk).update(paused_until=None)
    return ended.update(state=WebhookDelivery.State.WAITING, attempts=0, next_at=timezone.now())
