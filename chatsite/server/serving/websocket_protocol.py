"""uvicorn's WebSocket protocol, with a limit on the frames of each connection.

Consumers count messages, but pings, pongs and fragments never reach a consumer: one connection could keep the
event loop busy with them. Like uvicorn_server, this module depends on undocumented parts of uvicorn and
websockets; test_uvicorn_server fails if one of these changes.
"""

import logging
from collections.abc import Mapping
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

logger = logging.getLogger(__name__)

# A page sends a few messages within PERIOD; a browser may split a long one into dozens of frames.
MAX_FRAMES = 300
PERIOD = 10.0  # seconds
PIECE_BYTES = 4_096  # the parser gets data in pieces of this size, which have at most 682 frames
CLOSED_FLOOD = 4429  # the code that chat.portal.consumers uses for too many messages
NO_HANDSHAKE = (
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: 47\r\nconnection: close"
    b'\r\n\r\n{"error": "This is not a WebSocket handshake."}'
)
CLOSED_NOT_UTF8 = 1007  # RFC 6455, section 7.4.1


class LimitedWebSocketProtocol(WebSocketsSansIOProtocol):
    """A WebSocket connection that is closed when it sends more than MAX_FRAMES frames in PERIOD."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._frames = 0
        self._since = self.loop.time()

    async def send(self, message: Mapping[str, Any]) -> None:
        """Send a message, and end the handshake after a refusal (`websocket.http.response.…`).

        Otherwise uvicorn would treat the handshake as unfinished, and log an error.
        """
        await super().send(message)  # type: ignore[arg-type]
        if message["type"] == "websocket.http.response.body" and not message.get("more_body"):
            self.handshake_complete = True
            if self.initial_response is not None:
                logger.info("A socket was refused with %d.", self.initial_response[0])

    def data_received(self, data: bytes) -> None:
        for start in range(0, len(data), PIECE_BYTES):
            if self.transport.is_closing():
                return
            super().data_received(data[start : start + PIECE_BYTES])
            if self.conn.handshake_exc is not None and not self.transport.is_closing():
                # The parser refuses the handshake; without this, uvicorn would neither respond nor close.
                self.transport.write(NO_HANDSHAKE)
                self.transport.close()

    def send_receive_event_to_app(self) -> None:
        """Pass a message on, or end the connection if its text is not UTF-8.

        Without this, uvicorn would log a traceback for each such text, at level error.
        """
        if self.curr_msg_data_type == "text" and not self.close_sent:
            self.frames = [b"".join(self.frames)]
            try:
                self.frames[0].decode()
            except UnicodeDecodeError:
                self.frames = []
                self._fail(CLOSED_NOT_UTF8, "The text is not UTF-8.")
                return
        super().send_receive_event_to_app()

    def handle_events(self) -> None:
        now = self.loop.time()
        if now - self._since > PERIOD:
            self._frames, self._since = 0, now
        self._frames += len(self.conn.events)
        super().handle_events()
        if self._frames > MAX_FRAMES and not self.transport.is_closing():
            self._fail(CLOSED_FLOOD, "Too many frames.")

    def _fail(self, code: int, reason: str) -> None:
        """Close the connection, with a code if the handshake is complete."""
        if self.handshake_complete and not self.close_sent:
            self.conn.fail(code, reason)
            self.handle_parser_exception()
        else:
            self.transport.abort()
