"""Checks that addresses of webhooks are public, or in a network that the operator allows."""

import asyncio
import contextlib
import socket
import threading
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.translation import gettext

Address = IPv4Address | IPv6Address
MAX_URL_CHARACTERS = 2_000
NAT64 = ip_network("64:ff9b::/96")
# Not public, although older versions of Python treat the first two as global. The last one is an internal
# service of Azure, with which its virtual machines communicate.
DENIED = [ip_network(text) for text in ("192.0.0.0/24", "3fff::/20", "168.63.129.16/32")]
RESOLVE_SECONDS = 3.0


class Forbidden(ValueError):
    """A forbidden address; the text is the reason."""


def check_url(url: str) -> None:
    """Refuse invalid URLs and forbidden IP addresses without resolving names. Raises Forbidden."""
    # Checked before urlsplit, whose normalisation takes seconds for thousands of combining marks.
    if len(url) > MAX_URL_CHARACTERS or not url.isascii() or not url.isprintable() or " " in url:
        raise Forbidden(gettext("This is not an address of at most 2,000 ASCII characters."))
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise Forbidden(gettext("This is not an address.")) from error
    if parts.scheme not in ("http", "https") or not host:
        raise Forbidden(gettext("An address begins with https://."))
    if parts.username is not None or parts.password is not None:
        raise Forbidden(gettext("An address must not contain a user name or a password."))
    try:
        literal = ip_address(host)
    except ValueError:
        if parts.scheme == "http" and not settings.WEBHOOK_NETWORKS:
            raise Forbidden(gettext("An address begins with https://.")) from None
        return
    check_address(literal, encrypted=parts.scheme == "https")


def check_address(address: Address, *, encrypted: bool) -> None:
    """Refuse non-public addresses, and public ones without encryption. Raises Forbidden.

    Addresses in CHATSITE_WEBHOOK_NETWORKS are always allowed.
    """
    meant = address
    if isinstance(address, IPv6Address):  # it may embed an IPv4 address
        if address in NAT64:
            meant = IPv4Address(int(address) & 0xFFFFFFFF)
        else:
            teredo = address.teredo[1] if address.teredo else None
            meant = address.ipv4_mapped or address.sixtofour or teredo or address
    if any(meant in network for network in settings.WEBHOOK_NETWORKS if meant.version == network.version):
        return
    site_local = isinstance(meant, IPv6Address) and meant.is_site_local
    denied = any(meant in network for network in DENIED if meant.version == network.version)
    if denied or not meant.is_global or meant.is_multicast or meant.is_reserved or site_local:
        raise Forbidden(
            gettext(
                "The address leads to a network that webhooks are not sent to: CHATSITE_WEBHOOK_NETWORKS."
            )
        )
    if not encrypted:
        raise Forbidden(gettext("An address begins with https://."))


async def resolve(host: str, port: int, *, encrypted: bool) -> Address:
    """Resolve the host, and return one of its addresses.

    Raises Forbidden if any of the addresses is not allowed, and OSError or UnicodeError if the host cannot be
    resolved. After RESOLVE_SECONDS, raises TimeoutError and abandons the thread that resolves the host.
    """
    loop = asyncio.get_running_loop()
    looked_up: asyncio.Future[list[str]] = loop.create_future()

    def look_up() -> None:
        result: list[str] | OSError | UnicodeError
        try:
            result = [str(each[4][0]) for each in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
        except (OSError, UnicodeError) as error:
            result = error
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(end, result)

    def end(result: list[str] | OSError | UnicodeError) -> None:
        if looked_up.done():  # the time limit has passed
            return
        if isinstance(result, Exception):
            looked_up.set_exception(result)
        else:
            looked_up.set_result(result)

    threading.Thread(target=look_up, daemon=True, name="webhook-name").start()
    async with asyncio.timeout(RESOLVE_SECONDS):
        found = await looked_up
    addresses = [ip_address(name.partition("%")[0]) for name in found]
    for address in addresses:
        check_address(address, encrypted=encrypted)
    return addresses[0]
