"""Streaming responses that end what they iterate, also when the reader goes away."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from uuid import UUID

from django.http import StreamingHttpResponse

from chatsite.accounts.principals import Principal

from . import errors, runs
from .dialects import Dialect
from .framing import FRAMINGS


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
    """One exchange in a dialect's chunks, framed; losing the right to read ends it with an error chunk."""
    frame = FRAMINGS[dialect.stream_type]
    encoder = dialect.encoder()
    try:
        async with aclosing(runs.follow(principal, run_id)) as numbered:
            async for _, event in numbered:
                for chunk in encoder.encode(event):
                    yield frame(chunk)
    except errors.Refused as refusal:
        yield frame(dialect.error(refusal.message, refusal.code))
