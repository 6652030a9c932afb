"""Webhooks: programs hear of events as Standard Webhooks (https://www.standardwebhooks.com).

An event is written in the transaction of what it tells, together with the job that sends it: nothing is lost,
and nothing is told that did not happen. It holds ids; what is sent is looked up when it is sent, under the
rights that the owner of the endpoint has then.
"""

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from procrastinate.contrib.django import app

from chatsite.accounts.models import WebhookDelivery, WebhookEndpoint

Event = WebhookEndpoint.Event
Data = dict[str, Any]
QUEUE = "webhooks"
SIDE_QUEUE = "side"  # of other work that waits for no document
TASK = "accounts.deliver_webhook"
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
    heard = listeners({endpoint.owner_id for endpoint in endpoints})
    for endpoint in endpoints:
        if endpoint.owner_id in heard:
            queue(endpoint, event, heard[endpoint.owner_id])


def announce_to(owner_id: int, event: Event, data: Data) -> None:
    """The same for what concerns one person alone."""
    for endpoint in WebhookEndpoint.objects.listening(event).filter(owner=owner_id):
        queue(endpoint, event, data)


def queue(endpoint: WebhookEndpoint, event: str, data: Data) -> WebhookDelivery:
    """Write a delivery down and have it sent."""
    with transaction.atomic():
        delivery = WebhookDelivery.objects.create(endpoint=endpoint, event=event, data=data)
        defer(delivery.pk)
    return delivery


def defer(delivery_id: UUID, at: datetime | None = None) -> None:
    """Queue an attempt."""
    # No lock of the endpoint: an attempt that is to come in an hour would hold back all that comes after it.
    app.configure_task(TASK, queue=QUEUE, schedule_at=at).defer(delivery_id=str(delivery_id))
