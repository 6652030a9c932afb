"""Incremental parser of server-sent events (WHATWG HTML, “Interpreting an event stream”).

Two deviations of real servers are accepted: events that end with one line feed instead of a blank line, and
llama.cpp's former `error:` field.
"""

import json

from .chat_model import ModelError

MAX_EVENT_BYTES = 1_000_000  # limit for one line, and for the data of one event
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
DONE = b"[DONE]"
FIELDS = frozenset({b"", b"data", b"event", b"id", b"retry", b"error"})

ServerEvent = tuple[bytes, bytes]  # type (b"" if none was given) and data of an event


class EventParser:
    """Parses pieces of the body. `done` is set after [DONE], which ends a chat completion."""

    def __init__(self) -> None:
        self.done = False
        self._line: list[bytes] = []  # pieces of the current line
        self._line_bytes = 0
        self._after_return = False  # whether the data ends with CR; a line feed that follows belongs to it
        self._first_line_read = False
        self._recognized = False
        self._type = b""
        self._data: list[bytes] = []  # data lines of the current event
        self._data_bytes = 0

    def feed(self, piece: bytes, *, last: bool = False) -> list[ServerEvent]:
        """Add a piece; return the events that end in it. Raises ModelError for invalid or oversized data."""
        events: list[ServerEvent] = []
        for line in self._lines(piece, last=last):
            if not line:
                self._dispatch(events)
                continue
            name, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if name == b"data":
                self._recognized = True
                self._dispatch_if_whole(events)
                if not self._data and value.strip() == DONE:
                    self.done = True
                    return events
                self._add(value)
            elif name == b"event":
                self._type = value
            elif name == b"error":
                self._recognized = True
                events.append((name, value))
            elif not self._recognized and name not in FIELDS and line.strip():
                raise ModelError("upstream_protocol", detail="not an event stream")
        if last:
            self._dispatch(events)
        elif piece.endswith((b"\n", b"\r")):
            self._dispatch_if_whole(events)
        return events

    def _lines(self, piece: bytes, *, last: bool) -> list[bytes]:
        """Return the lines that `piece` completes.

        A line ends with a line feed, a carriage return, or both.
        """
        if self._after_return and piece:
            self._after_return = False
            piece = piece.removeprefix(b"\n")
        if not last and b"\n" not in piece and b"\r" not in piece:
            self._hold(piece)
            return []
        data = b"".join([*self._line, piece])
        self._line, self._line_bytes = [], 0
        if not self._first_line_read:
            self._first_line_read = True
            data = data.removeprefix(BYTE_ORDER_MARK)
        lines = data.splitlines()
        self._after_return = data.endswith(b"\r")
        if not last and lines and not data.endswith((b"\n", b"\r")):
            self._hold(lines.pop())
        return lines

    def _hold(self, piece: bytes) -> None:
        self._line.append(piece)
        self._line_bytes += len(piece)
        if self._line_bytes > MAX_EVENT_BYTES:
            raise ModelError("upstream_protocol", detail="a line without an end")

    def _add(self, value: bytes) -> None:
        self._data.append(value)
        self._data_bytes += len(value)
        if self._data_bytes > MAX_EVENT_BYTES:
            raise ModelError("upstream_protocol", detail="an event without an end")

    def _dispatch(self, events: list[ServerEvent]) -> None:
        data = b"\n".join(self._data)
        if data and not data.isspace():
            events.append((self._type, data))
        self._type, self._data, self._data_bytes = b"", [], 0

    def _dispatch_if_whole(self, events: list[ServerEvent]) -> None:
        """End an event whose only data line is complete JSON: no further line can belong to it.

        Only the first data line is tried: otherwise an event with many lines would be parsed again at each of
        them.
        """
        if len(self._data) == 1:
            try:
                json.loads(self._data[0])
            except (ValueError, RecursionError):
                return
            self._dispatch(events)
