"""Sends a person's data as one zip file without holding it in memory."""

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import BinaryIO

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.cache import cache
from django.core.handlers.asgi import ASGIRequest
from django.http import FileResponse, HttpRequest
from django.http.response import HttpResponseBase

from chatsite.accounts import looks
from chatsite.accounts.models import User
from chatsite.db.threads import request_may_wait

from .persons import export

CHUNK_BYTES = 65_536
MAX_SECONDS = 600  # after which an export that never finished is disregarded


class ExportRunning(Exception):
    """The caller's last export is still running."""


def export_response(
    request: HttpRequest, person: User, *, actor: User, name: str, reason: str = ""
) -> HttpResponseBase:
    """The file for `actor`, one at a time, because exports are expensive. Raises ExportRunning.

    For another person's data, `reason` is recorded first.
    """
    request_may_wait()
    if not cache.add(f"export:{actor.pk}", True, MAX_SECONDS):
        raise ExportRunning
    try:
        if actor.pk != person.pk:
            looks.begin_export(actor, person, reason)
        with tempfile.TemporaryDirectory(
            dir=settings.FILE_UPLOAD_TEMP_DIR, ignore_cleanup_errors=True
        ) as folder:
            path = Path(folder) / "export.zip"
            export(person, path, actor=actor)
            file = path.open("rb")
        # The file has no name any more: the system frees it when it has been sent.
        response = FileResponse(file, as_attachment=True, filename=name)
        if isinstance(request, ASGIRequest):
            response.streaming_content = _pieces(file)  # Django would load the whole file
        return response
    finally:
        cache.delete(f"export:{actor.pk}")


async def _pieces(file: BinaryIO) -> AsyncIterator[bytes]:
    read = sync_to_async(file.read, thread_sensitive=False)
    while piece := await read(CHUNK_BYTES):
        yield piece
