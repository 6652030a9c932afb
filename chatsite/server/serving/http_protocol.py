"""uvicorn's HTTP protocol, with limits on connections, heads and bodies.

Like uvicorn_server, this module depends on undocumented parts of uvicorn and httptools. test_uvicorn_server
fails if one of these changes.
"""

import asyncio
import json
import resource
import socket
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import httptools
from django.conf import settings
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from chatsite import metrics
from chatsite.http.address_limit import GONE_KEY

MAX_HEAD_BYTES = 65_536  # request line and headers
# Limits for headers that Django parses on the event loop, some of them in more than linear time.
MAX_HEADER_BYTES = {b"cookie": 16_384, b"content-type": 1_024, b"accept": 4_096, b"accept-language": 4_096}
FRAMING = frozenset({b"content-length", b"transfer-encoding"})  # a body is framed by one of these headers
MAX_UPGRADE_LINE_BYTES = 8_000  # the parser of WebSocket handshakes fails at longer lines
BODY_PIECE_BYTES = 4_096  # the parser gets a body in pieces of this size
HEAD_SECONDS = 10.0  # from the first to the last byte of a head
SILENT_SECONDS = 30.0  # from the connection to the first byte of a request
BODY_BYTES_PER_SECOND = 500  # slowest accepted rate of a body, averaged over any BODY_SECONDS
BODY_SECONDS = 30.0
PACE_SECONDS = 10.0  # pause between two checks of a body's rate
# A chunked body may have MAX_FRAMING_BYTES of framing (sizes, extensions, trailers), plus FRAMING_RATIO bytes
# for each byte of the body, which is enough for chunks of six bytes on average.
MAX_FRAMING_BYTES = 65_536
FRAMING_RATIO = 1
# After a piece of a body with more chunks than this, parsing pauses: each chunk costs a call of `on_body`.
MAX_CHUNKS = 40
CHUNKS_PER_SECOND = 100_000  # limit for chunks in such pieces, for all connections together
TURN_SECONDS = 10.0  # longest pause after such a piece; a connection that would have to wait longer is closed
# Time for which a refused caller's data is still read, because an immediate reset would discard the response.
LINGER_SECONDS = 1.0
SPARE_FILES = 128  # descriptors reserved for everything but client connections: database, files, listeners
HALF_CLOSED_PROBE_SECONDS = 15

REFUSALS = {
    400: (b"Bad Request", "The request is not valid HTTP."),
    408: (b"Request Timeout", "The request did not arrive in time."),
    431: (b"Request Header Fields Too Large", "The request’s head, or one of its headers, is too large."),
    501: (b"Not Implemented", "The only supported transfer encoding is “chunked”."),
    503: (b"Service Unavailable", "Too many connections are open. Try again in a few seconds."),
}
ENDING = "The site is restarting. Send this again in a few seconds."


def raise_file_limit() -> None:
    """Raise this process's limit on open files to the highest value that the system permits."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def max_connections() -> int:
    """The number of connections that leaves enough descriptors for everything else."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(64, soft - SPARE_FILES) if soft != resource.RLIM_INFINITY else 1_000_000


class PausedFlowControl(FlowControl):
    """Keeps reading paused while received bytes wait for the parser, even if uvicorn resumes it."""

    held = False

    def resume_reading(self) -> None:
        if not self.held:
            super().resume_reading()


class RequestParser(httptools.HttpRequestParser):
    """A parser that continues after a head that offers to upgrade to anything but WebSocket."""

    def __init__(self, connection: "LimitedProtocol") -> None:
        super().__init__(connection)
        self._connection = connection
        self.set_dangerous_leniencies(lenient_data_after_close=True)  # like uvicorn's

    def feed_data(self, data: Any) -> None:
        try:
            super().feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            if not self._connection.end_upgrade(upgrade.args[0]):
                raise


class LimitedProtocol(HttpToolsProtocol):
    """HTTP on one connection, with limits on the time and size of each part.

    One timer limits the time in each state of the connection: waiting for a request, reading a head, reading
    a body, closing. Received data does not restart that timer. A second timer drops clients that read too
    slowly.
    """

    flow: "PausedFlowControl"
    silent: dict["LimitedProtocol", None] = {}  # connections without any request so far, oldest first
    next_turn = 0.0  # when the next connection may continue after a piece with many chunks
    accept_more: Callable[[], object] | None = None  # called after a connection was accepted

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._deadline: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._in_head = self._in_body = self._refused = self._upgraded = False
        self._malformed = False  # whether the parser failed, and would fail again with further data
        self._heads = 0  # heads that began in the current piece
        self._head_bytes = self._fields_bytes = 0
        self._header_bytes: Counter[bytes] = Counter()  # sizes of the headers in MAX_HEADER_BYTES
        self._longest_line = 0
        self._wire_bytes = self._body_bytes = 0  # bytes of the body: as received, and without framing
        self._body_credit = 0.0  # bytes by which the body may fall behind the required rate
        self._body_seen = 0
        self._body_looked = 0.0
        self._cycles: list[Any] = []  # requests that are running, or waiting for an earlier one
        # Bytes received while a request waits for an earlier one, or the connection for its turn, and the
        # offset of the first unparsed byte. With an offset, the bytes need not be copied for each request.
        self._unread, self._unread_from = b"", 0
        self._chunks = 0  # chunks of the body in the current piece
        self._framing = b""  # the header that frames the body after an upgrade offer (see end_upgrade)
        self._reframing = False
        self._offers_other = False  # whether the newest head offers another protocol than WebSocket
        self._piece_read = 0  # bytes of the current piece that were read
        self.parser = RequestParser(self)
        self._turn: asyncio.TimerHandle | None = None

    # --- the connection ---

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow = PausedFlowControl(transport)
        if self.accept_more is not None:
            self.accept_more()
        if len(self.connections) > max_connections():
            oldest = next(iter(self.silent), None)
            if oldest is None:
                self._refuse(503)
                return
            oldest._end()
            metrics.CONNECTIONS_ENDED.add("evicted")
        self.silent[self] = None
        self._limit(SILENT_SECONDS, self._end)

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)
        # uvicorn notifies only the newest request; an earlier one would write to the closed transport.
        for cycle in self._cycles:
            cycle.disconnected = True
            cycle.message_event.set()
            gone: asyncio.Future[None] = cycle.scope[GONE_KEY]
            if not gone.done():
                gone.set_result(None)
        self.pipeline.clear()

    def eof_received(self) -> bool:  # type: ignore[override]
        """Keep a half-closed connection open until all complete requests are answered.

        A caller that has closed both directions looks the same at first; a failed write or TCP keep-alive
        reveals the difference.
        """
        if self._refused or self._in_body or self.cycle is None or self.cycle.response_complete:
            return False
        self.cycle.keep_alive = False  # applies to the newest request; earlier ones are answered first
        caller = self.transport.get_extra_info("socket")
        if caller is not None and caller.family in (socket.AF_INET, socket.AF_INET6):
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if hasattr(socket, "TCP_KEEPIDLE"):  # Linux
                caller.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, HALF_CLOSED_PROBE_SECONDS)
        return True

    def handle_websocket_upgrade(self) -> None:
        if self._refused:
            return
        if self._longest_line > MAX_UPGRADE_LINE_BYTES:
            self._refuse(431)
            return
        self._upgraded = True
        self._forget()
        super().handle_websocket_upgrade()

    def end_upgrade(self, end: int) -> bool:
        """Continue as HTTP/1.1 after a head that offers another protocol than WebSocket.

        Returns whether the head, which ends at byte `end` of the piece, makes such an offer. HTTP permits
        ignoring the offer. But after such a head, the parser would parse the body as the next request;
        therefore a new parser reads the body, after a head with only the header that frames it.
        """
        if not self._offers_other:
            return False
        self._piece_read = end
        if self._framing:
            self.parser = RequestParser(self)
            self._reframing = True
            self.parser.feed_data(b"POST / HTTP/1.1\r\n" + self._framing + b"\r\n\r\n")
            self._reframing, self._framing = False, b""
        return True

    def data_received(self, data: bytes) -> None:
        if self._malformed or self._refused:  # what a refused client still sends is read, and not parsed
            return
        if self._unread:
            data = self._unread[self._unread_from :] + data
        if self._turn is None:
            self._parse(data, 0)
        else:
            self._unread, self._unread_from = data, 0

    def _parse(self, data: bytes, start: int) -> None:
        """Feed the parser piece by piece.

        The rest stays unparsed while a request waits for an earlier one, or the connection for its turn.
        Because of the pieces, an oversized head is refused early, and one connection cannot queue thousands
        of pipelined requests.
        """
        while start < len(data) and not self.pipeline and self._turn is None:
            end = self._piece_end(data, start)
            piece = data[start:end]
            in_head, in_body, self._heads, self._chunks = self._in_head, self._in_body, 0, 0
            self._piece_read = end - start
            super().data_received(piece)
            start += self._piece_read
            if self._upgraded or self._refused:
                return
            if self.transport.is_closing():  # an earlier piece exceeded a limit
                self._limit(settings.READER_SECONDS, self.transport.abort)
                return
            if not self._count(self._piece_read, in_head, in_body):
                return
            if self._chunks > MAX_CHUNKS and not self.transport.is_closing():
                self._await_turn()
        self._unread, self._unread_from = (data, start) if start < len(data) else (b"", 0)
        self.flow.held = bool(self._unread) or self._turn is not None
        if self.flow.held:
            self.flow.pause_reading()

    def _await_turn(self) -> None:
        """Pause parsing, so that all connections together do not exceed CHUNKS_PER_SECOND."""
        now = self.loop.time()
        if self.next_turn - now > TURN_SECONDS:
            self._end()
            return
        LimitedProtocol.next_turn = max(self.next_turn, now) + self._chunks / CHUNKS_PER_SECOND
        self._turn = self.loop.call_at(self.next_turn, self._take_turn)

    def _take_turn(self) -> None:
        self._turn = None
        if not self.transport.is_closing() and not self._refused:
            self._go_on()

    def _go_on(self) -> None:
        """Parse the remaining data; resume reading once all of it is parsed."""
        unread, start = self._unread, self._unread_from
        self._unread, self.flow.held = b"", False
        self._parse(unread, start)
        full = self.cycle is not None and len(self.cycle.body) > HIGH_WATER_LIMIT
        if not (self.flow.held or self.pipeline or full or self.transport.is_closing()):
            self.flow.resume_reading()

    def _piece_end(self, data: bytes, start: int) -> int:
        """The end of the next piece.

        A piece is at most one head, or BODY_PIECE_BYTES from within a body. If the body ends in the piece, no
        more than a few hundred requests fit into the rest.
        """
        if self._in_body:
            return min(start + BODY_PIECE_BYTES, len(data))
        end = data.find(b"\r\n\r\n", start, start + MAX_HEAD_BYTES)
        return end + 4 if end >= 0 else min(start + MAX_HEAD_BYTES, len(data))

    def _count(self, size: int, in_head: bool, in_body: bool) -> bool:
        """Count the bytes of a piece and apply the limits; False if one is exceeded.

        A piece counts only if it is within one head or one body, and does not complete it.
        """
        if self._in_head and not in_body and self._heads == (0 if in_head else 1):
            self._head_bytes += size
            if self._head_bytes > MAX_HEAD_BYTES:
                self._refuse(431)
                return False
        elif self._in_body and in_body and self._heads == 0:
            self._wire_bytes += size
            if self._wire_bytes - self._body_bytes > MAX_FRAMING_BYTES + FRAMING_RATIO * self._body_bytes:
                self._end()
                return False
        return True

    def send_400_response(self, msg: str) -> None:
        """Refuse a request that could not be parsed, in the same format as other refusals."""
        self._malformed = True
        if self._refused:
            return
        cycle = self.cycle
        if self._in_body and cycle is not None and not cycle.response_started:
            metrics.CONNECTIONS_ENDED.add("400")
            self._refuse_body(400, REFUSALS[400][1])
        else:
            self._refuse(400)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stalled = self.loop.call_later(settings.READER_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def end_slow_body(self) -> None:
        """Refuse a request whose body is still arriving, because the process is ending."""
        cycle = self.cycle
        if not self._in_body or self._refused or self._upgraded or cycle is None or cycle.response_started:
            return
        self._refuse_body(503, ENDING)

    def _refuse_body(self, status: int, words: str) -> None:
        """Refuse the newest request if all earlier ones are answered, and close the connection."""
        self._refused = True
        if all(earlier.response_complete for earlier in self._cycles if earlier is not self.cycle):
            self._write_refusal(status, words)
        self._end()

    # --- the parts of a request, as the parser finds them ---

    def on_message_begin(self) -> None:
        if self._reframing or self._refused:
            return
        super().on_message_begin()
        self.silent.pop(self, None)
        self._in_head, self._in_body = True, False
        self._heads += 1
        self._head_bytes = self._fields_bytes = self._longest_line = 0
        self._header_bytes.clear()
        self._limit(HEAD_SECONDS, self._head_is_late)

    def on_url(self, url: bytes) -> None:
        self._fields_bytes += len(url)
        self._longest_line += len(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # otherwise it is a trailer, which must not become a header of the running request
            self._fields_bytes += len(name) + len(value) + 4
            self._longest_line = max(self._longest_line, len(name) + len(value) + 4)
            if (known := name.lower()) in MAX_HEADER_BYTES:
                self._header_bytes[known] += len(value)
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if self._reframing or self._refused:
            return
        self._in_head, self._in_body = False, True
        self._wire_bytes = self._body_bytes = 0
        if self._fields_bytes > MAX_HEAD_BYTES or any(
            size > MAX_HEADER_BYTES[name] for name, size in self._header_bytes.items()
        ):
            self._refuse(431)
            return
        encodings = [value.strip().lower() for name, value in self.headers if name == b"transfer-encoding"]
        if encodings not in ([], [b"chunked"]):  # the parser treats “gzip, chunked” like “chunked”
            self._refuse(501)
            return
        self._body_credit = BODY_BYTES_PER_SECOND * BODY_SECONDS
        self._body_seen, self._body_looked = 0, self.loop.time()
        self._limit(BODY_SECONDS + PACE_SECONDS, self._body_is_due)
        earlier = self.cycle
        super().on_headers_complete()
        # uvicorn makes no cycle (its object for a request and its response) for a WebSocket.
        self._offers_other = self.parser.should_upgrade() and self.cycle is not earlier
        if self._offers_other:
            framing = [name + b": " + value for name, value in self.headers if name in FRAMING]
            self._framing = framing[0] if framing else b""
        if self.cycle is not None and self.cycle not in self._cycles:
            scope: dict[str, Any] = self.cycle.scope  # type: ignore[assignment]
            scope[GONE_KEY] = self.loop.create_future()  # the task of the request starts later
            self._cycles = [cycle for cycle in self._cycles if not cycle.response_complete] + [self.cycle]

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        self._chunks += 1
        if not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if self._framing and not self._reframing:
            return  # the body follows
        self._in_body = False
        if self._refused:
            return
        if self.cycle is not None and self.cycle.response_complete:
            self._limit(self.timeout_keep_alive, self._end)
        else:
            self._unlimit()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._unread and self._turn is None and not self.transport.is_closing() and not self._refused:
            self._go_on()
        if self.transport.is_closing():
            self._limit(settings.READER_SECONDS, self.transport.abort)
        elif self.cycle.response_complete and not self._in_head:
            self._limit(self.timeout_keep_alive, self._end)  # even while an unread body is still arriving

    # --- limits ---

    def _limit(self, seconds: float, then: Callable[[], None]) -> None:
        self._unlimit()
        self._deadline = self.loop.call_later(seconds, then)

    def _unlimit(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _forget(self) -> None:
        self._unlimit()
        for timer in (self._stalled, self._turn):
            if timer is not None:
                timer.cancel()
        self.silent.pop(self, None)

    def _head_is_late(self) -> None:
        self._refuse(408)

    def _body_is_due(self) -> None:
        """Continue if the body arrives fast enough, or if the site itself has paused reading.

        A fast beginning earns credit for at most BODY_SECONDS; otherwise the rest of a long body could arrive
        very slowly for days.
        """
        now, arrived = self.loop.time(), self._body_bytes - self._body_seen
        if not self.flow.read_paused:
            credit = self._body_credit + arrived - BODY_BYTES_PER_SECOND * (now - self._body_looked)
            self._body_credit = min(credit, BODY_BYTES_PER_SECOND * BODY_SECONDS)
        self._body_seen, self._body_looked = self._body_bytes, now
        if self._body_credit >= 0:
            self._limit(PACE_SECONDS, self._body_is_due)
        else:
            self._end()

    def _refuse(self, status: int) -> None:
        """Send an error without asking the application, read on for a moment, and close.

        While a request is still unanswered, close without an error.
        """
        self._refused = True
        metrics.CONNECTIONS_ENDED.add(str(status))
        if self.cycle is not None and not self.cycle.response_complete:
            self._end()  # an error would be taken for the pending response, or corrupt it
            return
        self._write_refusal(status, REFUSALS[status][1])
        self._limit(LINGER_SECONDS, self._end)

    def _write_refusal(self, status: int, words: str) -> None:
        reason = REFUSALS[status][0]
        body = json.dumps({"error": words}).encode()
        again = b"retry-after: 2\r\n" if status == 503 else b""
        self.transport.write(
            b"HTTP/1.1 %d %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n%sconnection: close"
            b"\r\n\r\n%s" % (status, reason, len(body), again, body)
        )

    def _end(self) -> None:
        """Close the connection; abort it if the client does not read the remaining data."""
        self.silent.pop(self, None)
        self._limit(settings.READER_SECONDS, self.transport.abort)
        self.transport.close()
