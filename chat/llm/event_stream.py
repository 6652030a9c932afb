"""Reading a chat completion's event stream, with deadlines that count from one piece of content to the next.

The client library's own time-outs are reset by every keep-alive comment, and its typed objects cost twice
the time of a plain JSON reader; so the bytes are read here.
"""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import httpx2
import jiter

from .connections import code_of
from .protocol import End, ModelError, Part, Text, TokenCount

logger = logging.getLogger(__name__)

LINE_LIMIT = 1_000_000  # bytes; no honest event comes near
DONE = b"[DONE]"
COUNT_SECONDS = 2.0  # for the token count, once the text has ended
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
        self._wait(self._deadlines.idle)

    def text_ended(self) -> None:
        self._wait(COUNT_SECONDS)

    def start_again(self) -> None:
        """For a second request: the total time runs on."""
        self._wait(self._deadlines.first)

    def _wait(self, seconds: float) -> None:
        self.by = min(asyncio.get_running_loop().time() + seconds, self._end)


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


async def parts(chunks: AsyncIterator[bytes], clock: Clock) -> AsyncGenerator[Part, None]:
    """Text, token counts and the end. A stream that stops in good order ends without End; others raise.

    Once the text has ended, nothing that happens to the stream can undo it.
    """
    begun = ended = False
    characters = Characters()
    try:
        async with aclosing(_data(chunks, clock)) as found:
            async for data in found:
                for part in _parts_of(data):
                    if isinstance(part, Text):
                        begun = True
                        clock.content_came()
                        if text := characters.of(part.text):
                            yield Text(text)
                        continue
                    if isinstance(part, End):
                        ended = True
                        clock.text_ended()
                        if rest := characters.rest():
                            yield Text(rest)
                    yield part
    except (httpx2.HTTPError, ModelError) as error:
        if ended:
            return
        if isinstance(error, ModelError):
            raise
        logger.warning("The model's stream broke: %s", type(error).__name__)
        raise ModelError("interrupted" if begun else "upstream_unavailable") from None


async def _data(chunks: AsyncIterator[bytes], clock: Clock) -> AsyncGenerator[bytes, None]:
    """What the events carry, up to the mark of the end."""
    understood = False
    async with aclosing(lines(chunks, clock)) as found:
        async for line in found:
            if not line.startswith(b"data:"):
                if line.strip() and not understood and not _is_field(line):
                    raise ModelError("upstream_protocol")
                continue
            understood = True
            data = line[5:].strip()
            if data == DONE:
                return
            yield data


def _is_field(line: bytes) -> bool:
    return line.startswith((b":", b"event:", b"id:", b"retry:"))


def _parts_of(data: bytes) -> list[Part]:
    event = _read(data)
    if error := event.get("error"):
        logger.warning("The model's stream holds an error")
        raise ModelError(code_of(str(error)) or "upstream_unavailable")
    try:
        return [*_of_choices(event.get("choices") or []), *_of_usage(event.get("usage"))]
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError):
        raise ModelError("upstream_protocol") from None


def _read(data: bytes) -> dict[str, Any]:
    try:
        value = _from_json(data)
    except (ValueError, RecursionError):
        raise ModelError("upstream_protocol") from None
    if not isinstance(value, dict):
        raise ModelError("upstream_protocol")
    return value


def _from_json(data: bytes) -> Any:
    try:
        return jiter.from_json(data)
    except ValueError:
        # A character of two surrogates that is split over two events: only the standard library reads it.
        return json.loads(data)


def _of_choices(choices: list[Any]) -> Iterator[Part]:
    if not choices:
        return
    text = (choices[0].get("delta") or {}).get("content")
    if isinstance(text, str) and text:
        yield Text(text)
    reason = choices[0].get("finish_reason")
    if reason == "content_filter":
        raise ModelError("content_filter")
    if reason:
        yield End(REASONS.get(reason, "stop"))


def _of_usage(usage: Any) -> Iterator[Part]:
    if isinstance(usage, dict):
        yield TokenCount(int(usage.get("prompt_tokens") or 0), int(usage.get("completion_tokens") or 0))


class Characters:
    """Storable text out of pieces, of which one may end in the middle of a character."""

    def __init__(self) -> None:
        self._half = ""  # the first of two surrogates

    def of(self, piece: str) -> str:
        text, self._half = self._half + piece, ""
        if "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return storable(text)

    def rest(self) -> str:
        """What stands for a half that nothing has followed."""
        half, self._half = self._half, ""
        return storable(half)


def storable(text: str) -> str:
    """PostgreSQL stores no NUL and UTF-8 no lone surrogate: both become the replacement character."""
    return text.replace("\x00", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
