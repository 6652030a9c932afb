"""Refused sockets get a status, headers and a line in the log; other upgrades are answered in HTTP/1.1."""

import asyncio
import logging
import socket

import pytest
import uvicorn
import uvloop

from chatsite.http.address_limit import AddressLimit
from chatsite.server.serving.http_protocol import LimitedProtocol
from chatsite.server.serving.websocket_protocol import LimitedWebSocketProtocol

HANDSHAKE = (
    b"GET /c/1/socket HTTP/1.1\r\nHost: here\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
# Frames of text: one whole, one cut in the middle of a character, and one that is not UTF-8.
MASK = bytes(4)
WHOLE = b"\x81\x86" + MASK + "Fähr".encode() + b"!"
HALVES = b"\x01\x82" + MASK + "Fä".encode()[:2] + b"\x80\x81" + MASK + "ä".encode()[1:]
NOT_TEXT = b"\x81\x83" + MASK + b"\xff\xfe\x80"


class Full(AddressLimit):
    """A limit whose queues are all full."""

    def __init__(self, application):
        super().__init__(application)
        for queues in (self._callers, self._addresses):
            queues._max_waiting = -1
            queues._slots = lambda key, limit: 0


async def answer_to_a_handshake(application, frames=b"", handshake=HANDSHAKE):
    """All that a client receives until the connection ends; it sends `frames` after it was accepted.

    The pieces of the handshake, if it is a list, arrive one after the other.
    """
    loop = asyncio.get_running_loop()
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        application, http=LimitedProtocol, ws=LimitedWebSocketProtocol, lifespan="off", log_config=None
    )
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup([listening])
    caller = await loop.run_in_executor(None, socket.create_connection, listening.getsockname())
    caller.setblocking(False)
    received = b""
    try:
        async with asyncio.timeout(10):
            for piece in [handshake] if isinstance(handshake, bytes) else handshake:
                await loop.sock_sendall(caller, piece)
                await asyncio.sleep(0.01)
            while part := await loop.sock_recv(caller, 10_000):
                received += part
                if frames and b"\r\n\r\n" in received:
                    await loop.sock_sendall(caller, frames)
                    frames = b""
            await asyncio.sleep(0.05)  # what follows the response
    finally:
        caller.close()
        for listener in server.servers:
            listener.close()
    return received


async def never(scope, receive, send):
    raise AssertionError("refused requests do not arrive here")


def test_a_refused_socket_is_not_logged_as_an_error(caplog):
    caplog.set_level(logging.INFO)
    received = uvloop.run(answer_to_a_handshake(Full(never)))
    assert received.startswith(b"HTTP/1.1 503 ")
    assert b"\r\nretry-after: 5\r\n" in received.lower()
    assert received.count(b"HTTP/1.1") == 1
    levels = {record.levelno for record in caplog.records}
    assert max(levels) == logging.INFO, caplog.text
    own = [record.getMessage() for record in caplog.records if record.name.startswith("chatsite")]
    assert own == ["A socket was refused with 503."]


def test_an_application_that_sends_nothing_is_still_an_error(caplog):
    async def silent(scope, receive, send):
        pass

    received = uvloop.run(answer_to_a_handshake(silent))
    assert received.startswith(b"HTTP/1.1 500 ")
    assert "without completing handshake" in caplog.text


def test_text_that_is_not_utf_8_closes_the_connection_without_an_error_in_the_log(caplog):
    caplog.set_level(logging.INFO)
    messages = []

    async def accepting(scope, receive, send):
        await receive()
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] != "websocket.disconnect":
            messages.append(message)
        messages.append(message)

    received = uvloop.run(answer_to_a_handshake(accepting, WHOLE + HALVES + NOT_TEXT))
    assert received.startswith(b"HTTP/1.1 101 ")
    assert b"\x88\x18" + (1007).to_bytes(2) + b"The text is not UTF-8." in received
    assert [message.get("text", message.get("code")) for message in messages] == ["Fähr!", "Fä", 1007]
    assert all(record.levelno == logging.INFO and not record.exc_info for record in caplog.records), (
        caplog.text
    )


@pytest.mark.parametrize(
    "more", [b"Content-Length: 5\r\n\r\nhello", b"X: y\r\n" * 200 + b"\r\n"], ids=["body", "many"]
)
def test_a_handshake_refused_by_the_parser_is_answered_and_closed(more):
    received = uvloop.run(answer_to_a_handshake(never, handshake=HANDSHAKE.removesuffix(b"\r\n") + more))
    assert received.startswith(b"HTTP/1.1 400 ")
    assert received.count(b"HTTP/1.1") == 1


BODY = b"GET /hidden HTTP/1.1\r\nHost: here\r\n\r\n"
LAST = b"GET /last HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"
FRAMED = {
    "length": (b"Content-Length: %d" % len(BODY), BODY),
    "chunks": (b"Transfer-Encoding: chunked", b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)),
}


@pytest.mark.parametrize("upgrade", [b"h2c", b"websocket, h2c", b"any/1"])
@pytest.mark.parametrize("framing", FRAMED)
@pytest.mark.parametrize("cut", [None, -1, -3, 0, 7])
def test_the_body_of_a_request_that_offers_another_protocol_is_not_the_next_request(upgrade, framing, cut):
    requests = []

    async def listening(scope, receive, send):
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        requests.append((scope["path"], body))
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})

    header, body = FRAMED[framing]
    head = b"POST /first HTTP/1.1\r\nHost: here\r\nConnection: Upgrade\r\nUpgrade: %s\r\n%s\r\n\r\n" % (
        upgrade,
        header,
    )
    sent = head + body + head + body + LAST
    pieces = [sent] if cut is None else [sent[: len(head) + cut], sent[len(head) + cut :]]
    received = uvloop.run(answer_to_a_handshake(listening, handshake=pieces))
    assert requests == [("/first", BODY), ("/first", BODY), ("/last", b"")]
    assert received.count(b"HTTP/1.1 200 ") == 3
