"""The web server process: uvicorn on a socket that `up` has opened."""

import argparse
import asyncio
import gc
import os
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import uvicorn
from django.conf import settings

from chatsite.supervision.address import BACKLOG
from chatsite.supervision.lifeline import die_with

WEBSOCKET_MESSAGE_BYTES = 1_000_000
# New objects between two looks for garbage (Python's own: 700), and how many of these come before one among
# older objects and one among all: with Python's 10 and 10, garbage of a million objects would wait.
GARBAGE_THRESHOLDS = (10_000, 5, 2)
LAST_REQUEST_SECONDS = 0.5  # for connections on which nothing is asked, when the process is asked to end
READERS_SECONDS = 2.0  # to hear of the end of an answer that the end of the process cuts short
CUT_SECONDS = 1  # beyond that, for those who take nothing


class Server(uvicorn.Server):
    """Ends in two steps: first the answers, so that everybody who reads one is told, then the connections."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        ends_by = time.monotonic() + settings.GRACE_SECONDS
        await self._close_the_door(sockets or [])
        await self._last_requests()
        for connection in list(self.server_state.connections):
            if _is_http(connection):
                connection.shutdown()  # as soon as what it asked for is answered
        ending = asyncio.create_task(self.lifespan.state["end"](max(0.0, ends_by - time.monotonic())))
        while not ending.done() or self._at_work():
            if self.force_exit or time.monotonic() > ends_by + READERS_SECONDS:
                break
            await asyncio.sleep(0.05)
        await super().shutdown(sockets)

    def _at_work(self) -> bool:
        """A socket that was told to close is not waited for: its page may be asleep."""
        connections = self.server_state.connections
        return bool(self.server_state.tasks) or not all(
            getattr(connection, "close_sent", False) for connection in connections
        )

    async def _close_the_door(self, sockets: Sequence[socket.socket]) -> None:
        """Who waits before it is let in first: the kernel would reset them."""
        loop = asyncio.get_running_loop()
        waiting = [caller for listener in sockets for caller in _waiting(listener)]
        for listener in self.servers:
            listener.close()
        for caller in waiting:
            with suppress(OSError):  # gone meanwhile
                await loop.connect_accepted_socket(self._connection, caller)

    def _connection(self) -> asyncio.Protocol:
        protocol: Any = self.config.http_protocol_class
        connection: asyncio.Protocol = protocol(
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return connection

    async def _last_requests(self) -> None:
        """Who was let in, or keeps a connection, may be asking just now: closing it would lose the request.

        So all stay open for a moment. What is asked then is answered with the word that the connection ends:
        of one whose answer has begun, a proxy is told nothing, and might ask once more while it closes.
        """
        deadline = time.monotonic() + LAST_REQUEST_SECONDS
        while any(map(_is_idle, self.server_state.connections)) and time.monotonic() < deadline:
            for connection in list(self.server_state.connections):
                if _is_asking(connection):
                    connection.shutdown()
            await asyncio.sleep(0.01)


def _waiting(listener: socket.socket) -> Iterator[socket.socket]:
    """Those whom the kernel has connected already."""
    with suppress(OSError):
        while True:
            yield listener.accept()[0]


def _is_http(connection: object) -> bool:
    return hasattr(connection, "cycle")


def _is_idle(connection: object) -> bool:
    """Of HTTP: nothing was asked on it yet, or all of it is answered."""
    cycle = getattr(connection, "cycle", None)
    return _is_http(connection) and (cycle is None or cycle.response_complete)


def _is_asking(connection: object) -> bool:
    """Of HTTP: it waits for the beginning of an answer."""
    cycle = getattr(connection, "cycle", None)
    return cycle is not None and not cycle.response_started


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--socket", type=int, required=True)
    parser.add_argument("--gate", type=int, required=True, help="Descriptor at whose end serving begins.")
    options = parser.parse_args()
    die_with(options.parent)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsite.settings")
    # A question is small: shared out among threads of the libraries, their waiting costs more than the work.
    for name in ("OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    config = uvicorn.Config(
        "chatsite.asgi:application",
        loop="uvloop",
        http="httptools",
        ws="websockets-sansio",
        ws_max_size=WEBSOCKET_MESSAGE_BYTES,
        lifespan="on",
        log_config=None,  # Django's logging has been set up
        log_level="warning",
        access_log=False,
        server_header=False,
        backlog=BACKLOG,
        proxy_headers=bool(settings.TRUSTED_PROXIES),
        forwarded_allow_ips=settings.TRUSTED_PROXIES,
        timeout_graceful_shutdown=CUT_SECONDS,
    )
    # Loaded while the parent still starts the database, which halves the time to the first answer.
    config.load()
    # What is loaded now stays: to look through it again and again takes a twentieth of the time of an answer.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GARBAGE_THRESHOLDS)
    os.read(options.gate, 1)
    # Not uvicorn's own `fd` option: it takes the descriptor for a Unix socket and so leaves Nagle's delay on.
    Server(config).run(sockets=[socket.socket(fileno=options.socket)])


if __name__ == "__main__":
    main()
