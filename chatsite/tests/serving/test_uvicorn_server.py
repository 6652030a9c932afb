"""Undocumented parts of uvicorn and httptools that this site uses: a change of them fails here first."""

import asyncio
from types import SimpleNamespace
from unittest.mock import Mock, patch

import httptools
import pytest
import uvicorn
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState
from websockets.server import ServerProtocol

from chatsite.http.address_limit import GONE_KEY
from chatsite.server.serving import http_protocol

OVERRIDDEN = [
    "connection_made", "connection_lost", "data_received", "eof_received", "handle_websocket_upgrade",
    "pause_writing", "resume_writing", "on_message_begin", "on_url", "on_header", "on_headers_complete",
    "on_body", "on_message_complete", "on_response_complete", "shutdown", "send_400_response",
]  # fmt: skip
READ = ["connections", "cycle", "flow", "loop", "pipeline", "timeout_keep_alive", "transport"]


async def application(scope, receive, send):
    """Never called."""


@pytest.fixture
def protocol():
    async def made():
        config = Config(application, http="httptools", ws="websockets-sansio")
        config.load()
        state = ServerState()
        return HttpToolsProtocol(config=config, server_state=state, app_state={}), config, state

    return asyncio.run(made())


@pytest.mark.parametrize("name", OVERRIDDEN)
def test_the_http_protocol_has_the_method_that_is_overridden(name):
    assert callable(vars(HttpToolsProtocol)[name])


@pytest.mark.parametrize("name", READ)
def test_the_http_protocol_has_the_attribute_that_is_read(protocol, name):
    assert hasattr(protocol[0], name)


def test_the_parser_calls_back_in_the_order_that_the_limits_count_on():
    called = []

    class Callbacks:
        def __getattr__(self, name):
            if not name.startswith("on_"):
                raise AttributeError(name)
            return lambda *values: called.append(name)

    parser = httptools.HttpRequestParser(Callbacks())
    parser.feed_data(b"\r\n")
    assert called == []
    parser.feed_data(b"P")
    assert called == ["on_message_begin"]
    parser.feed_data(
        b"OST / HTTP/1.1\r\nA: b\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n \r\n0\r\nC: d\r\n\r\n"
    )
    ours = [name for name in called if name in OVERRIDDEN]
    assert ours == [
        "on_message_begin", "on_url", "on_header", "on_header", "on_headers_complete", "on_body",
        "on_header", "on_message_complete",
    ]  # fmt: skip


def test_the_parser_skips_a_body_after_an_upgrade_and_says_where_the_head_ends():
    head = b"POST / HTTP/1.1\r\nUpgrade: a\r\nConnection: Upgrade\r\nContent-Length: 3\r\n\r\n"
    parser = httptools.HttpRequestParser(SimpleNamespace())
    with pytest.raises(httptools.HttpParserUpgrade) as upgrade:
        parser.feed_data(head + b"abc")
    assert upgrade.value.args == (len(head),)
    assert parser.should_upgrade()


def test_a_request_tells_the_state_of_its_response():
    names = RequestResponseCycle.__init__.__code__.co_names
    assert {"keep_alive", "response_started", "response_complete", "disconnected", "message_event"} <= set(
        names
    )
    assert "on_response" in RequestResponseCycle.__init__.__annotations__
    assert "read_paused" in FlowControl.__init__.__code__.co_names


def test_a_websocket_has_what_the_limit_on_its_frames_uses():
    for name in ("data_received", "handle_events", "handle_parser_exception", "send_receive_event_to_app"):
        assert callable(vars(WebSocketsSansIOProtocol)[name])
    assert {"frames", "curr_msg_data_type"} <= set(WebSocketsSansIOProtocol.handle_text.__code__.co_names)
    assert "handshake_complete" in WebSocketsSansIOProtocol.__init__.__code__.co_names
    assert {"handshake_complete", "initial_response"} <= set(WebSocketsSansIOProtocol.send.__code__.co_names)
    protocol = ServerProtocol()
    assert protocol.events == []
    assert protocol.handshake_exc is None
    assert callable(protocol.fail)


def test_a_websocket_says_that_its_close_was_sent():
    assert WebSocketsSansIOProtocol.__init__.__code__.co_names.count("close_sent") or hasattr(
        WebSocketsSansIOProtocol, "close_sent"
    )


def test_the_server_has_the_attributes_that_the_two_step_shutdown_uses(protocol):
    _, config, state = protocol
    server = uvicorn.Server(config)
    for name in ("server_state", "config", "force_exit", "shutdown"):
        assert hasattr(server, name)
    assert "servers" in uvicorn.Server.startup.__code__.co_names
    assert "lifespan" in uvicorn.Server._serve.__code__.co_names
    assert {"connections", "tasks"} <= set(vars(state))
    assert config.http_protocol_class is HttpToolsProtocol
    assert "state" in config.lifespan_class.__init__.__code__.co_names


def test_a_body_that_came_fast_at_first_must_not_drip_afterwards():
    ended, now = [], 0.0
    state = SimpleNamespace(
        loop=SimpleNamespace(time=lambda: now),
        flow=SimpleNamespace(read_paused=False),
        _body_bytes=100_000_000,
        _body_seen=0,
        _body_looked=0.0,
        _body_credit=http_protocol.BODY_BYTES_PER_SECOND * http_protocol.BODY_SECONDS,
        _body_is_due=None,
        _limit=lambda *values: None,
        _end=lambda: ended.append(now),
    )
    while not ended and now < 300:
        now += http_protocol.PACE_SECONDS
        http_protocol.LimitedProtocol._body_is_due(state)
        state._body_bytes += 10  # a byte a second
    assert ended
    assert ended[0] <= http_protocol.BODY_SECONDS + 3 * http_protocol.PACE_SECONDS


class CountedBytes(bytes):
    """Bytes that count what is copied out of them."""

    copied = 0

    def __getitem__(self, place):
        found = CountedBytes(super().__getitem__(place))
        CountedBytes.copied += len(found)
        return found


def test_pipelined_data_is_not_copied_for_each_request():
    request, requests = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 2_000

    async def scenario():
        config = Config(application, http="httptools", ws="websockets-sansio")
        config.load()
        connection = http_protocol.LimitedProtocol(config=config, server_state=ServerState(), app_state={})
        connection.transport = Mock(is_closing=lambda: False)
        connection.flow = http_protocol.PausedFlowControl(connection.transport)

        def parsed(_, piece):
            """A parser that lets each request wait for the one before."""
            if len(piece):
                connection.pipeline.append(piece)

        with patch.object(HttpToolsProtocol, "data_received", parsed):
            connection.data_received(CountedBytes(request * requests))
            for _ in range(requests - 1):
                connection.pipeline.clear()
                connection._go_on()
        assert connection._unread == b""

    asyncio.run(scenario())
    assert CountedBytes.copied <= 2 * requests * len(request)


def test_a_request_knows_when_its_connection_is_lost():
    scopes = []

    async def waits(scope, receive, send):
        scopes.append(scope)
        await scope[GONE_KEY]

    async def scenario():
        config = Config(waits, http="httptools", ws="websockets-sansio", proxy_headers=False)
        config.load()
        connection = http_protocol.LimitedProtocol(config=config, server_state=ServerState(), app_state={})
        connection.connection_made(Mock(is_closing=lambda: False, get_extra_info=lambda *_: None))
        connection.data_received(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await asyncio.sleep(0)
        assert not scopes[0][GONE_KEY].done()
        connection.connection_lost(None)
        await asyncio.wait_for(asyncio.gather(*connection.tasks), 5)

    asyncio.run(scenario())
