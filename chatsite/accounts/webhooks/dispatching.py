"""Sends due messages while a worker runs.

Endpoints are served concurrently, so that a slow endpoint delays only its owner's messages. Each worker
sends the messages of one endpoint one after another, in the order in which they are due.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Mapping
from uuid import UUID

from django.db import Error as AnyDatabaseError
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from chatsite.accounts.models import WebhookDelivery, WebhookEndpoint
from chatsite.db.threads import in_database

from . import sending

logger = logging.getLogger(__name__)

POLL_SECONDS = 1.0
MAX_AT_ONCE = 32
MAX_OF_ONE_OWNER = 3
SERVING_SECONDS = 20.0  # time after which an endpoint waits again, so that others can be served


async def send_while_running() -> None:
    """Check every second for endpoints with due messages, and send them."""
    serving: dict[asyncio.Task[None], tuple[UUID, int]] = {}
    try:
        while True:
            serving = {task: endpoint for task, endpoint in serving.items() if not task.done()}
            try:
                due = await in_database(_endpoints_due, dict(serving.values()))
            except AnyDatabaseError:
                logger.warning("Due webhooks could not be looked up", exc_info=True)
                due = {}
            for endpoint_id, owner_id in due.items():
                serving[asyncio.create_task(_serve(endpoint_id))] = (endpoint_id, owner_id)
            await asyncio.sleep(POLL_SECONDS)
    finally:
        for task in serving:
            task.cancel()


def _endpoints_due(busy: Mapping[UUID, int]) -> dict[UUID, int]:
    """Endpoints to serve next, and their owners. Paused and `busy` endpoints are left out."""
    now = timezone.now()
    waiting = WebhookDelivery.objects.filter(state=WebhookDelivery.State.WAITING, next_at__lte=now)
    not_paused = Q(paused_until=None) | Q(paused_until__lte=now)
    rows = WebhookEndpoint.objects.filter(not_paused, Exists(waiting.filter(endpoint=OuterRef("pk"))))
    of_owner = Counter(busy.values())
    due: dict[UUID, int] = {}
    for endpoint_id, owner_id in rows.exclude(pk__in=busy).order_by("?").values_list("pk", "owner"):
        if len(busy) + len(due) >= MAX_AT_ONCE:
            break
        if of_owner[owner_id] < MAX_OF_ONE_OWNER:
            of_owner[owner_id] += 1
            due[endpoint_id] = owner_id
    return due


async def _serve(endpoint_id: UUID) -> None:
    """Send the due messages of one endpoint in order."""
    end = time.monotonic() + SERVING_SECONDS
    try:
        while time.monotonic() < end:
            attempt = await in_database(sending.take, endpoint_id)
            if attempt is None:
                break
            await in_database(sending.store, attempt, await sending.send(attempt))
    except Exception:
        logger.exception("Sending webhooks was interrupted", extra={"webhook": str(endpoint_id)})
