"""uvicorn's server, with a shutdown in two steps.

Only this module, http_protocol and websocket_protocol depend on undocumented parts of uvicorn, httptools and
websockets. test_uvicorn_server fails if one of these parts changes.
"""

import asyncio
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import uvicorn
from django.conf import settings

from .http_protocol import LimitedProtocol

# How many connections are accepted together. More would leave too few for the other processes that share the
# listeners.
ACCEPTED_AT_ONCE = 32
# At shutdown, how long idle connections stay open for a request that is on its way.
LAST_REQUEST_SECONDS = 0.5
BODIES_SECONDS = 3.0  # at shutdown, how long bodies may take to arrive completely
READERS_SECONDS = 2.0  # at shutdown, how long readers may take to receive the end of an interrupted answer


class Server(uvicorn.Server):
    """Shuts down in two steps: first the answers, so that readers are notified, then the connections."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], object]) -> None:
        super().__init__(config)
        self._tell_started = started
        self._listening: Sequence[socket.socket] = ()
        self._accepting: asyncio.Handle | None = None
        self._opening: set[asyncio.Task[object]] = set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._listening = sockets or ()
        LimitedProtocol.accept_more = self._accept_soon
        await super().startup(sockets)
        self._tell_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        ends_by = time.monotonic() + settings.GRACE_SECONDS
        await self._stop_accepting(sockets or [])
        await self._last_requests()
        for connection in list(self.server_state.connections):
            if _is_http(connection):
                connection.shutdown()  # the connection closes once its requests are answered
        ending = asyncio.create_task(self.lifespan.state["end"](max(0.0, ends_by - time.monotonic())))
        bodies_until = time.monotonic() + BODIES_SECONDS
        while not ending.done() or self._at_work():
            if time.monotonic() > bodies_until:
                for connection in list(self.server_state.connections):
                    if isinstance(connection, LimitedProtocol):
                        connection.end_slow_body()
            if self.force_exit or time.monotonic() > ends_by + READERS_SECONDS:
                break
            await asyncio.sleep(0.05)
        await super().shutdown(sockets)

    def _at_work(self) -> bool:
        """Whether a request is still running, or a connection is open.

        A closing WebSocket does not count: its page may be suspended.
        """
        connections = self.server_state.connections
        return bool(self.server_state.tasks) or not all(
            getattr(connection, "close_sent", False) for connection in connections
        )

    async def _stop_accepting(self, sockets: Sequence[socket.socket]) -> None:
        """Accept waiting connections, which the kernel would reset otherwise, and close the listeners."""
        self._listening = ()
        waiting = []  # connections that the kernel has established but nobody has accepted
        for listening in sockets:
            with suppress(OSError):
                while True:
                    waiting.append(listening.accept()[0])
        for listener in self.servers:
            listener.close()
        for caller in waiting:
            await self._open(caller)

    def _accept_soon(self) -> None:
        if self._accepting is None:
            self._accepting = asyncio.get_running_loop().call_soon(self._accept)

    def _accept(self) -> None:
        """Accept up to ACCEPTED_AT_ONCE waiting connections.

        uvloop accepts only one connection in each iteration of the event loop. Under load, an iteration takes
        a tenth of a second, so the last of 300 callers would wait half a minute until its request is read.
        """
        self._accepting = None
        loop = asyncio.get_running_loop()
        for listening in self._listening:
            with suppress(OSError):  # no connection waits
                for _ in range(ACCEPTED_AT_ONCE):
                    caller, _ = listening.accept()
                    opening = loop.create_task(self._open(caller))
                    self._opening.add(opening)
                    opening.add_done_callback(self._opening.discard)

    async def _open(self, caller: socket.socket) -> None:
        with suppress(OSError):  # the caller is gone
            await asyncio.get_running_loop().connect_accepted_socket(self._connection, caller)

    def _connection(self) -> asyncio.Protocol:
        protocol: Any = self.config.http_protocol_class
        connection: asyncio.Protocol = protocol(
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return connection

    async def _last_requests(self) -> None:
        """Keep all connections open for a moment, since a request may be on its way.

        Requests that arrive in this window get `Connection: close`; a response that has already started
        cannot carry it, so its connection stays open.
        """
        deadline = time.monotonic() + LAST_REQUEST_SECONDS
        while any(map(_is_idle, self.server_state.connections)) and time.monotonic() < deadline:
            for connection in list(self.server_state.connections):
                cycle = getattr(connection, "cycle", None)
                if cycle is not None and not cycle.response_started:
                    connection.shutdown()
            await asyncio.sleep(0.01)


def _is_http(connection: object) -> bool:
    return hasattr(connection, "cycle")


def _is_idle(connection: object) -> bool:
    """Whether an HTTP connection has no unanswered request."""
    cycle = getattr(connection, "cycle", None)
    return _is_http(connection) and (cycle is None or cycle.response_complete)
