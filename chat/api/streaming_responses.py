"""Streaming responses, which close their generators when the client disconnects."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TypeVar
from uuid import UUID

from django.db import InterfaceError, OperationalError
from django.http import StreamingHttpResponse

from chat import (
    errors,
    runs,
)
from chat.events import (
    TERMINAL,
    Failed,
)
from chat.limits import ConnectionSlot
from chat.protocols import (
    ChatProtocol,
    NumberedEncoder,
    run_events,
)
from chat.protocols.framing import (
    COMMENT,
    EVENT_STREAM,
    FRAMINGS,
)
from chatsite.accounts.principal import Principal

logger = logging.getLogger(__name__)

T = TypeVar("T")

KEEP_ALIVE_SECONDS = 10.0
POLL_SECONDS = 1.0  # how often a stream that waits for the database checks whether a keep-alive is due


class ClosingStream(StreamingHttpResponse):
    """A streaming response whose asynchronous generator is closed when the response ends.

    With Django's own wrappers, the garbage collector would close it later, in another task.
    """

    def __init__(
        self, content: AsyncGenerator[bytes, None], media_type: str, slot: ConnectionSlot | None = None
    ) -> None:
        super().__init__(content, content_type=media_type)
        self._content, self._slot = content, slot
        self.headers["Cache-Control"] = "no-store"
        self.headers["X-Accel-Buffering"] = "no"

    def __aiter__(self) -> AsyncGenerator[bytes, None]:
        """The generator itself, which Django's handler then closes."""
        return self._content

    def close(self) -> None:
        super().close()
        if self._slot:  # for a generator that never started; a started one releases the slot itself
            self._slot.release()


class KeepAliveTimer:
    """Decides when to send a keep-alive; proxies drop silent connections."""

    def __init__(self) -> None:
        self._since = time.monotonic()

    def reset(self) -> None:
        self._since = time.monotonic()

    def is_due(self) -> bool:
        """Whether a keep-alive is due. If so, the caller must send one, and the timer restarts."""
        if time.monotonic() - self._since < KEEP_ALIVE_SECONDS:
            return False
        self.reset()
        return True


async def run_stream(
    principal: Principal, run_id: UUID, protocol: ChatProtocol, slot: ConnectionSlot, *, boundary: int = 0
) -> AsyncGenerator[bytes, None]:
    """The framed chunks of a run in a protocol.

    Chunks are yielded as they arrive, or at least the protocol's gap apart. If access is revoked, the
    database becomes unavailable, or this process shuts down, the stream ends with an error chunk. Text up to
    event number `boundary` of the run is not merged with later text.
    """
    frame = FRAMINGS[protocol.stream_type]
    sent_at = float("-inf")
    keep_alive = KeepAliveTimer()
    with slot:
        async with aclosing(_chunks(principal, run_id, protocol, boundary)) as parts:
            async for chunks in parts:
                if chunks is None:
                    # Only server-sent events have comments.
                    if protocol.stream_type == EVENT_STREAM and keep_alive.is_due():
                        yield COMMENT
                    continue
                if not protocol.gap:
                    yield b"".join(map(frame, chunks))
                else:
                    for chunk in chunks:
                        await asyncio.sleep(max(0.0, sent_at + protocol.gap - time.monotonic()))
                        sent_at = time.monotonic()
                        yield frame(chunk)
                keep_alive.reset()


async def _chunks(
    principal: Principal, run_id: UUID, protocol: ChatProtocol, boundary: int
) -> AsyncGenerator[list[object] | None, None]:
    """Yield lists of chunks, and None about once a second while nothing happens."""
    encoder = protocol.encoder()
    # Look this up once, because isinstance with a Protocol takes longer than encoding.
    numbered = encoder.numbered if isinstance(encoder, NumberedEncoder) else None
    failed = Failed("failed", "internal")
    try:
        async with aclosing(runs.watch(principal, run_id, boundary=boundary)) as parts:
            async for part in parts:
                if not part:
                    yield None
                    continue
                chunks: list[object] = []
                for number, event in part:
                    chunks += numbered(number, event) if numbered else encoder.encode(event)
                if chunks:
                    yield chunks
        return
    except errors.Refused as refusal:
        failed = Failed("failed", refusal.code)
    except (OperationalError, InterfaceError):
        logger.warning("The database was unavailable while an answer was followed", exc_info=True)
        failed = Failed("failed", "database_unavailable")
    except Exception:
        logger.exception("An answer could not be followed to its end")
    yield [*encoder.encode(failed)]


async def resumed_stream(
    principal: Principal, run_id: UUID, after: int, media_type: str, slot: ConnectionSlot
) -> AsyncGenerator[bytes, None]:
    """The events of a run with numbers above `after`; the end event contains all messages.

    If access is revoked, if the database becomes unavailable, or if this process shuts down while another one
    executes the run, the stream breaks off without an end event, and the client may try to resume it. While
    a statement waits for the database, keep-alives are sent.
    """
    keep_alive = KeepAliveTimer()
    number = after
    with slot:
        async with aclosing(_resumed_parts(principal, run_id, after, media_type)) as parts:
            next_part: asyncio.Task[tuple[int, bytes] | None] | None = None
            try:
                while True:
                    next_part = next_part or asyncio.create_task(_next(parts))
                    await asyncio.wait({next_part}, timeout=POLL_SECONDS)
                    lines = b""
                    if next_part.done():
                        part, next_part = next_part.result(), None
                        if part is None:
                            return
                        number, lines = part
                    if lines:
                        yield lines
                        keep_alive.reset()
                    elif keep_alive.is_due():
                        frame = FRAMINGS[media_type]
                        yield COMMENT if media_type == EVENT_STREAM else frame(run_events.waiting(number))
            finally:
                if next_part:
                    next_part.cancel()
                    await asyncio.wait({next_part})


async def _next(parts: AsyncGenerator[T, None]) -> T | None:
    return await anext(parts, None)


async def _resumed_parts(
    principal: Principal, run_id: UUID, after: int, media_type: str
) -> AsyncGenerator[tuple[int, bytes], None]:
    """Yield framed events with the number of the last one; no bytes after about a second without events."""
    frame = FRAMINGS[media_type]
    number = after
    try:
        async with aclosing(runs.watch(principal, run_id, after, replay_purged=False)) as parts:
            async for part in parts:
                lines: list[bytes] = []
                for number, event in part:
                    chunk = run_events.chunk(number, event)
                    if isinstance(event, TERMINAL):
                        chunk |= run_events.outcome(event, await runs.run_so_far(principal, run_id))
                    lines.append(frame(chunk))
                yield number, b"".join(lines)
    except errors.Refused:
        return
    except Exception:
        logger.exception("An answer could not be followed to its end")
