"""Images of the pages that passages come from, for models and clients.

They are rendered for each reader with the reader's current rights, and are not stored with the answer.
"""

import asyncio
import io
from base64 import b64encode
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from uuid import UUID

from PIL import Image

from chat.sources import PageImage, SourceView
from chatsite.accounts.principal import Principal
from chatsite.db.retry import retry_until_available
from chatsite.http import checked_transfer
from ingestion.models import Document
from ingestion.parsing.formats import PAGED
from ingestion.parsing.sections import Unreadable
from ingestion.storage import files

MAX_PAGES = 5
# Longest side in pixels; smaller values are tried for images of more than BYTES.
SIDES = (1300, 1024, 768, 512)
BYTES = 1_000_000
SECONDS = 20.0  # time limit for all images of an answer

# A separate pool, because the event loop's default one also resolves host names, which must not wait. It has
# as many threads as pages are rendered at the same time (`AT_ONCE` in ingestion/parsing/process.py).
_threads = ThreadPoolExecutor(2, thread_name_prefix="drawing")


@dataclass(frozen=True, slots=True)
class Page:
    """The page of a passage."""

    label: str
    document: UUID  # its public id
    number: int | None


async def of_sources(principal: Principal, sources: Sequence[SourceView]) -> tuple[PageImage, ...]:
    """The images that the model received, rendered again with a reader's rights."""
    pages = [
        Page(source.label, UUID(source.document_id), source.page)
        for source in sources
        if source.given != "text"
    ]
    return await page_images(principal, pages) if pages else ()


async def page_images(principal: Principal, pages: Sequence[Page]) -> tuple[PageImage, ...]:
    """Images of the first distinct PDF pages that the reader may see, if rendered in time."""
    images: list[tuple[UUID, PageImage]] = []
    documents = await retry_until_available(_documents, principal, pages)
    loop = asyncio.get_running_loop()
    checked = loop.time()
    by = checked + SECONDS
    for page in different(pages, documents)[:MAX_PAGES]:
        try:
            async with asyncio.timeout_at(by):
                document, number = documents[page.document], page.number or 0
                url = await loop.run_in_executor(_threads, _url, document, number)
        except TimeoutError:
            break
        if url:
            images.append((page.document, PageImage(page.label, url)))
    if images and loop.time() - checked > checked_transfer.CHECK_SECONDS:
        # A right may have been withdrawn while the images were rendered.
        documents = await retry_until_available(_documents, principal, pages)
    return tuple(image for document, image in images if document in documents)


def different(pages: Sequence[Page], documents: Collection[UUID]) -> list[Page]:
    """The distinct pages among `pages` that belong to one of `documents`."""
    first: dict[tuple[UUID, int], Page] = {}
    for page in pages:
        if page.number is not None and page.document in documents:
            first.setdefault((page.document, page.number), page)
    return list(first.values())


def _documents(principal: Principal, pages: Sequence[Page]) -> dict[UUID, Document]:
    wanted = {page.document for page in pages if page.number is not None}
    rows = Document.objects.visible_to(principal).filter(public_id__in=wanted, media_type__in=PAGED)
    return {row.public_id: row for row in rows}


def _url(document: Document, number: int) -> str:
    try:
        image = scaled(files.page_image(document, number))
    except (Unreadable, OSError):
        return ""
    return f"data:image/png;base64,{b64encode(image).decode()}" if image else ""


def scaled(drawn: bytes) -> bytes:
    """The image as a PNG that is small enough to send, unchanged if possible; empty if no size fits."""
    with Image.open(io.BytesIO(drawn), formats=["PNG"]) as opened:
        if max(opened.size) <= SIDES[0] and len(drawn) <= BYTES:
            return drawn
        image = opened.convert("RGB")
    for side in SIDES:
        image.thumbnail((side, side))
        for colours in (image, image.quantize(256)):
            buffer = io.BytesIO()
            colours.save(buffer, "PNG")
            if buffer.tell() <= BYTES:
                return buffer.getvalue()
    return b""
