"""The server that responds while the web servers restart."""

import socket

import pytest

from chatsite.server.serving.fallback_server import FallbackServer

pytestmark = pytest.mark.server

CALLERS = 40
ROUNDS = 25
HANG_SECONDS = 20


def test_connections_during_its_stop_are_answered():
    """Once, a connection that was accepted but not yet read was kept open and never answered."""
    with socket.create_server(("127.0.0.1", 0), backlog=2 * CALLERS) as listener:
        server = FallbackServer(listener, lambda: 3)
        for _ in range(ROUNDS):
            server.set_active(True)
            callers = [socket.create_connection(listener.getsockname(), HANG_SECONDS) for _ in range(CALLERS)]
            for caller in callers:
                caller.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            server.set_active(False)
            server.set_active(True)  # for connections that were not accepted yet
            for caller in callers:
                with caller:
                    assert caller.recv(1000).startswith(b"HTTP/1.1 503")
            server.set_active(False)
