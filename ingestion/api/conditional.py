"""Conditional requests for documents: ETag, `If-Match` and `If-None-Match` (RFC 9110)."""

import contextlib
from collections.abc import Callable, Iterator

from django.db import transaction
from django.http import Http404
from django.utils.crypto import salted_hmac
from django.utils.http import parse_etags, quote_etag
from django.utils.translation import gettext_lazy
from rest_framework import exceptions, status
from rest_framework.request import Request

from ingestion.models import Document

CONDITIONS = frozenset({"If-Match", "If-None-Match"})
TAGS = gettext_lazy("%(header)s must be “*”, or values of ETag with their quotation marks.")
MISSING = gettext_lazy("There is no document of this name, so it has no ETag that If-Match could name.")
EXISTS = gettext_lazy("A document with this name exists already, or its ETag is listed in If-None-Match.")


class PreconditionFailed(exceptions.APIException):
    """A condition of the request does not hold."""

    status_code = status.HTTP_412_PRECONDITION_FAILED
    default_detail = gettext_lazy("The document has been changed: it has another ETag. Read it again first.")


def etag_of(document: Document) -> str:
    """The ETag of a document.

    It changes with each value that programs can set, and with each new file. It does not change when a worker
    has read a queued file, although the readers may change then.
    """
    state = (
        document.public_id, document.audience_version, document.name, document.folder, document.category,
        document.given_title, document.labels, document.source_url, document.valid_until,
    )  # fmt: skip
    # Keyed: a reader who knows the other values could find out `audience_version` from a plain hash.
    return quote_etag(salted_hmac("ingestion.etag", repr(state), algorithm="sha256").hexdigest()[:32])


def conditions_of(request: Request) -> dict[str, list[str]]:
    """The ETags in each conditional header of the request. Raises ParseError."""
    found = {}
    for name in CONDITIONS:
        if name in request.headers:
            # Accept weak tags: a proxy that compresses responses makes our tags weak.
            found[name] = [tag.removeprefix("W/") for tag in parse_etags(request.headers[name])]
            if not found[name]:
                raise exceptions.ParseError(TAGS % {"header": name})
    return found


def checked(request: Request, document: Document) -> Document:
    """Check the request's conditions, if any, and return the document.

    If there are conditions, the document's row is locked. Raises Http404, PreconditionFailed and ParseError.
    """
    conditions = conditions_of(request)
    if not conditions:
        return document
    locked = Document.objects.select_for_update(no_key=True).filter(pk=document.pk).first()
    if locked is None:
        raise Http404
    tag = etag_of(locked)
    if not {"*", tag} & set(conditions.get("If-Match", ["*"])):
        raise PreconditionFailed
    if {"*", tag} & set(conditions.get("If-None-Match", [])):
        raise PreconditionFailed(EXISTS)
    return locked


@contextlib.contextmanager
def conditionally(request: Request, find: Callable[[], Document]) -> Iterator[None]:
    """Check the request's conditions; if there are any, run the block in the same transaction.

    `find` returns the document, or raises Http404 if there is none yet. Raises PreconditionFailed and
    ParseError.
    """
    conditions = conditions_of(request)
    if not conditions:
        yield
        return
    with transaction.atomic():
        try:
            checked(request, find())
        except Http404:
            if "If-Match" in conditions:
                raise PreconditionFailed(MISSING) from None
        yield
