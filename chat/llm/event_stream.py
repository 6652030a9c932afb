"""Reading a chat completion's event stream, with deadlines that count from one piece of content to the next.

The client library's own time-outs are reset by every keep-alive comment, and its typed objects cost twice
the time of a plain JSON reader; so the bytes are read here.
"""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import Any, Protocol

import httpx2
import jiter

from .connections import code_of
from .protocol import End, ModelError, Part, Text, TokenCount

logger = logging.getLogger(__name__)

LINE_LIMIT = 1_000_000  # bytes; no honest event comes near
DONE = b"[DONE]"
MARKED = b"\xef\xbb\xbfdata:"  # a stream may begin with a byte order mark
FIELDS = (b":", b"event:", b"id:", b"retry:")
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
        self._time = asyncio.get_running_loop().time
        now = self._time()
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
        self.by = min(self._time() + seconds, self._end)


class Chunks(Protocol):
    """A body in pieces."""

    async def chunk(self, by: float, *, at_once: bool = True) -> bytes:
        """The next piece; nothing at the end. Raises TimeoutError at the moment `by` of the loop's time.

        Where it need not be at once, small pieces may be gathered for a moment.
        """
        ...


class Iterated:
    """Those of any client's iterator."""

    def __init__(self, iterator: AsyncIterator[bytes]) -> None:
        self._iterator = iterator

    async def chunk(self, by: float, *, at_once: bool = True) -> bytes:
        async with asyncio.timeout_at(by):
            while (piece := await anext(self._iterator, None)) is not None:
                if piece:
                    return piece
        return b""


class Events:
    """Takes bytes as they come, gives what the events carry, up to the mark of the end."""

    def __init__(self) -> None:
        self._rest = b""
        self._understood = False
        self.done = False

    def feed(self, piece: bytes, *, last: bool = False) -> list[bytes]:
        """Raises ModelError for what is no stream of events, and for a line without an end."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        if last:
            lines.append(self._rest)
        elif len(self._rest) > LINE_LIMIT:
            raise ModelError("upstream_protocol")
        found = []
        for line in lines:
            if line.startswith((b"data:", MARKED)):
                self._understood = True
                data = line.partition(b":")[2].strip()
                if data == DONE:
                    self.done = True
                    break
                found.append(data)
            elif not self._understood and line.strip() and not line.startswith(FIELDS):
                raise ModelError("upstream_protocol")
        return found


async def parts(chunks: Chunks, clock: Clock) -> AsyncGenerator[Part, None]:
    """Text, token counts and the end. A stream that stops in good order ends without End; others raise.

    Once the text has ended, nothing that happens to the stream can undo it.
    """
    begun = ended = False
    characters, events = Characters(), Events()
    try:
        while not events.done:
            piece, came = await _next(chunks, clock, at_once=not begun), False
            for data in events.feed(piece, last=not piece):
                for part in _parts_of(data):
                    if isinstance(part, Text):
                        if not came:
                            begun = came = True
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
            if not piece:
                return
    except (httpx2.HTTPError, ModelError) as error:
        if ended:
            return
        if isinstance(error, ModelError):
            raise
        logger.warning("The model's stream broke: %s", type(error).__name__)
        raise ModelError("interrupted" if begun else "upstream_unavailable") from None


async def _next(chunks: Chunks, clock: Clock, *, at_once: bool) -> bytes:
    try:
        return await chunks.chunk(clock.by, at_once=at_once)
    except TimeoutError:
        raise ModelError("upstream_timeout") from None


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


def _of_choices(choices: list[Any]) -> list[Part]:
    found: list[Part] = []
    if not choices:
        return found
    text = (choices[0].get("delta") or {}).get("content")
    if isinstance(text, str) and text:
        found.append(Text(text))
    reason = choices[0].get("finish_reason")
    if reason == "content_filter":
        raise ModelError("content_filter")
    if reason:
        found.append(End(REASONS.get(reason, "stop")))
    return found


def _of_usage(usage: Any) -> list[Part]:
    if not isinstance(usage, dict):
        return []
    return [TokenCount(int(usage.get("prompt_tokens") or 0), int(usage.get("completion_tokens") or 0))]


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
    if text.isascii() and "\x00" not in text:
        return text
    return text.replace("\x00", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
