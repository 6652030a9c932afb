"""One connection to a model's server, read as the bytes come in.

A token costs a callback of the parser: no task, no cancel scope and no timer of its own. What the ready-made
client does for each read takes more time than the rest of its way. Whoever reads a body may do it in strides:
what comes soon after something was read then stays with the kernel, until there is more of it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import cast

import httptools
import httpx2

STRIDE_SECONDS = 0.2  # between two times that a body is read
MOST_LEFT_ALONE = 8_192  # bytes: who has more to say at a time is read at once
MOST_BUFFERED = 65_536  # bytes that wait for a reader, before the server has to
MOST_HEAD = 65_536  # bytes in a row that are no body: headers, and what may follow a body
MOST_WHOLE = 1_000_000  # bytes of a body that is read as a whole

Headers = list[tuple[bytes, bytes]]


class Wire(asyncio.Protocol):
    """One request after the other; what comes is read with :meth:`head`, then :meth:`chunk` to the end."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._stride: asyncio.TimerHandle | None = None
        self._by = 0.0
        self.lost = False
        self._begin()

    def _begin(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._received: list[bytes] = []
        self._size = self._bodiless = 0
        self._paused = False
        self._headers: Headers = []
        self._status = 0
        self._framed = False  # whether the head says where the body ends
        self._whole = False
        self._error: Exception | None = None
        self._waiting: asyncio.Future[None] | None = None

    @property
    def reusable(self) -> bool:
        """Whether another request may follow: the answer was read to its end, and the server agrees."""
        return self._whole and not self.lost and not self._received and bool(self._parser.should_keep_alive())

    def ask(self, request: bytes) -> None:
        assert self._transport is not None
        self._begin()
        self._transport.write(request)

    async def head(self, by: float) -> tuple[int, Headers]:
        """Status and headers. Raises TimeoutError at the moment `by` of the loop's time, and HTTPError."""
        while not self._status:
            self._raise_error()
            await self._news(by)
        return self._status, self._headers

    async def chunk(self, by: float, *, at_once: bool = True) -> bytes:
        """What of the body has come, at least a byte, and nothing at its end. Where it need not be at once,
        what follows is left alone for a stride. Raises as :meth:`head`."""
        while not self._received:
            if self._whole:
                return b""
            self._raise_error()
            await self._news(by)
        data = self._received[0] if len(self._received) == 1 else b"".join(self._received)
        self._received.clear()
        self._size = 0
        if at_once or len(data) > MOST_LEFT_ALONE:
            self._resume()
        elif self._stride is None and not self._whole:
            self._pause()
            seconds = min(STRIDE_SECONDS, (by - self._loop.time()) / 2)
            self._stride = self._loop.call_later(seconds, self._end_of_stride)
        return data

    def _pause(self) -> None:
        if not self._paused and self._transport and not self._transport.is_closing():
            self._paused = True
            self._transport.pause_reading()

    def _resume(self) -> None:
        if self._paused and self._transport and not self._transport.is_closing():
            self._paused = False
            self._transport.resume_reading()

    def close(self) -> None:
        """At once, whatever is on its way."""
        self.lost = True
        self._forget_timers()
        if self._transport:
            self._transport.abort()
        self._wake()

    def _forget_timers(self) -> None:
        for timer in (self._timer, self._stride):
            if timer:
                timer.cancel()
        self._timer = self._stride = None

    def _raise_error(self) -> None:
        if self._error:
            raise self._error
        if self.lost:
            raise httpx2.RemoteProtocolError("The server closed the connection.")

    async def _news(self, by: float) -> None:
        """One timer serves all reads of a connection: most of them move its moment before it comes."""
        if self._loop.time() >= by:
            raise TimeoutError  # a server that floods us leaves the timer no turn
        self._by = by
        if self._timer is None or self._timer.when() > by:
            if self._timer:
                self._timer.cancel()
            self._timer = self._loop.call_at(by, self._ring)
        self._waiting = self._loop.create_future()
        try:
            await self._waiting
        finally:
            self._waiting = None

    def _ring(self) -> None:
        self._timer = None
        if self._waiting is None or self._waiting.done():
            return
        if self._loop.time() < self._by:
            self._timer = self._loop.call_at(self._by, self._ring)
        else:
            self._waiting.set_exception(TimeoutError())

    def _end_of_stride(self) -> None:
        self._stride = None
        self._resume()

    def _wake(self) -> None:
        if self._waiting and not self._waiting.done():
            self._waiting.set_result(None)

    # Of the connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass

    def data_received(self, data: bytes) -> None:
        known = self._size
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._error = httpx2.RemoteProtocolError("The server does not speak HTTP.")
        self._bodiless = 0 if self._size > known else self._bodiless + len(data)
        if self._bodiless > MOST_HEAD:
            self._error = httpx2.RemoteProtocolError("The server's headers are too large.")
        if self._error and self._transport:
            self._transport.abort()
        elif self._size > MOST_BUFFERED:
            self._pause()
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        self._forget_timers()
        if exc and not self._whole and not self._error:
            self._error = httpx2.ReadError(type(exc).__name__)
        elif self._status and not self._framed and not self._error:
            self._whole = True  # such a body ends with its connection
        self._wake()

    # Of the parser

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._status:
            self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if 100 <= status < 200:
            self._headers = []
            return
        names = {name.lower() for name, _ in self._headers}
        self._framed = bool(names & {b"content-length", b"transfer-encoding"})
        self._status = status

    def on_body(self, body: bytes) -> None:
        self._received.append(body)
        self._size += len(body)

    def on_message_complete(self) -> None:
        self._whole = self._status > 0


class Body(httpx2.AsyncByteStream):
    """The body of one answer, for the ready-made client, or in pieces with a moment for each."""

    def __init__(self, wire: Wire, seconds: float, release: Callable[[Wire], None]) -> None:
        self._wire = wire
        self._seconds = seconds  # between two pieces, where the reader gives no moment
        self._release = release
        self._closed = False

    async def chunk(self, by: float, *, at_once: bool = True) -> bytes:
        """As :meth:`Wire.chunk`."""
        return await self._wire.chunk(by, at_once=at_once)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """For who reads it whole, and knows no limit: errors and short texts end after MOST_WHOLE."""
        length = 0
        while length <= MOST_WHOLE and (data := await self._timed()):
            yield data
            length += len(data)

    async def _timed(self) -> bytes:
        try:
            return await self._wire.chunk(asyncio.get_running_loop().time() + self._seconds)
        except TimeoutError:
            raise httpx2.ReadTimeout("The server says nothing.") from None

    async def aclose(self) -> None:
        if not self._closed:
            self._closed = True
            self._release(self._wire)
