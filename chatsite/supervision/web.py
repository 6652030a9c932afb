"""The web server process: uvicorn on a socket that `up` has opened."""

import argparse
import asyncio
import gc
import math
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


class Server(uvicorn.Server):
    """Says when the end has come: readers and answers have the same time from then on."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.lifespan.state["ends_by"] = time.monotonic() + settings.GRACE_SECONDS
        for listener in self.servers:
            listener.close()
        await self._first_requests()
        await super().shutdown(sockets)

    async def _first_requests(self) -> None:
        """Who was let in has asked, or had time to: uvicorn would reset a connection that asks just now."""
        deadline = time.monotonic() + FIRST_REQUEST_SECONDS
        while any(map(_never_asked, self.server_state.connections)):
            if time.monotonic() > deadline:
                return
            await asyncio.sleep(0.01)


def _never_asked(connection: object) -> bool:
    """Of HTTP; a WebSocket has no cycle."""
    return getattr(connection, "cycle", connection) is None


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
        timeout_graceful_shutdown=math.ceil(settings.GRACE_SECONDS),
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
