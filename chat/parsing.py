"""Reading the bodies of requests, with bounds."""

from typing import Any

import jiter
from django.conf import settings
from rest_framework import exceptions, parsers

from .attachments import attach
from .multipart import parts
from .requests import InvalidRequest


class StrictJSONParser(parsers.BaseParser):
    """JSON with bounds: no NaN, no depth that exhausts the stack, no lone surrogates."""

    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        return _json(stream.read(), "The body")


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
        body = _json(files.pop("json"), "The part “json”")
        if not isinstance(body, dict):
            raise InvalidRequest("The part “json” must be a JSON object.", "json")
        _without_files(body)
        attach(body, files, readable=settings.CHAT_MODEL_READS_IMAGES)
        return body


def _json(data: bytes, what: str) -> Any:
    try:
        return jiter.from_json(data, allow_inf_nan=False)
    except (ValueError, RecursionError):
        raise exceptions.ParseError(f"{what} is not valid JSON.") from None


def _without_files(body: dict[str, Any]) -> None:
    """Files come as parts; what the client leaves in their place in the JSON says nothing."""
    messages = body.get("messages")
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict):
            message.pop("files", None)
