"""Chunks as bytes on the wire: one function for each framing."""

import json
from collections.abc import Callable
from typing import Any

Framing = Callable[[Any], bytes]


def json_lines(chunk: Any) -> bytes:
    """One value a line, always ended by a line feed."""
    return _compact(chunk) + b"\n"


def server_sent_event(chunk: Any) -> bytes:
    """One event a chunk; text is sent as it is, anything else as JSON."""
    data = chunk.encode() if isinstance(chunk, str) else _compact(chunk)
    return b"data: " + data + b"\n\n"


def _compact(chunk: Any) -> bytes:
    return json.dumps(chunk, ensure_ascii=False, separators=(",", ":")).encode()


FRAMINGS: dict[str, Framing] = {
    "application/json-lines": json_lines,
    "application/jsonl": json_lines,
    "text/event-stream": server_sent_event,
}
