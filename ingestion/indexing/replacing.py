"""Prepares vectors for new passages, then replaces the former passages in one transaction.

The vectors are prepared outside of the transaction. A text that the same model has already embedded for this
document is not embedded again, even if it has moved within the document. Prepared vectors are stored in the
database, so that an interrupted reading, when repeated, embeds only the remaining texts.
"""

import hashlib
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice
from typing import Any

import numpy as np
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from chatsite.db.sql_files import statement
from ingestion.embedding import (
    EmbeddingError,
    Vectors,
    active_space,
    embedder_of,
)
from ingestion.models import (
    Document,
    EmbeddingSpace,
    PreparedVector,
)

from .passages import (
    NewPassage,
    delete_passages,
    insert_passages,
    pieces_of,
)

WRITE_BATCH = 2_000  # passages per statement, so that it takes only seconds and little memory
# Prevents the deletion of the document until the transaction ends.
HOLD = "SELECT FROM ingestion_document WHERE id = %s FOR KEY SHARE"
LOST = "The data prepared for the document was lost; it is read again."


@dataclass(frozen=True, slots=True)
class PreparedVectors:
    """The digests of all pieces (see `pieces_of`), in order of the passages.

    The vectors are in the table of PreparedVector.
    """

    space: EmbeddingSpace
    counts: "array[int]" = field(default_factory=lambda: array("l"))  # number of pieces of each passage
    digests: "array[int]" = field(default_factory=lambda: array("q"))


def prepare(
    document: Document,
    passages: Iterable[NewPassage],
    title: str,
    on_progress: Callable[[int], None] | None = None,
) -> PreparedVectors:
    """Provide a vector for each piece of the passages, in the active space.

    Raises EmbeddingError. `on_progress` is called after each full batch with the number of passages so far.
    """
    prepared = PreparedVectors(active_space())
    space = prepared.space
    try:
        # Reuse vectors from an earlier attempt and from the current version.
        with connection.cursor() as cursor:
            cursor.execute(statement("keep_vectors"), {"document_id": document.pk, "space_id": space.pk})
        ready = PreparedVector.objects.filter(document=document, space=space)
        known = set(ready.values_list("digest", flat=True))

        model = embedder_of(space)
        waiting: dict[int, str] = {}
        for passage in passages:
            pieces = {digest_of(piece): piece for piece in pieces_of(passage, title)}
            prepared.digests.extend(pieces)
            prepared.counts.append(len(pieces))
            waiting |= {digest: piece for digest, piece in pieces.items() if digest not in known}
            while len(waiting) >= model.batch:
                batch = dict(islice(waiting.items(), model.batch))
                known |= batch.keys()
                waiting = {digest: piece for digest, piece in waiting.items() if digest not in known}
                _store_prepared(document, space, [*batch], model.embed([*batch.values()]))
                if on_progress:
                    on_progress(len(prepared.counts))
        if waiting:
            _store_prepared(document, space, [*waiting], model.embed([*waiting.values()]))
    except IntegrityError:  # the document or the space was deleted meanwhile
        raise EmbeddingError(LOST, temporary=True) from None
    return prepared


def write_passages(document: Document, passages: Sequence[NewPassage], prepared: PreparedVectors) -> None:
    """Replace the document's passages and vectors in the caller's transaction.

    The passages are indexed with the title and language in the attributes of `document`, even if these are
    not saved yet. Raises EmbeddingError if prepared vectors are missing.
    """
    if len(prepared.counts) != len(passages):
        raise ValueError("The prepared passages are not those to be written.")
    delete_passages([document])
    Document.objects.filter(pk=document.pk).update(passage_count=len(passages))
    placed = 0
    for start in range(0, len(passages), WRITE_BATCH):
        counts = prepared.counts[start : start + WRITE_BATCH]
        passage_ids = insert_passages(document, passages[start : start + WRITE_BATCH], start)
        digests = prepared.digests[placed : placed + sum(counts)]
        placed += len(digests)
        parameters: dict[str, Any] = {
            "space_id": prepared.space.pk,
            "document_id": document.pk,
            "passage_ids": np.repeat(passage_ids, counts).tolist(),  # the passage's id for each piece
            "digests": digests.tolist(),
        }
        with connection.cursor() as cursor:
            cursor.execute(statement("insert_vectors"), parameters)
            # Prepared vectors may be missing, because a crash of PostgreSQL empties unlogged tables.
            if cursor.rowcount != len(digests):
                raise EmbeddingError(LOST, temporary=True)
    PreparedVector.objects.filter(document=document).delete()


def delete_stale_prepared(age: timedelta) -> None:
    """Delete prepared vectors of documents whose reading failed at least this long ago."""
    failed = Document.objects.filter(status=Document.Status.FAILED, changed_at__lt=timezone.now() - age)
    PreparedVector.objects.filter(document__in=failed).delete()


def digest_of(piece: str) -> int:
    """64 bits of a text's hash, as a bigint of PostgreSQL."""
    digest = hashlib.blake2b(piece.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def copy_vectors(columns: Sequence[str], rows: Iterable[Sequence[int]], vectors: Vectors) -> None:
    """Append rows with vectors to a table.

    `columns` is the table's name followed by the names of its bigint columns; `rows` has the values of these
    columns, one row for each vector.
    """
    table, *names = columns
    # The binary form of halfvec: the number of dimensions and a zero, with 16 bits each, then the vector.
    head = np.array([vectors.shape[1], 0], dtype=">i2").tobytes()
    halves = vectors.astype(">f2")
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY {table} ({', '.join(names)}, vector) FROM STDIN (FORMAT BINARY)") as copy,
    ):
        copy.set_types(["int8"] * len(names) + ["bytea"])
        for row, half in zip(rows, halves, strict=True):
            copy.write_row([*row, head + half.tobytes()])


def _store_prepared(
    document: Document, space: EmbeddingSpace, digests: Sequence[int], vectors: Vectors
) -> None:
    """Store prepared vectors. Raises EmbeddingError if the document was deleted."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(HOLD, [document.pk])
            if not cursor.rowcount:
                raise EmbeddingError(LOST, temporary=True)
        columns = ("ingestion_preparedvector", "space_id", "document_id", "digest")
        copy_vectors(columns, ((space.pk, document.pk, digest) for digest in digests), vectors)
