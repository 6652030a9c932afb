"""The web server process: uvicorn on a socket that `up` has opened."""

import argparse
import asyncio
import gc
import os
import socket
import time

import uvicorn
from django.conf import settings

from chatsite.supervision.address import BACKLOG
from chatsite.supervision.lifeline import die_with

WEBSOCKET_MESSAGE_BYTES = 1_000_000
# New objects between two looks for garbage (Python's own: 700), and how many of these come before one among
# older objects and one among all: with Python's 10 and 10, garbage of a million objects would wait.
GARBAGE_THRESHOLDS = (10_000, 5, 2)
FIRST_REQUEST_SECONDS = 0.5  # for a new connection, when the process is asked to end
READERS_SECONDS = 2.0  # to hear of the end of an answer that the end of the process cuts short
CUT_SECONDS = 1  # beyond that, for those who take nothing


class Server(uvicorn.Server):
    """Ends in two steps: first the answers, so that everybody who reads one is told, then the connections."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        ends_by = time.monotonic() + settings.GRACE_SECONDS
        for listener in self.servers:
            listener.close()
        await self._first_requests()
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

    async def _first_requests(self) -> None:
        """Who was let in has asked, or had time to: uvicorn would reset a connection that asks just now."""
        deadline = time.monotonic() + FIRST_REQUEST_SECONDS
        while any(map(_never_asked, self.server_state.connections)):
            if time.monotonic() > deadline:
                return
            await asyncio.sleep(0.01)


def _is_http(connection: object) -> bool:
    return hasattr(connection, "cycle")


def _never_asked(connection: object) -> bool:
    return _is_http(connection) and getattr(connection, "cycle", None) is None


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
