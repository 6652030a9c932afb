"""The address that the site listens on, reserved before anything is started."""

import errno
import socket

from django.conf import settings

from .refusal import StartRefused

BACKLOG = 2048  # pending connections
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - not bound here: an operator may ask for it


def take(host: str, port: int) -> socket.socket:
    """Bind a TCP socket to the address; port 0 selects a free port. Raises StartRefused.

    The socket does not listen yet: a web server calls listen() when it can serve. Until then the kernel
    refuses connections, so that a proxy tries another machine instead of waiting.
    """
    if not 0 <= port <= 65_535:
        raise StartRefused(f"PORT must be between 0 and 65535, not {port}.")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise StartRefused(f"HOST {host} is not an address of this machine.") from None
    # Names such as localhost have two addresses: prefer IPv4, which every client can use.
    family, kind, protocol, _, address = min(found, key=lambda entry: entry[0] != socket.AF_INET)
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # The kernel drops a connection and its buffers if the client reads nothing for READER_SECONDS. The
        # server cannot do this itself: after it closes a connection, the kernel still tries to send the rest.
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux
            milliseconds = int(settings.READER_SECONDS * 1000)
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)
        listener.bind(address)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            reason = f"Port {port} on {host} is taken: stop the program that uses it, or set PORT to another."
        elif error.errno == errno.EACCES:
            reason = f"Port {port} is reserved for the system: set PORT to a number above 1023."
        elif error.errno == errno.EADDRNOTAVAIL:
            reason = f"HOST {host} is not an address of this machine."
        else:
            reason = f"The site cannot listen on {host}, port {port}: {error.strerror}."
        raise StartRefused(reason) from None
    return listener


def reachable(listener: socket.socket) -> tuple[str, int]:
    """The host and port at which this machine reaches the socket."""
    host, port = listener.getsockname()[:2]
    return EVERYWHERE.get(host, host), port


def url(listener: socket.socket) -> str:
    host, port = reachable(listener)
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"
