"""Serves files of documents and images of their pages to people who may read them.

A document that the caller may not read results in a 404, like one that does not exist. Nothing that is served
can run scripts: files whose type allows scripts are downloaded under another type, and every file is
sandboxed.
"""

import contextlib
import functools
import hashlib
import logging
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http import HTTPStatus
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import RequestAborted
from django.core.files import File
from django.core.handlers.asgi import ASGIRequest
from django.http import Http404, HttpResponse, HttpResponseBase, JsonResponse, StreamingHttpResponse
from django.template.loader import render_to_string
from django.utils.cache import patch_vary_headers
from django.utils.http import content_disposition_header, parse_etags, quote_etag
from django.utils.translation import gettext_lazy
from rest_framework import views
from rest_framework.exceptions import APIException, NotAuthenticated
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from chatsite.accounts.api.authentication import KEY_HEADERS
from chatsite.accounts.api_keys import Scope
from chatsite.accounts.principal import Principal, still_valid
from chatsite.db.threads import reading_as, release_connection
from chatsite.dependency_internals import close_with, django_request
from chatsite.http import checked_transfer
from chatsite.normal_form import normal_form
from ingestion.file_names import ASCII_DIGITS
from ingestion.models import Document
from ingestion.parsing.formats import (
    ARCHIVE,
    BOOK,
    CALENDAR,
    CSV,
    JPEG,
    JSON,
    MARKUP,
    OLD_SHEETS,
    OLD_SLIDES,
    OLD_WORD,
    OPEN_SHEETS,
    OPEN_SLIDES,
    OPEN_TEXT,
    OUTLOOK,
    PAGED,
    PDF,
    PNG,
    RECORDS,
    RICH_TEXT,
    SHEETS,
    SLIDES,
    TABS,
    TEXT,
    TIFF,
    WEB,
    WORD,
)
from ingestion.parsing.process import TooSlow
from ingestion.parsing.sections import Unreadable
from ingestion.search.labels import (
    content_address,
    public_id_of,
)
from ingestion.search.name_resolution import NameResolution, resolve_name
from ingestion.storage import files

logger = logging.getLogger(__name__)

AMBIGUOUS = "Several documents that you can read have this name. Choose one by its URL."
# Show even a single choice, because the answer that cited this name meant another document.
SUCCESSOR = (
    "An answer cited another document by this name. You can read a document that has the name now, at"
    " its URL."
)
CHUNK_BYTES = 256 * 1024
STORAGE_THREADS = 16
# Possessive quantifiers avoid backtracking over all divisions of adjacent runs of white space.
RANGE = re.compile(r"\s*+bytes\s*+=\s*+(\d{0,18})\s*+-\s*+(\d{0,18})\s*+", re.ASCII)
# Show these formats as plain text: a browser would download CSV, and Markdown may contain HTML.
SHOWN = {kind.media_type: "text/plain; charset=utf-8" for kind in (TEXT, MARKUP, CSV, TABS, JSON, CALENDAR)}
SHOWN[PDF.media_type] = PDF.media_type
# Front ends fetch a file and show it from a `blob:` URL, which keeps the media type but not the sandbox: a
# script in HTML would run with the front end's origin. Therefore only types that cannot contain scripts keep
# their media type.
OFFERED = (
    WORD, SLIDES, SHEETS, RECORDS, PNG, JPEG, TIFF, OPEN_TEXT, OPEN_SHEETS, OPEN_SLIDES, RICH_TEXT, BOOK,
    OLD_WORD, OLD_SHEETS, OLD_SLIDES, OUTLOOK, ARCHIVE,
)  # fmt: skip
DOWNLOADED = {kind.media_type: kind.media_type for kind in OFFERED}
DOWNLOADED[WEB.media_type] = SHOWN[TEXT.media_type]
UNKNOWN = "application/octet-stream"
# Chromium shows PDFs in spite of this policy, because its viewer is a separate page.
SANDBOX = "sandbox; default-src 'none'; frame-ancestors {}"


class StorageAway(APIException):
    """The file storage does not respond, although the site itself is available."""

    status_code = HTTPStatus.SERVICE_UNAVAILABLE
    default_detail = gettext_lazy("The file storage does not respond. Try again in a moment.")


class FileDamaged(APIException):
    """The stored file is not the one that was added."""

    default_detail = gettext_lazy("The stored file is damaged. Ask an administrator to add it again.")


class RenderingTooSlow(APIException):
    """The page exists, but its image was not ready in time; a retry may succeed."""

    status_code = HTTPStatus.SERVICE_UNAVAILABLE
    default_detail = gettext_lazy("Drawing this page took too long. Try again in a moment.")
    wait = 10  # seconds for Retry-After


class AnyAccept(BaseContentNegotiation):
    """Sends the file regardless of `Accept`; API errors are JSON."""

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser | None:
        return next(iter(parsers), None)

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        first = next(iter(renderers))
        return first, str(first.media_type)


class Content(APIView):
    """Base of these views, for sessions and API keys.

    A browser without either is redirected to sign-in, unless the site admits guests.
    """

    guests_welcome = True
    required_scopes = (Scope.DOCUMENTS_READ,)
    schema = None  # described in chatsite/openapi
    content_negotiation_class = AnyAccept
    http_method_names = ["get", "head", "options"]

    def get_exception_handler(self) -> Any:
        return _handle_exception

    def handle_exception(self, exc: Exception) -> Any:
        if isinstance(exc, Http404):
            raise exc  # the site's error page, as for every URL that does not exist
        if isinstance(exc, NotAuthenticated) and "text/html" in self.request.headers.get("Accept", ""):
            return redirect_to_login(self.request.get_full_path())
        return super().handle_exception(exc)


def _handle_exception(exc: Exception, context: dict[str, Any]) -> Response | None:
    """An error in the form of the chat protocols, whose citations lead here."""
    response = views.exception_handler(exc, context)
    if response is not None:
        response.data = {"error": response.data["detail"]}
    return response


class DocumentFile(Content):
    """`/content/<public_id>/<any name>`: the file of a document.

    `/content/<sourcefile>`: the file of the document with this name. A fragment (# sent as %23) is ignored.
    """

    def get(self, request: Request, sourcefile: str) -> HttpResponseBase:
        meaning = _cited(_principal(request), sourcefile.partition("#")[0])
        document = meaning.document
        if document is None:
            return _choices(request, meaning.choices)
        return file_response(request, document)


class PageImage(Content):
    """`/content/<public_id or sourcefile>/pages/<n>.png`: page n (from 1) of a PDF."""

    def get(self, request: Request, sourcefile: str, page: int) -> HttpResponseBase:
        meaning = _cited(_principal(request), sourcefile)
        document = meaning.document
        if document is None:
            return _choices(request, meaning.choices)
        if document.media_type not in PAGED or not 1 <= page <= (document.page_count or 0):
            raise Http404
        etag = quote_etag(f"{document.sha256}-{page}")
        if _unchanged(request, etag):
            return _guarded(HttpResponse(status=HTTPStatus.NOT_MODIFIED), etag)
        checked = time.monotonic()
        release_connection()  # rendering takes a long time
        try:
            image = files.page_image(document, page)
        except TooSlow:
            raise RenderingTooSlow from None
        except (Unreadable, FileNotFoundError):
            raise Http404 from None
        except files.StorageFault as error:
            raise StorageAway from error
        is_old = time.monotonic() - checked > checked_transfer.CHECK_SECONDS
        if is_old and not _may_read(_principal(request), document.pk):
            raise Http404
        return _guarded(HttpResponse(image, content_type="image/png"), etag)


def _cited(principal: Principal, address: str) -> NameResolution:
    """The readable document with this public id or else this label, or documents to choose from.

    In the URLs of one published client, look-alikes replace the digits of names (see
    chat/protocols/web_component.py). Both spellings are tried, so that no document hides another one.
    If neither has a match, the NFKC form of the name is tried.
    """
    if public_id := public_id_of(address):
        return NameResolution(Document.objects.visible_to(principal).with_public_id(public_id).first())
    meaning = resolve_name(principal, address, address.translate(ASCII_DIGITS))
    normal = normal_form("NFKC", address)
    if meaning.document or meaning.choices or normal == address:
        return meaning
    return resolve_name(principal, normal)


def _choices(request: Request, documents: Sequence[Document]) -> HttpResponseBase:
    """A 300 response if the name is ambiguous, or if the document that was cited under it is gone.

    Raises Http404 if no document has the name.
    """
    if not documents:
        raise Http404
    choices = [
        {
            "title": each.title or each.name,
            "name": each.name,
            "folder": each.folder,
            "url": content_address(each.public_id, each.name),
        }
        for each in documents
    ]
    if "text/html" in request.headers.get("Accept", ""):
        page = render_to_string("ingestion/choices.html", {"choices": choices})
        response = HttpResponse(page, status=HTTPStatus.MULTIPLE_CHOICES)
    else:
        body = {"error": AMBIGUOUS if len(choices) > 1 else SUCCESSOR, "choices": choices}
        response = JsonResponse(body, status=HTTPStatus.MULTIPLE_CHOICES)
    _sandbox(response)
    response.headers["Cache-Control"] = "private, no-store"
    patch_vary_headers(response, ["Accept", "Cookie", *KEY_HEADERS])
    return response


def _principal(request: Request) -> Principal:
    assert isinstance(request.auth, Principal)
    return request.auth


def file_response(request: Request, document: Document) -> HttpResponseBase:
    """The file of a document that the caller may read, or 304.

    Raises Http404 if the file is missing, FileDamaged if its size is not that of the document, and
    StorageAway if the storage fails. While a whole file is sent, its SHA-256 is checked, too.
    """
    # Browsers cache the media type with the file, so the ETag depends on that type.
    renamed = document.media_type not in SHOWN and _media_type(document) != document.media_type
    etag = quote_etag(f"{document.sha256}-inert" if renamed else document.sha256)
    if _unchanged(request, etag):
        return _guarded(HttpResponse(status=HTTPStatus.NOT_MODIFIED), etag)
    checked = time.monotonic()
    release_connection()  # the storage may hang
    try:
        with contextlib.ExitStack() as opened:
            file = opened.enter_context(files.open_file(document))
            if files.size_of(file) != document.size:
                logger.error("The size of the stored file of document %d has changed.", document.pk)
                raise FileDamaged
            opened.pop_all()  # the file stays open, and is closed with the response
    except FileNotFoundError:
        raise Http404 from None
    except files.StorageFault as error:
        raise StorageAway from error

    # Stream the file or the requested part of it; closing the response closes the file.
    size = document.size
    wanted = _range(request, etag, size)
    start, end = wanted or (0, size - 1)
    length = max(0, end - start + 1)
    file.seek(start)
    read = _Pieces(document, file, length)
    body: Iterator[bytes] | AsyncIterator[bytes] = iter(read, b"")
    # With ASGI, Django would buffer the whole file if it got a plain iterator.
    if isinstance(django_request(request), ASGIRequest):
        may_read = partial(_may_read, _principal(request), document.pk)
        body = checked_transfer.while_allowed(_pieces_async(read), may_read, checked)
    response = StreamingHttpResponse(body, content_type=_media_type(document))
    close_with(response, file.close)
    response.headers["Content-Length"] = str(length)
    response.headers["Accept-Ranges"] = "bytes"
    downloaded = document.media_type not in SHOWN
    response.headers["Content-Disposition"] = str(content_disposition_header(downloaded, document.name))
    if wanted and length:
        response.status_code = HTTPStatus.PARTIAL_CONTENT
        response.headers["Content-Range"] = f"bytes {start}-{end}/{size}"
    elif wanted:
        response.status_code = HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE
        response.headers["Content-Range"] = f"bytes */{size}"
    return _guarded(response, etag)


def _media_type(document: Document) -> str:
    """The media type to send, which never allows scripts."""
    return SHOWN.get(document.media_type) or DOWNLOADED.get(document.media_type, UNKNOWN)


def _guarded(response: HttpResponseBase, etag: str) -> HttpResponseBase:
    _sandbox(response)
    response.headers["ETag"] = etag
    # Browsers may store the response but must revalidate it each time, so that current rights apply.
    response.headers["Cache-Control"] = "private, no-cache"
    patch_vary_headers(response, ["Cookie", *KEY_HEADERS])
    return response


def _sandbox(response: HttpResponseBase) -> None:
    # Front ends of this origin, and of the origins that may use the API, show a cited file in a frame.
    framing = " ".join(["'self'", *settings.CORS_ORIGINS])
    response.headers["Content-Security-Policy"] = SANDBOX.format(framing)
    response.xframe_options_exempt = True  # type: ignore[attr-defined]  # a list of origins is impossible there
    response.headers["X-Content-Type-Options"] = "nosniff"


def _unchanged(request: Request, etag: str) -> bool:
    known = parse_etags(request.headers.get("If-None-Match", ""))
    return "*" in known or etag in [each.removeprefix("W/") for each in known]


def _range(request: Request, etag: str, size: int) -> tuple[int, int] | None:
    """First and last byte of a single range; None for the whole file.

    The range is empty if the requested one is outside of the file.
    """
    found = RANGE.fullmatch(request.headers.get("Range", ""))
    if found is None or request.headers.get("If-Range", etag) != etag:
        return None
    first, last = found.groups()
    if first:
        start, end = int(first), min(int(last or size), size - 1)
        if last and int(last) < start:
            return None
    elif last:
        start, end = max(0, size - int(last)), size - 1
    else:
        return None
    return (start, end) if start <= end else (size, size - 1)


@functools.cache
def _storage_threads() -> ThreadPoolExecutor:
    """Threads for reading files: slow storage must not occupy the threads of the event loop."""
    return ThreadPoolExecutor(STORAGE_THREADS, thread_name_prefix="storage")


async def _pieces_async(read: Callable[[], bytes]) -> AsyncIterator[bytes]:
    read_next = sync_to_async(read, thread_sensitive=False, executor=_storage_threads())
    while piece := await read_next():
        yield piece


def _may_read(principal: Principal, document_id: int) -> bool:
    """Whether the caller's credential is still valid, and the document still readable for the caller."""
    if not still_valid(principal):
        return False
    with reading_as(principal.user_id):
        return Document.objects.visible_to(principal).filter(pk=document_id).exists()


class _Pieces:
    """Each call reads the next piece of a response's body; empty after the last one.

    Raises RequestAborted if the storage fails, the file ends early, or the SHA-256 of the whole file is not
    that of the document; the last piece is then not sent. The exception cuts the connection, because the
    response has begun.
    """

    def __init__(self, document: Document, file: "File[bytes]", length: int) -> None:
        self._document, self._file, self._left = document, file, length
        self._digest = hashlib.sha256() if length == document.size else None

    def __call__(self) -> bytes:
        if not self._left:
            return b""
        try:
            piece = files.read_piece(self._file, min(CHUNK_BYTES, self._left))
        except files.StorageFault as fault:
            fault_name = type(fault.__cause__ or fault).__name__
            logger.error("The storage failed while a file was sent: %s", fault_name)
            raise RequestAborted from None
        self._left -= len(piece)
        is_damaged = not piece
        if self._digest:
            self._digest.update(piece)
            is_damaged |= not self._left and self._digest.hexdigest() != self._document.sha256
        if is_damaged:
            logger.error(
                "The stored file of document %d is damaged; sending it was aborted.", self._document.pk
            )
            raise RequestAborted
        return piece
