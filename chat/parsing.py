"""Reading questions that come as forms with images."""

from io import BytesIO
from typing import Any

from django.conf import settings
from rest_framework import exceptions, parsers

from chatsite.parsing import StrictJSONParser

from .attachments import attach
from .multipart import parts
from .requests import InvalidRequest


class AttachmentParser(parsers.BaseParser):
    """A part `json` with the request, and files, which are put into its messages.

    Gives a dictionary, as Django REST framework's search for a CSRF token in forms expects.
    """

    media_type = "multipart/form-data"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        files: dict[str, bytes] = {}
        try:
            for part in parts(stream.read(), media_type or ""):
                if part.name in files:
                    raise InvalidRequest(f"The part “{part.name[:100]}” comes twice.", part.name)
                files[part.name] = part.data
        except ValueError:
            raise exceptions.ParseError("The body is not valid multipart/form-data.") from None
        if "json" not in files:
            raise InvalidRequest("The part “json” is missing: it holds the request.", "json")
        body = _request(files.pop("json"))
        _without_files(body)
        attach(body, files, readable=settings.CHAT_MODEL_READS_IMAGES)
        return body


def _request(data: bytes) -> dict[str, Any]:
    try:
        body = StrictJSONParser().parse(BytesIO(data))
    except exceptions.ParseError:
        raise InvalidRequest("The part “json” is not valid JSON.", "json") from None
    if not isinstance(body, dict):
        raise InvalidRequest("The part “json” must be a JSON object.", "json")
    return body


def _without_files(body: dict[str, Any]) -> None:
    """Files come as parts; what the client leaves in their place in the JSON says nothing."""
    messages = body.get("messages")
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict):
            message.pop("files", None)
