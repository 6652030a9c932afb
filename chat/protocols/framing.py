"""Encodes chunks as bytes, one function per framing."""

import json
from collections.abc import Callable
from typing import Any

Framing = Callable[[Any], bytes]

EVENT_STREAM = "text/event-stream"
JSON_LINES = "application/json-lines"
COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
COMMENT = b": waiting\n\n"  # a comment in an event stream, which clients ignore


def json_lines(chunk: Any) -> bytes:
    """One value per line, each followed by a line feed."""
    return _compact(chunk) + b"\n"


def server_sent_event(chunk: Any) -> bytes:
    """One event per chunk; text is sent unchanged, anything else as JSON.

    The event's id is the `seq` of the chunk, if it has one. If it has a `sequence_number` instead, its `type`
    is the name of the event.
    """
    data = chunk.encode() if isinstance(chunk, str) else _compact(chunk)
    head = b""
    if isinstance(chunk, dict):
        if (number := chunk.get("seq")) is not None:
            head = b"id: %d\n" % number
        elif "sequence_number" in chunk:
            head = b"event: %s\n" % str(chunk["type"]).encode()
    return head + b"data: " + data + b"\n\n"


def _compact(chunk: Any) -> bytes:
    return COMPACT.encode(chunk).encode()


FRAMINGS: dict[str, Framing] = {
    JSON_LINES: json_lines,
    "application/jsonl": json_lines,
    EVENT_STREAM: server_sent_event,
}
