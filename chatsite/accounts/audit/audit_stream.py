"""Sends new entries of the audit log to a syslog server or a webhook, as OCSF events.

A job of the worker sends the entries that were sealed since its last success, so that writing an entry never
waits for a server. A server that was unavailable gets the missing entries later, except over UDP, which does
not report losses; after a failure within a batch, it may get some entries twice.
"""

import asyncio
import logging
import socket
import time
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

import httpx2
from django.conf import settings
from django.db import transaction

from chatsite.accounts.models import AuditDelivery, AuditEntry, AuditSeal

from .audit_export import line_of

logger = logging.getLogger(__name__)

AT_ONCE = 200  # entries
TIMEOUT = 5.0  # seconds for sending a batch to the webhook, or for each write to a syslog server
SECONDS = 5.0  # time limit of a job per destination, because a job occupies a worker; the next job continues
SYSLOG_PORT = 514
LOG_AUDIT, WARNING, INFORMATIONAL = 13, 4, 6  # facility and severities of RFC 5424
Send = Callable[[Sequence[tuple[AuditEntry, str]]], None]


def deliver() -> int:
    """Send new entries to the configured destinations; return the total over all of them."""
    sent = 0
    for target, address, send in (
        ("syslog", settings.AUDIT_SYSLOG, _to_syslog),
        ("webhook", settings.AUDIT_WEBHOOK, _to_webhook),
    ):
        if not address:
            AuditDelivery.objects.filter(target=target).delete()
            continue
        newest = AuditSeal.objects.order_by("-position").values_list("position", flat=True).first() or 0
        # A newly configured server gets entries from now on; `audit export` has the earlier ones.
        AuditDelivery.objects.get_or_create(target=target, defaults={"position": newest})
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline and (some := _deliver_some(target, send)):
            sent += some
    return sent


@transaction.atomic
def _deliver_some(target: str, send: Send) -> int:
    place = AuditDelivery.objects.select_for_update(skip_locked=True).filter(target=target).first()
    if place is None:  # another worker is sending
        return 0
    seals = list(AuditSeal.objects.filter(position__gt=place.position).order_by("position")[:AT_ONCE])
    entries = AuditEntry.objects.in_bulk([seal.entry for seal in seals])
    lines = [
        (entries[seal.entry], line_of(entries[seal.entry], seal)) for seal in seals if seal.entry in entries
    ]
    try:
        if lines:
            send(lines)
    except (OSError, httpx2.HTTPError) as error:
        logger.warning("The audit log could not be sent to the %s: %s", target, type(error).__name__)
        return 0
    if seals:
        place.position = seals[-1].position
        place.save()
    return len(seals)


def _to_syslog(lines: Sequence[tuple[AuditEntry, str]]) -> None:
    """Send messages in the format of RFC 5424.

    Over TCP, each message is preceded by its length (RFC 6587); over UDP, each is one datagram.
    """
    parts = urlsplit(settings.AUDIT_SYSLOG)
    address = (parts.hostname or "", parts.port or SYSLOG_PORT)
    if parts.scheme == "udp":
        family, kind, _, _, found = socket.getaddrinfo(*address, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as datagrams:
            for entry, line in lines:
                datagrams.sendto(_message(entry, line), found)
        return
    with socket.create_connection(address, timeout=TIMEOUT) as stream:
        for entry, line in lines:
            message = _message(entry, line)
            stream.sendall(b"%d %s" % (len(message), message))


def _message(entry: AuditEntry, line: str) -> bytes:
    severity = WARNING if entry.action == AuditEntry.Action.SIGN_IN_REFUSED else INFORMATIONAL
    moment = entry.created_at.isoformat(timespec="microseconds")
    head = f"<{8 * LOG_AUDIT + severity}>1 {moment} {socket.gethostname()} chatsite - {entry.action} - "
    return head.encode("ascii", "replace") + line.encode()


def _to_webhook(lines: Sequence[tuple[AuditEntry, str]]) -> None:
    """Send JSON Lines in one POST.

    Redirects are not followed; any status but 2xx is a failure. The response body is not read. The whole
    request takes at most TIMEOUT, however slow the server is.
    """
    body = "".join(f"{line}\n" for _, line in lines).encode()

    async def post() -> None:
        async with (
            asyncio.timeout(TIMEOUT),
            httpx2.AsyncClient(timeout=TIMEOUT, follow_redirects=False) as client,
            client.stream(
                "POST",
                settings.AUDIT_WEBHOOK,
                content=body,
                headers={"Content-Type": "application/x-ndjson"},
            ) as response,
        ):
            response.raise_for_status()

    asyncio.run(post())
