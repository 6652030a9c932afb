"""Objects as bytes on the wire: one function for each framing."""

import json
from collections.abc import Callable

from .events import Json

Framing = Callable[[Json], bytes]


def json_lines(value: Json) -> bytes:
    """One object a line, always ended by a line feed."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


FRAMINGS: dict[str, Framing] = {"application/json-lines": json_lines}
