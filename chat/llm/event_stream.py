"""Reading a chat completion's event stream, with deadlines that count from one piece of content to the next.

The client library's own time-outs are reset by every keep-alive comment, and its typed objects cost twice
the time of a plain JSON reader; so the bytes are read here.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import Any

import jiter

from .protocol import End, ModelError, Part, Text, TokenCount

LINE_LIMIT = 1_000_000  # bytes; no honest event comes near
DONE = b"[DONE]"
REASONS = {"stop": "stop", "length": "length", "tool_calls": "stop", "function_call": "stop", "eos": "stop"}


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds."""

    first: float
    idle: float
    total: float


class Clock:
    """The moment by which the next content must be there, in the loop's time."""

    def __init__(self, deadlines: Deadlines) -> None:
        now = asyncio.get_running_loop().time()
        self._deadlines = deadlines
        self._end = now + deadlines.total
        self.by = min(now + deadlines.first, self._end)

    def content_came(self) -> None:
        self.by = min(asyncio.get_running_loop().time() + self._deadlines.idle, self._end)


async def lines(chunks: AsyncIterator[bytes], clock: Clock) -> AsyncGenerator[bytes, None]:
    """Whole lines without their ends. Raises ModelError when the clock runs out or a line has no end."""
    buffer = bytearray()
    while True:
        try:
            async with asyncio.timeout_at(clock.by):
                chunk = await anext(chunks, None)
        except TimeoutError:
            raise ModelError("upstream_timeout") from None
        if chunk is None:
            break
        buffer += chunk
        *whole, rest = bytes(buffer).replace(b"\r\n", b"\n").split(b"\n")
        buffer = bytearray(rest)
        for line in whole:
            yield line
        if len(buffer) > LINE_LIMIT:
            raise ModelError("upstream_protocol")
    if buffer:
        yield bytes(buffer)


async def parts(chunks: AsyncIterator[bytes], deadlines: Deadlines) -> AsyncGenerator[Part, None]:
    """Text, token counts and the end. A stream that is cut ends without End; what is no stream raises."""
    clock = Clock(deadlines)
    understood = False
    async for line in lines(chunks, clock):
        if not line.startswith(b"data:"):
            if line.strip() and not understood and not _is_field(line):
                raise ModelError("upstream_protocol")
            continue
        understood = True
        data = line[5:].strip()
        if data == DONE:
            return
        for part in _parts_of(_read(data)):
            if isinstance(part, Text):
                clock.content_came()
            yield part


def _is_field(line: bytes) -> bool:
    return line.startswith((b":", b"event:", b"id:", b"retry:"))


def _read(data: bytes) -> dict[str, Any]:
    try:
        value = jiter.from_json(data)
    except ValueError as error:
        raise ModelError("upstream_protocol") from error
    if not isinstance(value, dict):
        raise ModelError("upstream_protocol")
    if value.get("error"):
        raise ModelError("upstream_unavailable")
    return value


def _parts_of(event: dict[str, Any]) -> list[Part]:
    found: list[Part] = []
    choices = event.get("choices") or []
    if choices:
        choice = choices[0]
        text = (choice.get("delta") or {}).get("content")
        if isinstance(text, str) and text:
            found.append(Text(_storable(text)))
        reason = choice.get("finish_reason")
        if reason == "content_filter":
            raise ModelError("content_filter")
        if reason:
            found.append(End(REASONS.get(reason, "stop")))
    usage = event.get("usage")
    if isinstance(usage, dict):
        found.append(
            TokenCount(int(usage.get("prompt_tokens") or 0), int(usage.get("completion_tokens") or 0))
        )
    return found


def _storable(text: str) -> str:
    """PostgreSQL stores no NUL and UTF-8 no lone surrogate: both become the replacement character."""
    return text.replace("\x00", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
