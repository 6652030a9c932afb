"""One attempt to deliver a message: content, result, and time of the next attempt."""

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
from django.db.models import Count, Q
from django.utils import timezone

from chatsite.accounts.models import ApiKey, WebhookDelivery, WebhookEndpoint

from . import TEST, data_for, secrets
from .addresses import Forbidden, resolve

logger = logging.getLogger(__name__)

SECONDS = 10.0  # per attempt, from name resolution to the end of the response head
# The pause after each failed attempt. A delivery that also fails after the last pause is given up.
RETRY_DELAYS = tuple(
    timedelta(seconds=seconds) for seconds in (5, 30, 120, 600, 1_800, 7_200, 14_400, 28_800, 43_200, 86_400)
)
JITTER = 0.2
# The shortest and the longest pause of an endpoint that does not respond.
MIN_PAUSE, MAX_PAUSE = timedelta(seconds=30), timedelta(minutes=5)
# A claimed delivery without a result is due again after this time: its worker has probably died.
LEASE = timedelta(seconds=3 * SECONDS)
OFF_AFTER = timedelta(days=3)  # an endpoint that has failed for this long, without a success, is disabled
RETENTION = timedelta(days=30)
MAX_WAITING = 50_000  # waiting deliveries of one endpoint; beyond that, the oldest are given up
State = WebhookDelivery.State


@dataclass(frozen=True, slots=True)
class Attempt:
    """A message and its destination."""

    delivery: WebhookDelivery
    url: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Result:
    """The result of an attempt: the status, if any, and the reason for a failure."""

    status: int | None
    detail: str

    @property
    def delivered(self) -> bool:
        return self.status is not None and HTTPStatus.OK <= self.status < HTTPStatus.MULTIPLE_CHOICES


def take(endpoint_id: UUID) -> Attempt | None:
    """Claim the next due attempt of an endpoint; None if there is none.

    Deliveries that may no longer be sent are given up, or deleted if the owner may no longer see the data.
    """
    while (delivery := _take(endpoint_id)) is not None:
        try:
            attempt = _prepare(delivery)
        except Exception:
            logger.exception("A webhook could not be prepared", extra={"webhook": str(endpoint_id)})
            attempt = None
            with transaction.atomic():
                _put_off(delivery, "The site could not create the message.")
                delivery.save()
        if attempt is not None:
            return attempt
    return None


@transaction.atomic
def _take(endpoint_id: UUID) -> WebhookDelivery | None:
    now = timezone.now()
    rows = WebhookDelivery.objects.select_for_update(skip_locked=True, of=("self",))
    due = rows.filter(endpoint=endpoint_id, state=State.WAITING, next_at__lte=now)
    not_paused = Q(endpoint__paused_until=None) | Q(endpoint__paused_until__lte=now)
    delivery = due.filter(not_paused).select_related("endpoint__owner").order_by("next_at").first()
    if delivery is not None:
        delivery.next_at = now + LEASE
        delivery.save(update_fields=["next_at"])
    return delivery


def delete_old() -> None:
    """Delete old deliveries, except those that are still waiting."""
    old = WebhookDelivery.objects.filter(created_at__lt=timezone.now() - RETENTION)
    old.exclude(state=State.WAITING).delete()


def give_up_oldest() -> None:
    """Give up the oldest deliveries of endpoints for which more than MAX_WAITING wait."""
    waiting = WebhookDelivery.objects.filter(state=State.WAITING)
    counted = waiting.order_by().values("endpoint").annotate(number=Count("pk"))
    for row in counted.filter(number__gt=MAX_WAITING):
        newest_first = waiting.filter(endpoint=row["endpoint"]).order_by("-created_at", "-pk")
        # In steps, so that storing another attempt's result waits for one step at most.
        while beyond := list(newest_first.values_list("pk", flat=True)[MAX_WAITING : MAX_WAITING + 1_000]):
            waiting.filter(pk__in=beyond).update(
                state=State.FAILED,
                next_at=None,
                attempted_at=timezone.now(),
                detail=f"More than {MAX_WAITING:,} messages were waiting: the oldest are given up.",
            )


def _prepare(delivery: WebhookDelivery) -> Attempt | None:
    endpoint = delivery.endpoint
    if not endpoint.active or not endpoint.owner.is_active:
        _give_up(delivery, "The webhook is switched off, or its owner's account is disabled.")
        return None
    if endpoint.api_key_id and not ApiKey.objects.usable().filter(pk=endpoint.api_key_id).exists():
        _give_up(delivery, "The key with which the webhook was last changed is revoked or has expired.")
        return None
    data = data_for(endpoint.owner_id, delivery)
    if data is None:
        delivery.delete()  # even the list of deliveries must not reveal what the owner may not read
        return None
    now = timezone.now()
    payload = {
        "type": delivery.event,
        "timestamp": delivery.created_at.isoformat().replace("+00:00", "Z"),
        "data": data,
    }
    body = json.dumps(payload, separators=(",", ":")).encode()
    message_id, timestamp = f"msg_{delivery.pk.hex}", int(now.timestamp())
    try:
        keys = [secrets.decrypt(endpoint.secret)]
        if endpoint.former_secret_until and endpoint.former_secret_until > now:
            keys.append(secrets.decrypt(endpoint.former_secret))
    except secrets.Unreadable:
        _give_up(
            delivery,
            "The webhook's secret cannot be read, because the site's secret key was replaced. Create a new"
            " secret.",
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


async def send(attempt: Attempt) -> Result:
    """Resolve and check the host's IP address, and POST the message to exactly this address."""
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
                status = response.status_code
    except Forbidden as error:
        return Result(None, str(error))
    except TimeoutError:
        return Result(None, f"There was no response within {SECONDS:.0f} seconds.")
    except httpx2.TimeoutException:
        return Result(None, f"There was no response within {SECONDS:.0f} seconds.")
    except httpx2.HTTPError as error:
        if _is_of_certificate(error):
            return Result(None, "The server's certificate is not valid for its name.")
        return Result(None, f"The connection failed ({type(error).__name__}).")
    except (OSError, UnicodeError, httpx2.InvalidURL):
        return Result(None, "The server's name cannot be resolved, or nothing responds there.")
    except Exception as error:
        logger.exception("An unexpected error occurred while sending a webhook")
        return Result(None, f"The attempt failed ({type(error).__name__}).")
    if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        return Result(status, "")
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        return Result(status, f"The server responded with {status}: redirects are not followed.")
    return Result(status, f"The server responded with {status}.")


def _is_of_certificate(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False


@transaction.atomic
def store(attempt: Attempt, result: Result) -> None:
    """Store the result of an attempt, unless the delivery was deleted or given up meanwhile."""
    now = timezone.now()
    # Lock the endpoint before the delivery, as replays and deletions do.
    endpoints = WebhookEndpoint.objects.select_for_update(no_key=True)
    endpoint = endpoints.filter(pk=attempt.delivery.endpoint_id).first()
    waiting = WebhookDelivery.objects.select_for_update(no_key=True).filter(state=State.WAITING)
    delivery = waiting.filter(pk=attempt.delivery.pk).first()
    if delivery is None or endpoint is None:
        return
    delivery.status_code = result.status
    if result.delivered:
        delivery.attempts += 1
        delivery.attempted_at, delivery.detail = now, ""
        delivery.state, delivery.next_at = State.DELIVERED, None
        endpoint.failing_since = endpoint.paused_until = None
    else:
        logger.warning("A webhook was not delivered: %s", result.detail, extra={"webhook": str(endpoint.pk)})
        _put_off(delivery, result.detail)
        endpoint.failing_since = endpoint.failing_since or now
        if result.status is None:  # no response: pause it
            endpoint.paused_until = now + min(MAX_PAUSE, max(MIN_PAUSE, now - endpoint.failing_since))
        if result.status == HTTPStatus.GONE:
            endpoint.active, endpoint.reason = (
                False,
                "The server responded with 410: it wants no more events.",
            )
        elif now - endpoint.failing_since >= OFF_AFTER:
            endpoint.active = False
            endpoint.reason = f"Nothing was delivered for {OFF_AFTER.days} days. Last: {result.detail}"[:200]
    delivery.save()
    endpoint.save(update_fields=["failing_since", "paused_until", "active", "reason"])


def _put_off(delivery: WebhookDelivery, detail: str) -> None:
    """Schedule the next attempt, or give up if it was a test or the last attempt."""
    now = timezone.now()
    delivery.attempts += 1
    delivery.attempted_at, delivery.detail = now, detail[:200]
    if delivery.event == TEST or delivery.attempts > len(RETRY_DELAYS):
        delivery.state, delivery.next_at = State.FAILED, None
    else:
        wait = RETRY_DELAYS[delivery.attempts - 1] * random.uniform(1, 1 + JITTER)  # noqa: S311 (no secret)
        delivery.next_at = now + wait


def _give_up(delivery: WebhookDelivery, detail: str) -> None:
    waiting = WebhookDelivery.objects.filter(pk=delivery.pk, state=State.WAITING)
    waiting.update(state=State.FAILED, next_at=None, detail=detail, attempted_at=timezone.now())
