"""The web server process: uvicorn on a socket that `manage.py up` has opened."""

import argparse
import gc
import os
import socket
import sys
import threading

import uvicorn
from django.conf import settings

from chatsite.server.address import BACKLOG
from chatsite.server.huge_pages import data_regions, use_huge_pages
from chatsite.server.lifeline import exit_with_parent

from .http_protocol import LimitedProtocol, raise_file_limit
from .uvicorn_server import Server
from .websocket_protocol import LimitedWebSocketProtocol

WEBSOCKET_MESSAGE_BYTES = 1_000_000
# Thresholds of the garbage collector; Python's defaults are 700, 10 and 10. With a first threshold of 10,000,
# the other two must be lower than 10: otherwise a million garbage objects could accumulate.
GARBAGE_THRESHOLDS = (10_000, 5, 2)
# After this time, a computing thread yields the interpreter to a waiting thread; Python's default is 0.005.
# At each of its dozens of queries, a request waits this long for each thread that renders a long
# conversation.
SWITCH_SECONDS = 0.0005
CUT_SECONDS = 1  # after the grace period, how long to wait for clients that read nothing


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--socket", type=int, required=True)
    parser.add_argument(
        "--gate", type=int, required=True, help="Serving starts when this descriptor reaches end of file."
    )
    parser.add_argument(
        "--serving", type=int, required=True, help="The descriptor to which the start of serving is reported."
    )
    options = parser.parse_args()
    exit_with_parent(options.parent)
    gc.disable()  # off while modules are loaded: collections would take a fourth of that time
    raise_file_limit()
    sys.setswitchinterval(SWITCH_SECONDS)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsite.settings")
    # Let numerical libraries use one thread: a question is little work, and more threads would slow it down.
    for name in ("OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    config = uvicorn.Config(
        "chatsite.asgi:application",
        loop="uvloop",
        http=LimitedProtocol,
        ws=LimitedWebSocketProtocol,
        ws_max_size=WEBSOCKET_MESSAGE_BYTES,
        ws_per_message_deflate=False,  # otherwise a short message could unpack to a huge one
        lifespan="on",
        log_config=None,  # Django has set up logging already
        log_level="warning",
        access_log=False,
        server_header=False,
        backlog=BACKLOG,
        proxy_headers=bool(settings.TRUSTED_PROXIES),
        forwarded_allow_ips=settings.TRUSTED_PROXIES,
        timeout_graceful_shutdown=CUT_SECONDS,
    )
    # Load the site while the parent is starting the database: this halves the time to the first response.
    config.load()
    # Exempt everything loaded so far from garbage collection: scanning it would take 5 % of the time of an
    # answer.
    gc.freeze()
    gc.set_threshold(*GARBAGE_THRESHOLDS)
    gc.enable()
    loaded = data_regions()
    os.read(options.gate, 1)

    def started() -> None:
        os.write(options.serving, b"1")
        # In a thread, so that the first requests need not wait.
        threading.Thread(target=use_huge_pages, args=[loaded], daemon=True).start()

    server = Server(config, started=started)
    # uvicorn's `fd` option would treat the descriptor as a Unix socket, and therefore not turn off Nagle's
    # algorithm.
    server.run(sockets=[socket.socket(fileno=options.socket)])


if __name__ == "__main__":
    main()
