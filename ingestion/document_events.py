"""Webhook events of documents, for people who may read them.

Their rights are checked when an event is stored and, except for deletions, again at delivery. People who lost
access also get the event that says so.
"""

from collections.abc import Collection, Mapping
from typing import Any
from uuid import UUID

from django.db import connection

from chatsite.accounts import webhooks
from chatsite.accounts.models import WebhookDelivery
from chatsite.accounts.principal import Principal
from chatsite.db.threads import reading_as

from .models import Document, ExternalId

Event = webhooks.Event
READERS = """
    SELECT candidate FROM unnest(%s::bigint[]) AS candidate
    WHERE EXISTS (
        SELECT FROM ingestion_readable_entries(candidate) AS mine WHERE mine.access_list_id = ANY(%s)
    )
"""


def announce(event: webhooks.Event, document: Document, *lists: int) -> None:
    """Store an event for everyone on the document's access list, or on `lists`.

    Call this in the transaction of the change that the event reports.
    """

    def readers(candidates: Collection[int]) -> Mapping[int, webhooks.Data]:
        with connection.cursor() as cursor:
            cursor.execute(READERS, [list(candidates), list(lists or (document.access_list_id,))])
            found = [owner for (owner,) in cursor.fetchall()]
        ids = ExternalId.objects.filter(document=document, owner__in=found)
        names = dict(ids.values_list("owner", "external_id"))
        return {
            owner: {"document_id": str(document.public_id), "external_id": names.get(owner, "")}
            for owner in found
        }

    webhooks.announce(event, readers)


def announce_access(document: Document, *lists: int) -> None:
    """Notify the former and the current readers of a document and its parts about the change."""
    if webhooks.has_listeners(Event.ACCESS_CHANGED):
        for each in Document.objects.filter(pk=document.pk).with_parts():
            announce(Event.ACCESS_CHANGED, each, *lists)


def _document_now(owner_id: int, delivery: WebhookDelivery) -> webhooks.Data | None:
    """The document's current data; None if the webhook's owner may not read it now."""
    if delivery.event == Event.DOCUMENT_DELETED:  # its readers were looked up when it was deleted
        return dict(delivery.data)
    document = _readable(owner_id, delivery.data)
    if document is None:
        return None
    return {**delivery.data, "status": document.status, "version": document.version}


def _access_now(owner_id: int, delivery: WebhookDelivery) -> webhooks.Data | None:
    """Whether the webhook's owner may read the document now."""
    return {**delivery.data, "readable": _readable(owner_id, delivery.data) is not None}


def _readable(owner_id: int, data: Mapping[str, Any]) -> Document | None:
    principal = Principal(owner_id, "command")
    with reading_as(owner_id):
        return Document.objects.visible_to(principal).with_public_id(UUID(data["document_id"])).first()


webhooks.register("document", _document_now)
webhooks.register("access", _access_now)
