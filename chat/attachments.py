"""Images sent with a question. Their type is determined from their bytes, not from their names."""

import re
from typing import Any

from chat import errors
from chat.requests import (
    ImageInput,
    InvalidRequest,
)

MAX_IMAGES = 8
MAX_IMAGE_BYTES = 5_000_000

_PLACE = re.compile(r"messages\[(\d{1,4})\]\.files\[(\d{1,4})\]")
_BEGINNINGS = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg"}
_BEGINNINGS |= {b"GIF87a": "image/gif", b"GIF89a": "image/gif"}


def attach(body: dict[str, Any], files: dict[str, bytes], *, readable: bool) -> None:
    """Append each file to `files` of the message that the file's name, `messages[i].files[j]`, refers to.

    `readable` says whether the model reads images. Raises InvalidRequest.
    """
    placed: dict[tuple[int, int], ImageInput] = {}
    for name, data in files.items():
        place = _PLACE.fullmatch(name)
        if place is None:
            shown = name[:100]
            raise InvalidRequest(
                f"“{shown}” is not the name of a part: expected “json” or “messages[0].files[0]”."
            )
        if not readable:
            raise InvalidRequest(f"“{name}” cannot be read: this site’s model reads text only.", name)
        placed[int(place[1]), int(place[2])] = image(name, data)
    if len(placed) > MAX_IMAGES:
        raise InvalidRequest(errors.words("too_many_images"), "messages")
    messages = body.get("messages")
    for (message, file), attached in sorted(placed.items(), key=lambda item: item[0]):
        member = f"messages[{message}]"
        if not isinstance(messages, list) or message >= len(messages):
            raise InvalidRequest(f"“{member}.files[{file}]” belongs to no message.", member)
        if isinstance(messages[message], dict):
            messages[message].setdefault("files", []).append(attached)


def image(name: str, data: bytes) -> ImageInput:
    """The image in these bytes. Errors refer to the member or part `name`. Raises InvalidRequest."""
    if len(data) > MAX_IMAGE_BYTES:
        limit = f"{MAX_IMAGE_BYTES // 1_000_000} MB"
        raise InvalidRequest(f"“{name}” is larger than {limit}.", name, status=413)
    for beginning, media_type in _BEGINNINGS.items():
        if data.startswith(beginning):
            return ImageInput(media_type, data)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return ImageInput("image/webp", data)
    raise InvalidRequest(f"“{name}” must be an image: PNG, JPEG, GIF or WebP.", name, status=415)
