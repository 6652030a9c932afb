"""A fast fake model: an OpenAI-compatible server that sends prebuilt bytes, 20 tokens a second per stream.

    python -m streaming.upstream [tokens]      prints its port

A question with “(17)” gets text number 17, so that mixed-up answers are detected; one with “in 2 tokens” gets
an answer of two tokens.
"""

import asyncio
import itertools
import json
import re
import sys

import uvloop

TOKENS = 300
INTERVAL = 0.05  # seconds between two tokens, and before the first
WORDS = 997
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
NUMBER = re.compile(rb"\((\d+)\)")
SHORT = re.compile(rb"in (\d+) tokens")


def marker(number: int) -> str:
    """The first token of an answer, which occurs in no question or document."""
    return f"answer-{number}: "


def pieces(number: int, tokens: int = TOKENS) -> list[str]:
    """The tokens of one answer."""
    return [marker(number), *(_word(number + place) for place in range(1, tokens))]


def _word(number: int) -> str:
    return f"word{number % WORDS} "


def _event(delta: dict[str, str], reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
    body = {
        "id": "chatcmpl-benchmark",
        "object": "chat.completion.chunk",
        "created": 1_790_000_000,
        "model": "fast",
        "system_fingerprint": "fp_benchmark",
        "choices": [choice],
        "usage": None,
    }
    return _chunked(b"data: " + json.dumps(body, separators=(",", ":")).encode() + b"\n\n")


def _chunked(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


PREBUILT = [_event({"content": _word(number)}) for number in range(WORDS)]
LAST = _event({}, "stop") + _chunked(b"data: [DONE]\n\n") + b"0\r\n\r\n"


def _whole() -> bytes:
    """The reply to a request for something other than an answer, for instance a title."""
    message = {"role": "assistant", "content": "A question of the benchmark"}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    body = {
        "id": "chatcmpl-side",
        "object": "chat.completion",
        "created": 1_790_000_000,
        "model": "fast",
        "choices": [choice],
    }
    data = json.dumps(body).encode()
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    return head % len(data) + data


WHOLE = _whole()


class Server(asyncio.Protocol):
    """The protocol of one connection, which handles one request after the other."""

    tokens = TOKENS

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.received = bytearray()
        self.timer: asyncio.TimerHandle | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        if self.timer:
            self.timer.cancel()

    def data_received(self, data: bytes) -> None:
        self.received += data
        head, found, body = bytes(self.received).partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: *(\d+)", head)
        if not found or (length and len(body) < int(length[1])):
            return
        self.received.clear()
        if b'"stream":true' in body or b'"stream": true' in body:
            short = SHORT.findall(body)
            self._stream(
                [int(number) for number in NUMBER.findall(body)], int(short[-1]) if short else self.tokens
            )
        else:
            self.transport.write(WHOLE)

    def _stream(self, numbers: list[int], length: int) -> None:
        self.length = length
        self.number = numbers[-1] if numbers else 0
        self.sent = 0
        self.next = asyncio.get_running_loop().time() + INTERVAL
        self.transport.write(HEAD)
        self._wait()

    def _wait(self) -> None:
        self.timer = asyncio.get_running_loop().call_at(self.next, self._send)

    def _send(self) -> None:
        if self.sent == 0:
            self.transport.write(_event({"role": "assistant", "content": marker(self.number)}))
        elif self.sent < self.length:
            self.transport.write(PREBUILT[(self.number + self.sent) % WORDS])
        else:
            self.transport.write(LAST)
            return
        self.sent += 1
        self.next += INTERVAL
        self._wait()


async def main() -> None:
    Server.tokens = int(next(itertools.islice(sys.argv, 1, 2), TOKENS))
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
