"""What a model's server can do with a request: answer properly, or fail in one of the ways in FAULTS."""

import asyncio
import email.utils
import json
import re
import socket
import struct
import threading
import time
from dataclasses import dataclass, field

KEY = "sk-proj-Secret0123456789"
HEADER = "upstream-header-7c1f"
HTML = b"<!doctype html>\n<title>Welcome</title><h1>upstream says hello</h1>\n"


@dataclass
class Request:
    method: str
    path: str
    headers: dict
    body: dict
    at: float = field(default_factory=time.monotonic)
    sent: int = 0  # bytes that were written to the connection
    closed_at: float = 0.0  # when the caller closed it
    closed: threading.Event = field(default_factory=threading.Event)  # the caller has closed its end

    @property
    def streaming(self):
        return bool(self.body.get("stream"))

    @property
    def prompt(self):
        return "\n".join(str(message["content"]) for message in self.body["messages"])


class Exchange:
    """One request and the means to answer it."""

    def __init__(self, fake, request, writer):
        self.fake, self.request, self.writer = fake, request, writer

    async def send(self, data):
        self.writer.write(data)
        await self.writer.drain()
        self.request.sent += len(data)

    async def head(self, status=200, kind="text/event-stream", *more):
        first = [f"HTTP/1.1 {status} Whatever", f"Content-Type: {kind}", "Connection: close"]
        await self.send("\r\n".join([*first, f"X-Served-By: {HEADER}", *more, "", ""]).encode())

    async def whole(self, status, body, *more, kind="application/json"):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        await self.head(status, kind, f"Content-Length: {len(data)}", *more)
        await self.send(data)

    async def text(self, *texts, pause=0.0):
        for text in texts:
            await self.send(chunk(text))
            await asyncio.sleep(pause)

    async def end(self, reason="stop"):
        usage = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}}
        await self.send(chunk(reason=reason) + event(usage) + b"data: [DONE]\n\n")

    async def gone(self):
        """Wait until the caller closes its end."""
        await asyncio.to_thread(self.request.closed.wait, 20)

    def reset(self):
        # A linger time of 0 makes the close a reset.
        self.writer.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )
        self.writer.transport.abort()


def event(value):
    return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"


def chunk(text=None, reason=None, **delta):
    if text is not None:
        delta["content"] = text
    return event({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})


def escaped(text):
    """Text in JSON's own escapes, some of which are not valid characters."""
    return chunk("!").replace(b"!", text.encode())


def answer(*words, pause=0.0, reason="stop"):
    """A proper answer of these pieces."""

    async def behave(exchange):
        await exchange.head()
        await exchange.text(*words, pause=pause)
        await exchange.end(reason)

    return behave


def status(code, body, *headers):
    async def behave(exchange):
        kind = "text/html" if isinstance(body, bytes) else "application/json"
        await exchange.whole(code, body, *headers, kind=kind)

    return behave


def raw(*pieces, pause=0.0):
    """A stream of these pieces, each sent as a separate packet."""

    async def behave(exchange):
        await exchange.head()
        for piece in pieces:
            await exchange.send(piece)
            await asyncio.sleep(pause)

    return behave


def completion(text):
    """The answer to a call without a stream."""
    return status(200, {"choices": [{"index": 0, "message": {"role": "assistant", "content": text}}]})


async def good(exchange):
    """Answer properly, with a citation of the prompt's first source."""
    found = re.search(r"^Sources:\n(.+?): (.*)", exchange.request.prompt, re.M)
    words = f"{found[2][:200]} [{found[1]}]" if found else "I do not know."
    await answer(*re.findall(r"\s*\S+", words))(exchange)


async def silent(exchange):
    await exchange.gone()


async def silent_before_text(exchange):
    await exchange.head()
    await exchange.gone()


async def stall(exchange):
    await exchange.head()
    await exchange.text("Half an ", "answer")
    await exchange.gone()


async def keep_alive(exchange, *before):
    await exchange.head()
    await exchange.text(*before)
    while not exchange.request.closed.is_set():
        await exchange.send(b": keep-alive\n\n")
        await asyncio.sleep(0.02)


async def reasoning(exchange):
    await exchange.head()
    while not exchange.request.closed.is_set():
        await exchange.send(chunk(reasoning_content="Let me think. "))
        await asyncio.sleep(0.02)


async def stall_with_keep_alive(exchange):
    await keep_alive(exchange, "Half an ", "answer")


async def reset_at_once(exchange):
    exchange.reset()


async def reset_before_text(exchange):
    await exchange.head()
    await asyncio.sleep(0.05)
    exchange.reset()


async def reset(exchange):
    await exchange.head(200, "text/event-stream", "Transfer-Encoding: chunked")
    data = chunk("Half an ")
    await exchange.send(f"{len(data):x}\r\n".encode() + data + b"\r\n")
    await asyncio.sleep(0.05)
    exchange.reset()


async def cut(exchange):
    """Close the connection in the middle of a chunked body."""
    await exchange.head(200, "text/event-stream", "Transfer-Encoding: chunked")
    data = chunk("Half an ")
    await exchange.send(f"{len(data):x}\r\n".encode() + data + b"\r\nffff\r\n" + chunk("answer")[:20])


async def endless(exchange):
    await exchange.head()
    while not exchange.request.closed.is_set():
        await exchange.send(chunk("on and on ") * 50)


async def dripping(exchange):
    await exchange.head()
    while not exchange.request.closed.is_set():
        await exchange.text("x", pause=0.02)


async def redirect(exchange):
    await exchange.whole(307, {}, f"Location: {exchange.fake.url}/{HEADER}")


def limited(wait):
    body = {"error": {"message": f"Rate limit for {KEY}", "code": "rate_limit_exceeded"}}
    return status(429, body, f"Retry-After: {wait}")


def refused_parameter(name):
    message = f"Unsupported value: '{name}' does not support this with this model."
    return status(400, {"error": {"message": message, "param": name, "code": "unsupported_value"}})


# Characters of up to four bytes, and one that JSON writes as two surrogates; each in a separate event.
MANY_BYTES = chunk("Grüße 你好 🙂") + escaped(r"\ud83d") + escaped(r"\ude42") + chunk(reason="stop")
HALF_A_PAIR = escaped(r"\udc00 or \ud800")
OVERFLOWS = {
    "openai": {"message": "Too long", "code": "context_length_exceeded", "param": "messages"},
    "llama.cpp": {"message": "request (9031 tokens) exceeds the available context size (8192 tokens)"},
    "vllm": {"message": "This model's maximum context length is 4096 tokens.", "code": 400},
}
UPSTREAM_ERROR = {"error": {"message": f"internal details with {KEY}", "type": "server_error"}}
LATER = email.utils.formatdate(time.time() + 3600, usegmt=True)
FAULTS = {
    "good": good,
    "silent": silent,
    "silent_before_text": silent_before_text,
    "only_keep_alive": keep_alive,
    "only_reasoning": reasoning,
    "stall": stall,
    "stall_with_keep_alive": stall_with_keep_alive,
    "reset_at_once": reset_at_once,
    "reset_before_text": reset_before_text,
    "reset": reset,
    "cut": cut,
    "cut_in_a_line": raw(chunk("Half an "), chunk("answer")[:25]),
    "no_finish_reason": raw(chunk("Half an "), chunk("answer")),
    "done_without_reason": raw(chunk("Half an "), b"data: [DONE]\n\n"),
    "nothing": raw(),
    "html": status(200, HTML),
    "json": completion("A whole answer"),
    "empty_choices": raw(event({"choices": []}), event({"choices": None}), b"data: [DONE]\n\n"),
    "no_text": raw(chunk(reason="stop"), b"data: [DONE]\n\n"),
    "broken_json": raw(chunk("Half an "), b'data: {"choices": [{"delta": {"content": "answer"}]]}\n\n'),
    "broken_utf8": raw(chunk("Half an "), chunk("answer").replace(b"answer", b"answ\xff\xc3")),
    "split_characters": raw(*(bytes([byte]) for byte in MANY_BYTES), pause=0.0005),
    "unstorable": raw(chunk("a\x00b"), HALF_A_PAIR, chunk(reason="stop")),
    "wrong_shapes": raw(chunk("Half an "), event({"choices": ["answer"]})),
    "error_in_stream": raw(chunk("Half an "), event(UPSTREAM_ERROR)),
    "unauthorised": status(401, {"error": {"message": f"Incorrect API key provided: {KEY}."}}),
    "no_such_model": status(404, {"error": {"message": "No such model", "code": "model_not_found"}}),
    "context_overflow": status(400, {"error": OVERFLOWS["openai"]}),
    "rate_limited": status(429, UPSTREAM_ERROR),
    "rate_limited_short": limited("0.05"),
    "rate_limited_long": limited("60"),
    "rate_limited_until": limited(LATER),
    "rate_limited_nonsense": limited("soon"),
    "error_500": status(500, HTML),
    "error_503": status(503, HTML),
    "error_503_short": status(503, HTML, "Retry-After: 0.05"),
    "filtered_prompt": status(400, {"error": {"message": KEY, "code": "content_filter"}}),
    "filtered": raw(chunk("Half an "), chunk(reason="content_filter")),
    "length": answer("Half an ", "answer", reason="length"),
    "endless": endless,
    "dripping": dripping,
    "long_line": raw(b"data: ", *[b"x" * 100_000] * 2_000),
    "redirect": redirect,
}  # fmt: skip
