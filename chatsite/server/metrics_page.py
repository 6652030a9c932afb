"""`/metrics` for Prometheus.

Only callers with CHATSITE_METRICS_TOKEN, or from CHATSITE_METRICS_ADDRESSES, get it.
"""

import asyncio
import hmac
import time
from collections.abc import Sequence
from ipaddress import ip_address, ip_network
from pathlib import Path

from django.conf import settings
from django.db import Error as DatabaseError
from django.db import connection
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe

from chatsite import metrics
from chatsite.db.threads import in_database_within_budget
from chatsite.http.loopback import is_proxied

DATABASE_SECONDS = 2.0  # if the database takes longer, the page omits the metrics from it, except DATABASE_UP
JOBS = """
    SELECT coalesce(sum((status = 'todo')::int), 0), coalesce(sum((status = 'doing')::int), 0),
           coalesce(sum((status = 'failed')::int), 0)
    FROM procrastinate_jobs
"""
OLDEST_JOB = """
    SELECT coalesce(extract(epoch FROM now() - min(event.at)), 0)
    FROM procrastinate_jobs AS job JOIN procrastinate_events AS event ON event.job_id = job.id
    WHERE job.status = 'todo' AND event.type = 'deferred'
      AND (job.scheduled_at IS NULL OR job.scheduled_at <= now())
"""
# Paused endpoints do not count: their delay is not the site's fault.
WEBHOOKS = """
    SELECT count(*), coalesce(extract(epoch FROM now() - min(delivery.next_at)), 0)
    FROM accounts_webhookdelivery AS delivery JOIN accounts_webhookendpoint AS endpoint
        ON endpoint.id = delivery.endpoint_id
    WHERE delivery.state = 'waiting' AND delivery.next_at <= now()
      AND (endpoint.paused_until IS NULL OR endpoint.paused_until <= now())
"""
LEASES = """
    SELECT coalesce(sum((until >= now())::int), 0), coalesce(sum((until < now())::int), 0) FROM chat_lease
"""


def start(kind: str) -> metrics.Recorder | None:
    """Start writing this process's metrics; None if the settings allow nobody to read them."""
    if not settings.METRICS:
        return None
    recorder = metrics.Recorder(folder(), kind)
    recorder.start()
    return recorder


def folder() -> Path:
    """The folder in which the processes of this machine write their metrics."""
    path: Path = settings.DATA_DIR / "metrics"
    return path


@csrf_exempt
@require_safe
@never_cache
async def page(request: HttpRequest) -> HttpResponse:
    """The metrics of all processes of this machine, and those from the database."""
    if not may_read(request):
        raise Http404

    def count() -> metrics.Snapshot:
        for recorder in metrics.recorders:
            recorder.write()
        return metrics.gathered(folder())

    counted, stored = await asyncio.gather(asyncio.to_thread(count), _stored())
    return HttpResponse(metrics.exposition({**counted, **stored}), content_type=metrics.CONTENT_TYPE)


def may_read(request: HttpRequest) -> bool:
    """Whether the caller has the token, or has one of the addresses and uses no proxy."""
    scheme, _, presented = request.headers.get("Authorization", "").partition(" ")
    if settings.METRICS_TOKEN and scheme.lower() == "bearer":
        return hmac.compare_digest(presented.strip().encode(), settings.METRICS_TOKEN.encode())
    if not settings.METRICS_ADDRESSES or is_proxied(request.headers):
        return False
    try:
        address = ip_address(request.META.get("REMOTE_ADDR", ""))
    except ValueError:
        return False
    return any(address in ip_network(entry) for entry in settings.METRICS_ADDRESSES)


async def _stored() -> metrics.Snapshot:
    """The metrics from the database; if it does not respond, only DATABASE_UP, with the value 0."""
    started = time.monotonic()
    try:
        found = await asyncio.wait_for(in_database_within_budget(stored_numbers), DATABASE_SECONDS)
    except (DatabaseError, TimeoutError):
        return {metrics.DATABASE_UP.name: [((), [0.0])]}
    return {
        **found,
        metrics.DATABASE_UP.name: [((), [1.0])],
        metrics.DATABASE_LOOK_SECONDS.name: [((), [time.monotonic() - started])],
    }


def stored_numbers() -> metrics.Snapshot:
    """The numbers of jobs, due webhook messages and unfinished runs, from the database."""
    with connection.cursor() as cursor:
        cursor.execute(JOBS)
        jobs = cursor.fetchone()
        cursor.execute(OLDEST_JOB)
        (oldest,) = cursor.fetchone()
        cursor.execute(WEBHOOKS)
        due, late = cursor.fetchone()
        cursor.execute(LEASES)
        leases = cursor.fetchone()
    return {
        metrics.JOBS.name: _by_state(("todo", "doing", "failed"), jobs),
        metrics.OLDEST_JOB_SECONDS.name: [((), [float(oldest)])],
        metrics.WEBHOOKS_DUE.name: [((), [float(due)])],
        metrics.OLDEST_WEBHOOK_SECONDS.name: [((), [float(late)])],
        metrics.LEASES.name: _by_state(("held", "expired"), leases),
    }


def _by_state(states: Sequence[str], counts: Sequence[int]) -> list[tuple[metrics.Labels, metrics.Numbers]]:
    return [((state,), [float(count)]) for state, count in zip(states, counts, strict=True)]
