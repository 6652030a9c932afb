"""Deletes documents with their parts, passages, vectors and files."""

from collections.abc import Iterable

from django.db import transaction

from chatsite.accounts.holds import DOCUMENT_ON_HOLD, OnHold, is_on_hold
from chatsite.accounts.webhooks import has_listeners

from .document_events import Event, announce
from .indexing.passages import allow_long_statements, delete_passages
from .models import Document, DocumentQuerySet
from .storage import files

DELETE_BATCH = 100  # documents per transaction; more would lock their rows for too long


def delete_document(document: Document) -> None:
    """Delete a document with its parts, vectors, file and page images. Raises OnHold."""
    delete_documents([document])


def delete_documents(documents: Iterable[Document]) -> None:
    """Delete documents with their parts, vectors, files and page images.

    Each document with parts is deleted in its own transaction, the others in batches. Raises OnHold and
    deletes none if any owner is under a legal hold.
    """
    chosen = list(documents)
    identifiers = [document.pk for document in chosen]
    if is_on_hold(*(document.owner_id for document in chosen)):
        raise OnHold(DOCUMENT_ON_HOLD)
    whole = set(Document.objects.filter(part_of__in=identifiers).values_list("part_of", flat=True))
    single = [each for each in identifiers if each not in whole]
    batches = [single[start : start + DELETE_BATCH] for start in range(0, len(single), DELETE_BATCH)]
    for batch in [[each] for each in identifiers if each in whole] + batches:
        with transaction.atomic():
            delete_rows(Document.objects.filter(pk__in=batch))


def delete_rows(documents: DocumentQuerySet, *, announced: bool = True) -> None:
    """Delete documents and their parts in the caller's transaction; files are deleted on commit."""
    allow_long_statements()
    # Lock in the same order as everywhere: a document before its parts.
    locked = list(documents.with_parts().select_for_update(of=("self",)).order_by("pk"))
    if announced and has_listeners(Event.DOCUMENT_DELETED):
        for each in locked:
            announce(Event.DOCUMENT_DELETED, each)
    delete_passages(locked)
    Document.objects.filter(pk__in=[each.pk for each in locked]).delete()
    files.remove_on_commit(*(str(each.file.name) for each in locked))
