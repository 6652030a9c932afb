"""Parses questions sent as multipart forms with images."""

from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from django.conf import settings
from django.utils.http import parse_header_parameters
from django.utils.translation import gettext
from rest_framework import exceptions, parsers

from chat.attachments import attach
from chat.requests import InvalidRequest
from chatsite.http.json_parser import StrictJSONParser


class AttachmentParser(parsers.BaseParser):
    """Reads the request from the part `json`, and adds files from other parts to its messages.

    Returns a dictionary, because Django REST framework looks for a CSRF token in the result.
    """

    media_type = "multipart/form-data"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        files: dict[str, bytes] = {}
        try:
            for part in parts(stream.read(), media_type or ""):
                if part.name in files:
                    raise InvalidRequest(f"The part “{part.name[:100]}” occurs twice.", part.name)
                files[part.name] = part.data
        except ValueError:
            raise exceptions.ParseError(gettext("The body is not valid multipart/form-data.")) from None
        if "json" not in files:
            raise InvalidRequest("The part “json”, which contains the request, is missing.", "json")
        try:
            body = StrictJSONParser().parse(BytesIO(files.pop("json")))
        except exceptions.ParseError:
            raise InvalidRequest("The part “json” is not valid JSON.", "json") from None
        if not isinstance(body, dict):
            raise InvalidRequest("The part “json” must be a JSON object.", "json")

        # Remove the placeholders that clients send for the files, which arrive as separate parts.
        messages = body.get("messages")
        for message in messages if isinstance(messages, list) else ():
            if isinstance(message, dict):
                message.pop("files", None)
        attach(body, files, readable=settings.CHAT_MODEL_READS_IMAGES)
        return body


MAX_PARTS = 50
MAX_HEAD_BYTES = 4_000  # bytes of one part's headers
MAX_BOUNDARY = 200  # characters of a boundary


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    data: bytes


def parts(body: bytes, content_type: str) -> Iterator[Part]:
    """Yield the parts in order. Raises ValueError for malformed bodies and exceeded limits."""
    _, parameters = parse_header_parameters(content_type)
    boundary = parameters.get("boundary", "").encode("latin-1", "replace")
    if not 0 < len(boundary) <= MAX_BOUNDARY:
        raise ValueError("no boundary")
    mark = b"\r\n--" + boundary
    body = b"\r\n" + body
    if body.count(mark) > MAX_PARTS + 1:
        raise ValueError("too many parts")
    _, *pieces = body.split(mark)
    if not pieces or not pieces[-1].startswith(b"--"):
        raise ValueError("no end")
    for piece in pieces[:-1]:
        head, found, data = piece.partition(b"\r\n\r\n")
        if not found or len(head) > MAX_HEAD_BYTES:
            raise ValueError("no head")
        name = ""
        for line in head.decode("utf-8", "replace").split("\r\n"):
            header, _, value = line.partition(":")
            if header.strip().lower() == "content-disposition":
                name = parse_header_parameters(value.strip())[1].get("name", "")
                break
        yield Part(name, data)
