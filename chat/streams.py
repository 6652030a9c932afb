"""Streaming responses that end what they iterate, also when the reader goes away."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from uuid import UUID

from django.http import StreamingHttpResponse

from chatsite.accounts.principals import Principal

from . import errors, runs
from .dialects import Dialect
from .events import Failed
from .framing import FRAMINGS

logger = logging.getLogger(__name__)


class ClosingStream(StreamingHttpResponse):
    """Closes its asynchronous generator when the response ends.

    Django leaves that to the garbage collector, which does it at a moment of its own and in another task.
    """

    def __init__(self, content: AsyncGenerator[bytes, None], media_type: str) -> None:
        self._content = content
        super().__init__(self._closing(), content_type=media_type)
        self.headers["Cache-Control"] = "no-store"
        self.headers["X-Accel-Buffering"] = "no"

    async def _closing(self) -> AsyncIterator[bytes]:
        async with aclosing(self._content) as chunks:
            async for chunk in chunks:
                yield chunk


async def exchange_stream(
    principal: Principal, run_id: UUID, dialect: Dialect
) -> AsyncGenerator[bytes, None]:
    """One exchange in a dialect's chunks, framed, with the dialect's gap between them.

    Losing the right to read, or the database, ends it with an error chunk.
    """
    frame = FRAMINGS[dialect.stream_type]
    told = float("-inf")
    async with aclosing(_chunks(principal, run_id, dialect)) as chunks:
        async for chunk in chunks:
            await asyncio.sleep(max(0.0, told + dialect.gap - time.monotonic()))
            yield frame(chunk)
            told = time.monotonic()


async def _chunks(principal: Principal, run_id: UUID, dialect: Dialect) -> AsyncGenerator[object, None]:
    encoder = dialect.encoder()
    failed = Failed("failed", "internal")
    try:
        async with aclosing(runs.follow(principal, run_id)) as numbered:
            async for _, event in numbered:
                for chunk in encoder.encode(event):
                    yield chunk
        return
    except errors.Refused as refusal:
        failed = Failed("failed", refusal.code)
    except Exception:
        logger.exception("An answer could not be followed to its end")
    for chunk in encoder.encode(failed):
        yield chunk
