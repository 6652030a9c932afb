"""Sends deliveries: an attempt, its result in words, and when the next one is."""

import asyncio
import json
import logging
import random
import ssl
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from ipaddress import IPv6Address
from urllib.parse import urlsplit
from uuid import UUID

import httpx2
from django.db import transaction
from django.db.models.functions import Coalesce
from django.utils import timezone
from procrastinate.contrib.django.models import ProcrastinateJob

from chatsite.accounts.models import ApiKey, WebhookDelivery, WebhookEndpoint

from . import TASK, TEST, data_for, defer, secrets
from .addresses import Forbidden, resolve

logger = logging.getLogger(__name__)

SECONDS = 10.0  # of an attempt, from looking up the name to the last byte of the response's head
# After each failure; then the delivery is given up.
WAITS = tuple(
    timedelta(seconds=seconds) for seconds in (5, 30, 120, 600, 1_800, 7_200, 14_400, 28_800, 43_200, 86_400)
)
JITTER = 0.2
# Of an endpoint that does not answer: so it takes no worker's time from others for long.
MIN_PAUSE, MAX_PAUSE = timedelta(seconds=30), timedelta(minutes=5)
LOST_AFTER = timedelta(minutes=10)
OFF_AFTER = timedelta(days=3)  # without a success
KEPT = timedelta(days=30)
State = WebhookDelivery.State


@dataclass(frozen=True, slots=True)
class Attempt:
    """What is sent where."""

    delivery: WebhookDelivery
    url: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Result:
    """How an attempt ended: a status, or in words why there is none."""

    status: int | None
    detail: str

    @property
    def delivered(self) -> bool:
        return self.status is not None and HTTPStatus.OK <= self.status < HTTPStatus.MULTIPLE_CHOICES


def deliver(delivery_id: UUID) -> None:
    """Make one attempt at a delivery that waits, and queue the next one if it fails."""
    attempt = _prepare(delivery_id)
    if attempt is not None:
        _store(attempt.delivery, asyncio.run(_send(attempt)))


def replay(delivery: WebhookDelivery) -> None:
    """Send a delivery once more, with the id that it had: a receiver that knows it already may ignore it."""
    with transaction.atomic():
        rows = WebhookDelivery.objects.filter(pk=delivery.pk).exclude(state=State.WAITING)
        if rows.update(state=State.WAITING, attempts=0, next_at=None):
            defer(delivery.pk)


def queue_lost() -> int:
    """Queue waiting deliveries that no job is for; how many there were."""
    due = WebhookDelivery.objects.filter(state=State.WAITING).annotate(due=Coalesce("next_at", "created_at"))
    late = set(due.filter(due__lt=timezone.now() - LOST_AFTER).values_list("pk", flat=True))
    if not late:
        return 0
    jobs = ProcrastinateJob.objects.filter(task_name=TASK, status__in=["todo", "doing"])
    lost = late - {UUID(arguments["delivery_id"]) for arguments in jobs.values_list("args", flat=True)}
    for delivery_id in lost:
        defer(delivery_id)
    return len(lost)


def delete_old() -> None:
    """Delete deliveries whose time is over."""
    old = WebhookDelivery.objects.filter(created_at__lt=timezone.now() - KEPT)
    old.exclude(state=State.WAITING).delete()


def _prepare(delivery_id: UUID) -> Attempt | None:
    rows = WebhookDelivery.objects.select_related("endpoint__owner")
    delivery = rows.filter(pk=delivery_id, state=State.WAITING).first()
    if delivery is None:  # replayed, or gone with its endpoint
        return None
    endpoint = delivery.endpoint
    if not endpoint.active or not endpoint.owner.is_active:
        _give_up(delivery, "The webhook is switched off, or its owner's account is.")
        return None
    if endpoint.api_key_id and not ApiKey.objects.usable().filter(pk=endpoint.api_key_id).exists():
        _give_up(delivery, "The key by which the webhook was last changed is revoked or has expired.")
        return None
    if endpoint.paused_until and endpoint.paused_until > timezone.now():
        at = endpoint.paused_until + timedelta(seconds=random.uniform(0, 5))  # noqa: S311 (no secret)
        WebhookDelivery.objects.filter(pk=delivery.pk).update(next_at=at)
        defer(delivery.pk, at)
        return None
    data = data_for(endpoint.owner_id, delivery)
    if data is None:
        delivery.delete()  # not even the log tells the owner of what they may not read
        return None
    now = timezone.now()
    told = {"type": delivery.event, "timestamp": delivery.created_at.isoformat(), "data": data}
    body = json.dumps(told, separators=(",", ":")).encode()
    message_id, timestamp = f"msg_{delivery.pk.hex}", int(now.timestamp())
    try:
        keys = [secrets.decrypt(endpoint.secret)]
        if endpoint.former_secret_until and endpoint.former_secret_until > now:
            keys.append(secrets.decrypt(endpoint.former_secret))
    except secrets.Unreadable:
        _give_up(
            delivery, "Its secret cannot be read: the site's secret key was replaced. Give it a new one."
        )
        return None
    signatures = [secrets.signature(key, message_id, timestamp, body) for key in keys]
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "chatsite-webhooks",
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signatures),
    }
    return Attempt(delivery, endpoint.url, headers, body)


async def _send(attempt: Attempt) -> Result:
    """POST to an address that was checked, and to that one alone, whatever its name leads to meanwhile."""
    parts = urlsplit(attempt.url)
    encrypted = parts.scheme == "https"
    port = parts.port or (443 if encrypted else 80)
    host = parts.hostname or ""
    try:
        async with asyncio.timeout(SECONDS):
            address = await resolve(host, port, encrypted=encrypted)
            literal = f"[{address}]" if isinstance(address, IPv6Address) else str(address)
            url = httpx2.URL(attempt.url).copy_with(host=literal.strip("[]"), port=port)
            named = parts.netloc
            async with (
                httpx2.AsyncClient(timeout=SECONDS, follow_redirects=False, trust_env=False) as client,
                client.stream(
                    "POST",
                    url,
                    content=attempt.body,
                    headers={**attempt.headers, "Host": named},
                    extensions={"sni_hostname": host},
                ) as response,
            ):
                return _in_words(response.status_code)
    except Forbidden as error:
        return Result(None, str(error))
    except TimeoutError:
        return Result(None, f"There was no response within {SECONDS:.0f} seconds.")
    except httpx2.TimeoutException:
        return Result(None, f"There was no response within {SECONDS:.0f} seconds.")
    except httpx2.HTTPError as error:
        if _is_of_certificate(error):
            return Result(None, "Its certificate is not valid for its name.")
        return Result(None, f"The connection failed ({type(error).__name__}).")
    except (OSError, UnicodeError, httpx2.InvalidURL):
        return Result(None, "Its name cannot be looked up, or nothing answers there.")


def _in_words(status: int) -> Result:
    if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        return Result(status, "")
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        return Result(status, f"It answered {status}: redirects are not followed.")
    return Result(status, f"It answered {status}.")


def _is_of_certificate(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False


@transaction.atomic
def _store(delivery: WebhookDelivery, result: Result) -> None:
    now = timezone.now()
    locked = WebhookDelivery.objects.select_for_update().filter(pk=delivery.pk, state=State.WAITING).first()
    endpoint = WebhookEndpoint.objects.select_for_update().filter(pk=delivery.endpoint_id).first()
    if locked is None or endpoint is None:
        return
    locked.attempts += 1
    locked.attempted_at, locked.status_code, locked.detail = now, result.status, result.detail[:200]
    locked.next_at = None
    if result.delivered:
        locked.state = State.DELIVERED
        endpoint.failing_since = endpoint.paused_until = None
    elif locked.event == TEST or locked.attempts > len(WAITS):
        locked.state = State.FAILED
    else:
        wait = WAITS[locked.attempts - 1] * random.uniform(1, 1 + JITTER)  # noqa: S311 (no secret)
        locked.next_at = now + wait
    if not result.delivered:
        logger.warning("A webhook was not delivered: %s", result.detail, extra={"webhook": str(endpoint.pk)})
        endpoint.failing_since = endpoint.failing_since or now
        if result.status is None:
            endpoint.paused_until = now + min(MAX_PAUSE, max(MIN_PAUSE, now - endpoint.failing_since))
        if result.status == HTTPStatus.GONE:
            endpoint.active, endpoint.reason = False, "It answered 410: it wants no more events."
        elif now - endpoint.failing_since >= OFF_AFTER:
            endpoint.active = False
            endpoint.reason = f"Nothing was delivered for {OFF_AFTER.days} days. Last: {result.detail}"[:200]
    if not endpoint.active and locked.state == State.WAITING:
        locked.state, locked.next_at = State.FAILED, None
    locked.save()
    endpoint.save(update_fields=["failing_since", "paused_until", "active", "reason"])
    if locked.next_at:
        defer(locked.pk, locked.next_at)


def _give_up(delivery: WebhookDelivery, detail: str) -> None:
    waiting = WebhookDelivery.objects.filter(pk=delivery.pk, state=State.WAITING)
    waiting.update(state=State.FAILED, next_at=None, detail=detail, attempted_at=timezone.now())
