"""Reading a chat completion's event stream, with deadlines that count from one piece of content to the next.

The client library's own time-outs are reset by every keep-alive comment, and its typed objects cost twice
the time of a plain JSON reader; so the bytes are read here.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import Any

import jiter

from chatsite.http.model_server import TRANSPORT_ERRORS

from .base import (
    End,
    ModelError,
    Part,
    Reasoning,
    Text,
    TokenCount,
)
from .connections import code_of
from .sse import EventParser

GATHER_SECONDS = 0.2  # between two reads of a stream
GATHERED_BYTES = 8_192  # a server that sends more at a time is read at once
COUNT_SECONDS = 2.0  # for the token count, once the text has ended
MAX_STREAM_BYTES = 20_000_000  # of one answer's event stream, with all that surrounds its text
COMPLETE = frozenset({"stop", "length"})  # the reasons that end an answer as complete
CALLS = ("tool_calls", "function_call")  # members, and reasons, of calls that were not asked for
NAME = re.compile(r"[a-z_]{2,30}", re.I)  # of a reason that is safe to log


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

    def reasoning_came(self) -> None:
        """The model is alive: the first token may take as long again."""
        self._wait(self._deadlines.first)

    def text_ended(self) -> None:
        self._wait(COUNT_SECONDS)

    def start_again(self) -> None:
        """For a second request: the total time runs on."""
        self._wait(self._deadlines.first)

    def _wait(self, seconds: float) -> None:
        self.by = min(self._time() + seconds, self._end)


class GatheredBody:
    """A body in pieces; what arrives soon after a piece is gathered, and read with the next.

    A read costs more than a token, so that most of the cost of a stream is the number of its reads.
    """

    def __init__(self, pieces: AsyncIterator[bytes], seconds: float = GATHER_SECONDS) -> None:
        self._pieces = pieces
        self._seconds = seconds
        self._gather_until = 0.0

    async def read(self, by: float, *, at_once: bool) -> bytes:
        """The next piece; nothing at the end. Raises TimeoutError at the moment `by` of the loop's time.

        Unless `at_once`, what follows the piece is gathered for a moment.
        """
        time = asyncio.get_running_loop().time
        if not at_once and (seconds := self._gather_until - time()) > 0:
            await asyncio.sleep(min(seconds, (by - time()) / 2))
        if time() >= by:
            raise TimeoutError  # a server that floods us leaves a timer no turn
        async with asyncio.timeout_at(by):
            while (piece := await anext(self._pieces, None)) == b"":
                pass
        if not at_once and piece is not None and len(piece) < GATHERED_BYTES:
            self._gather_until = time() + self._seconds
        return piece or b""


class Progress:
    """How far an answer has come: moves the clock, and holds back halves of characters."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._characters = Characters()
        self.begun = self.thinking = self.ended = False

    def add(self, part: Part) -> list[Part]:
        """What to pass on. Raises ModelError for a reason to end that is not the model's own."""
        if isinstance(part, Text):
            self.begun = True
            self._clock.content_came()
            text = self._characters.of(part.text)
            return [Text(text)] if text else []
        if isinstance(part, Reasoning):
            return self._think(part)
        if isinstance(part, End):
            if part.reason not in COMPLETE:
                raise _cut_short(part.reason)
            self.ended = True
            self._clock.text_ended()
            rest = self._characters.rest()
            return [Text(rest), part] if rest else [part]
        return [part]

    def _think(self, part: Part) -> list[Part]:
        if self.begun or self.ended:
            return []
        self._clock.reasoning_came()
        told, self.thinking = self.thinking, True
        return [] if told else [part]


async def parts(body: GatheredBody, clock: Clock) -> AsyncGenerator[Part, None]:
    """Reasoning (once), text, token counts and the end.

    A stream that stops in good order ends without End; others raise. Once the text has ended, nothing that
    happens to the stream can undo it.
    """
    progress, events, received = Progress(clock), EventParser(), 0
    try:
        while not events.done:
            piece = await _next(body, clock, at_once=not (progress.begun or progress.thinking))
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
                await asyncio.sleep(0)  # a buffered piece is read without waiting: other tasks get a turn
    except ModelError:
        if not progress.ended:
            raise
    except TRANSPORT_ERRORS as error:
        if not progress.ended:
            code = "interrupted" if progress.begun else "upstream_unavailable"
            raise ModelError(code, detail=f"the stream broke: {type(error).__name__}") from None


async def _next(body: GatheredBody, clock: Clock, *, at_once: bool) -> bytes:
    try:
        return await body.read(clock.by, at_once=at_once)
    except TimeoutError:
        raise ModelError("upstream_timeout", detail="nothing came in time") from None


def _cut_short(reason: str) -> ModelError:
    """What a finish reason means that is not the model's own end."""
    if reason == "content_filter":
        return ModelError("content_filter")
    detail = f"finish reason {reason if NAME.fullmatch(reason) else 'unknown'}"
    return ModelError("upstream_protocol" if reason in CALLS else "interrupted", detail=detail)


def _parts_of(kind: bytes, data: bytes) -> list[Part]:
    try:
        event = _from_json(data)
        if kind == b"error" or event.get("error"):
            raise _told_error(event)
        found: list[Part] = []
        for choice in event.get("choices") or []:
            if _index(choice) == 0:
                found += _of_choice(choice)
        return [*found, *_of_usage(event.get("usage"))]
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError, RecursionError) as error:
        detail = f"an event of another shape: {type(error).__name__}"
        raise ModelError("upstream_protocol", detail=detail) from None


def _from_json(data: bytes) -> Any:
    try:
        return jiter.from_json(data)
    except ValueError:
        # A character of two surrogates that is split over two events: only the standard library reads it.
        return json.loads(data)


def _told_error(event: Any) -> ModelError:
    """The error that a server puts into its stream, where the status is out already."""
    told = event.get("error") or event if isinstance(event, dict) else event
    code = told.get("code") if isinstance(told, dict) else None
    if code in (429, "429"):
        return ModelError("rate_limited", detail="an error in the stream, 429")
    return ModelError(code_of(str(told)) or "upstream_unavailable", detail="an error in the stream")


def _index(choice: dict[str, Any]) -> int:
    """Which of several answers a choice belongs to; only one is asked for."""
    index = choice.get("index")
    if index is not None and not isinstance(index, int):
        raise TypeError("an index that is no number")
    return index or 0


def _of_choice(choice: dict[str, Any]) -> list[Part]:
    delta = choice.get("delta") or choice.get("message") or {}
    if choice.get("text") or any(delta.get(name) for name in (*CALLS, "audio")):
        raise TypeError("something other than an answer's text")
    found: list[Part] = []
    if delta.get("reasoning_content") or delta.get("reasoning"):
        found.append(Reasoning())
    found += content_parts(delta.get("content"))
    found += content_parts(delta.get("refusal"))
    if reason := choice.get("finish_reason"):
        found.append(End(str(reason)))
    return found


def content_parts(content: Any) -> list[Part]:
    """The text of a message's `content`: a string, nothing, or a list of parts.

    Raises TypeError or LookupError for what is no text: leaving it out would change what the model said.
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
            raise TypeError("a part that is no text")
        elif part["text"]:
            found.append(Text(part["text"]))
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
