"""Bodies of `multipart/form-data` as their parts, with bounds.

Django's own reader takes a part without a file name for text and recodes it; the protocol asks for no names.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from django.utils.http import parse_header_parameters

PARTS_MOST = 50
HEAD_MOST = 4_000  # bytes of one part's headers
BOUNDARY_MOST = 200  # characters


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    data: bytes


def parts(body: bytes, content_type: str) -> Iterator[Part]:
    """The parts in their order. Raises ValueError for what is not well formed or too much."""
    _, parameters = parse_header_parameters(content_type)
    boundary = parameters.get("boundary", "").encode("latin-1", "replace")
    if not 0 < len(boundary) <= BOUNDARY_MOST:
        raise ValueError("no boundary")
    mark = b"\r\n--" + boundary
    body = b"\r\n" + body
    if body.count(mark) > PARTS_MOST + 1:
        raise ValueError("too many parts")
    _, *pieces = body.split(mark)
    if not pieces or not pieces[-1].startswith(b"--"):
        raise ValueError("no end")
    for piece in pieces[:-1]:
        head, found, data = piece.partition(b"\r\n\r\n")
        if not found or len(head) > HEAD_MOST:
            raise ValueError("no head")
        yield Part(_name(head), data)


def _name(head: bytes) -> str:
    for line in head.decode("utf-8", "replace").split("\r\n"):
        header, _, value = line.partition(":")
        if header.strip().lower() == "content-disposition":
            return parse_header_parameters(value.strip())[1].get("name", "")
    return ""
