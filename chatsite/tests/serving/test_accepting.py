"""Connections are accepted together, even while a round of the event loop takes long."""

import asyncio
import socket
import time

import pytest
import uvicorn
import uvloop

from chatsite.server.serving import uvicorn_server
from chatsite.server.serving.http_protocol import LimitedProtocol
from chatsite.server.serving.uvicorn_server import Server

CALLERS = 60
ROUND_SECONDS = 0.01
HELLO = b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"


async def rounds_until_all_are_read():
    """The rounds of a busy event loop until the requests of CALLERS simultaneous connections are read."""
    loop = asyncio.get_running_loop()
    rounds, read_in = 0, []
    all_read = loop.create_future()

    async def application(scope, receive, send):
        read_in.append(rounds)
        if len(read_in) == CALLERS:
            all_read.set_result(None)

    listening = socket.create_server(("127.0.0.1", 0), backlog=2 * CALLERS)
    config = uvicorn.Config(application, http=LimitedProtocol, ws="none", lifespan="off", log_config=None)
    config.load()
    server = Server(config, lambda: None)
    server.lifespan = config.lifespan_class(config)
    await server.startup([listening])
    callers = [socket.create_connection(listening.getsockname()) for _ in range(CALLERS)]
    for caller in callers:
        caller.sendall(HELLO)

    def work():
        nonlocal rounds
        rounds += 1
        time.sleep(ROUND_SECONDS)
        if not all_read.done() and rounds < 10 * CALLERS:
            loop.call_soon(work)

    loop.call_soon(work)
    await all_read
    for caller in callers:
        caller.close()
    for listener in server.servers:
        listener.close()
    return read_in[-1]


@pytest.fixture
def no_hook():
    yield
    LimitedProtocol.accept_more = None


@pytest.mark.usefixtures("no_hook")
def test_sixty_concurrent_callers_do_not_wait_for_sixty_rounds_of_a_busy_loop():
    assert uvloop.run(rounds_until_all_are_read()) < CALLERS / 3


@pytest.mark.usefixtures("no_hook")
def test_one_process_leaves_some_callers_to_others_in_each_round(monkeypatch):
    monkeypatch.setattr(uvicorn_server, "ACCEPTED_AT_ONCE", 4)
    assert uvloop.run(rounds_until_all_are_read()) >= CALLERS / 6
