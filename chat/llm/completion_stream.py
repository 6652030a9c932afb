"""Reads a chat completion's event stream, with deadlines between pieces of content.

The client library resets its time-outs on every keep-alive comment, and its typed objects take twice as long
as a plain JSON parser, so the bytes are parsed here.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import Any

import jiter

from chatsite.http.outgoing.model_server import TRANSPORT_ERRORS
from chatsite.http.overload import backlog

from .chat_model import (
    MAX_TOKENS,
    End,
    ModelError,
    Part,
    Reasoning,
    Text,
    TokenCount,
)
from .connections import code_of
from .sse import EventParser

GATHER_SECONDS = 0.2  # interval between two reads of a stream, unless the process is busy
# If a timer is later than LATE_SECONDS or many requests wait, the process reads a stream less often, but at
# least every MAX_GATHER_SECONDS, to leave time for answers that have not begun.
MAX_GATHER_SECONDS = 0.6
LATE_SECONDS = 0.1
GATHERED_BYTES = 8_192  # the next read is not delayed if this much data arrived
USAGE_SECONDS = 2.0  # how long to wait for the token count after the end of the text
MAX_STREAM_BYTES = 20_000_000  # limit for the event stream of an answer, including everything around the text
COMPLETE = frozenset({"stop", "length"})  # finish reasons with which an answer is stored as complete
# Members and finish reasons of tool calls, which the site never requests.
CALLS = ("tool_calls", "function_call")
NAME = re.compile(r"[a-z_]{2,30}", re.I)  # pattern of finish reasons that are safe to log


@dataclass(frozen=True, slots=True)
class Deadlines:
    """The time limits of an answer in seconds."""

    first: float
    idle: float
    total: float


class Clock:
    """Computes the deadline for the next piece of content, in the event loop's time."""

    def __init__(self, deadlines: Deadlines) -> None:
        self._time = asyncio.get_running_loop().time
        now = self._time()
        self._deadlines = deadlines
        self._end = now + deadlines.total
        self.by = min(now + deadlines.first, self._end)

    def content_came(self) -> None:
        self._wait(self._deadlines.idle)

    def reasoning_came(self) -> None:
        """Restart the wait for the first token, because reasoning shows that the model is working."""
        self._wait(self._deadlines.first)

    def text_ended(self) -> None:
        self._wait(USAGE_SECONDS)

    def start_again(self) -> None:
        """Restart the wait for the first token for another request, but not the total time."""
        self._wait(self._deadlines.first)

    def _wait(self, seconds: float) -> None:
        self.by = min(self._time() + seconds, self._end)


class GatheredBody:
    """A response body that is read at intervals, because a read costs more time than parsing a token."""

    def __init__(self, pieces: AsyncIterator[bytes], seconds: float = GATHER_SECONDS) -> None:
        self._pieces = pieces
        self._least = self._seconds = seconds
        self._gather_until = 0.0

    async def read(self, by: float, *, at_once: bool) -> bytes:
        """Return the next bytes; b"" at the end. Raises TimeoutError at `by`, in the loop's time.

        Unless `at_once` is set, waits until the interval since the previous read is over, to return more
        data.
        """
        time = asyncio.get_running_loop().time
        if not at_once and (seconds := self._gather_until - time()) > 0:
            due = time() + min(seconds, (by - time()) / 2)
            await asyncio.sleep(due - time())
            if time() - due > LATE_SECONDS or backlog().is_crowded:
                self._seconds = max(self._least, min(2 * self._seconds, MAX_GATHER_SECONDS))
            else:
                self._seconds = max(self._least, self._seconds / 2)
        if time() >= by:
            raise TimeoutError  # with a flood of bytes, the timer below would never fire
        async with asyncio.timeout_at(by):
            while (piece := await anext(self._pieces, None)) == b"":
                pass
        if piece is not None and len(piece) < GATHERED_BYTES:
            self._gather_until = time() + self._seconds
        return piece or b""


class Progress:
    """The progress of one answer: extends its deadline, and holds back incomplete characters."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._characters = Characters()
        self.started = self.thinking = self.ended = False

    def add(self, part: Part) -> list[Part]:
        """Process a part, and return the parts to pass on. Raises ModelError for a bad finish reason."""
        if isinstance(part, Text):
            self.started = True
            self._clock.content_came()
            text = self._characters.of(part.text)
            return [Text(text)] if text else []
        if isinstance(part, Reasoning):
            return self._think(part)
        if isinstance(part, End):
            if part.reason == "content_filter":
                raise ModelError("content_filter")
            if part.reason not in COMPLETE:
                code = "upstream_protocol" if part.reason in CALLS else "interrupted"
                reason = part.reason if NAME.fullmatch(part.reason) else "unknown"
                raise ModelError(code, detail=f"finish reason {reason}")
            self.ended = True
            self._clock.text_ended()
            rest = self._characters.rest()
            return [Text(rest), part] if rest else [part]
        return [part]

    def _think(self, part: Part) -> list[Part]:
        if self.started or self.ended:
            return []
        self._clock.reasoning_came()
        known, self.thinking = self.thinking, True
        return [] if known else [part]


async def parts(body: GatheredBody, clock: Clock) -> AsyncGenerator[Part, None]:
    """Yield Reasoning (once), Text, TokenCount and End.

    A stream that is closed without a finish reason has no End; one that breaks raises ModelError. Errors
    after the end of the text are ignored.
    """
    progress, events, received = Progress(clock), EventParser(), 0
    try:
        while not events.done:
            try:
                piece = await body.read(clock.by, at_once=not (progress.started or progress.thinking))
            except TimeoutError:
                raise ModelError("upstream_timeout", detail="nothing received in time") from None
            received += len(piece)
            if received > MAX_STREAM_BYTES:
                raise ModelError("upstream_protocol", detail="a stream without an end")
            passed_on = False
            for kind, data in events.feed(piece, last=not piece):
                for found in _parts_of(kind, data):
                    for part in progress.add(found):
                        passed_on = True
                        yield part
            if not piece:
                return
            if not passed_on:
                await asyncio.sleep(0)  # let other tasks run, because buffered data is read without waiting
    except ModelError:
        if not progress.ended:
            raise
    except TRANSPORT_ERRORS as error:
        if not progress.ended:
            code = "interrupted" if progress.started else "upstream_unavailable"
            raise ModelError(code, detail=f"the stream broke: {type(error).__name__}") from None


def _parts_of(kind: bytes, data: bytes) -> list[Part]:
    try:
        try:
            event = jiter.from_json(data)
        except ValueError:
            # Only the standard library accepts half of a surrogate pair (the next event has the other half).
            event = json.loads(data)
        if kind == b"error" or event.get("error"):
            raise _error_in_stream(event)
        found: list[Part] = []
        for choice in event.get("choices") or []:
            index = choice.get("index")
            if index is not None and not isinstance(index, int):
                raise TypeError("index is not a number")
            if not index:  # ignore additional answers: only one was requested
                delta = choice.get("delta") or choice.get("message") or {}
                if choice.get("text") or any(delta.get(name) for name in (*CALLS, "audio")):
                    raise TypeError("something other than an answer's text")
                if delta.get("reasoning_content") or delta.get("reasoning"):
                    found.append(Reasoning())
                found += content_parts(delta.get("content"))
                found += content_parts(delta.get("refusal"))
                if reason := choice.get("finish_reason"):
                    found.append(End(str(reason)))
        if isinstance(usage := event.get("usage"), dict):
            tokens = [int(usage.get(name) or 0) for name in ("prompt_tokens", "completion_tokens")]
            if all(0 <= number <= MAX_TOKENS for number in tokens):  # otherwise the numbers are invalid
                found.append(TokenCount(*tokens))
        return found
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError, RecursionError) as error:
        detail = f"an event of another shape: {type(error).__name__}"
        raise ModelError("upstream_protocol", detail=detail) from None


def _error_in_stream(event: Any) -> ModelError:
    """The error that a server sent inside its stream, after the status line."""
    error = event.get("error") or event if isinstance(event, dict) else event
    code = error.get("code") if isinstance(error, dict) else None
    if code in (429, "429"):
        return ModelError("rate_limited", detail="an error in the stream, 429")
    return ModelError(code_of(str(error)) or "upstream_unavailable", detail="an error in the stream")


def content_parts(content: Any) -> list[Part]:
    """The parts of a message's `content`: a string, null, or a list of text and reasoning.

    Raises TypeError or LookupError for any other content, because dropping it would change the answer.
    """
    if content is None:
        return []
    if isinstance(content, str):
        return [Text(content)] if content else []
    if not isinstance(content, list):
        raise TypeError("content of another kind")
    found: list[Part] = []
    for part in content:
        if part["type"] in ("thinking", "reasoning"):
            found.append(Reasoning())
        elif part["type"] != "text" or not isinstance(part["text"], str):
            raise TypeError("a part that is not text")
        elif part["text"]:
            found.append(Text(part["text"]))
    return found


class Characters:
    """Turns pieces of text that may end within a surrogate pair into storable text."""

    def __init__(self) -> None:
        self._half = ""  # the first half of a surrogate pair

    def of(self, piece: str) -> str:
        text, self._half = self._half + piece, ""
        if "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return storable(text)

    def rest(self) -> str:
        """A replacement for an incomplete character at the end, if any."""
        half, self._half = self._half, ""
        return storable(half)


def storable(text: str) -> str:
    """Replace NUL, which PostgreSQL cannot store, and lone surrogates, which UTF-8 cannot encode."""
    if text.isascii() and "\x00" not in text:
        return text
    return text.replace("\x00", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
