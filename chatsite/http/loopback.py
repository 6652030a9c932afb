"""Whether addresses, names and requests belong to this machine."""

from collections.abc import Iterable
from ipaddress import IPv6Address, ip_address

# Headers that proxies set, and browsers do not.
PROXY_HEADERS = frozenset(
    {
        "forwarded",
        "via",
        "x-real-ip",
        "x-client-ip",
        "x-cluster-client-ip",
        "true-client-ip",
        "cf-connecting-ip",
    }
)
PROXY_PREFIX = "x-forwarded"


def is_loopback(host: str) -> bool:
    """Whether an address, or a name without a port, can only mean this machine."""
    host = host.lower().rstrip(".").removeprefix("[").removesuffix("]")
    try:
        address = ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback


def host_of(header: str) -> str:
    """The name in a Host header, without the port."""
    if header.startswith("["):
        return header.partition("]")[0] + "]"
    return header.partition(":")[0]


def is_local(client: str, host: str, headers: Iterable[str]) -> bool:
    """Whether a request comes from this machine, is addressed to it, and passed no proxy.

    `client` is the caller's address, `host` the Host header, `headers` the names of all headers.
    """
    return not is_proxied(headers) and is_loopback(client) and is_loopback(host_of(host))


def is_proxied(headers: Iterable[str]) -> bool:
    """Whether any of these header names is one that only proxies set."""
    names = {name.lower() for name in headers}
    return bool(names & PROXY_HEADERS) or any(name.startswith(PROXY_PREFIX) for name in names)
