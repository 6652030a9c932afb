"""Passages into the database: rows, search words and vectors, in the caller's transaction."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePath

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from ingestion.embedding import active_space
from ingestion.models import Document, Passage, PassageWords, Vector
from ingestion.statements import statement
from ingestion.words import search_text

PIECE_CHARACTERS = 250  # a vector of a longer text blurs: the best piece counts for its passage
PREFIX_CHARACTERS = 120  # of title and heading before each piece; more would drown the piece itself
BATCH = 1_000  # rows of one INSERT


@dataclass(frozen=True, slots=True)
class NewPassage:
    """A passage as splitting made it; `anchor` is what follows # in a citation, `page` counts from 1."""

    anchor: str
    page: int | None
    heading: str
    content: str


def pieces_of(passage: NewPassage, title: str = "") -> list[str]:
    """The texts to embed for a passage: pieces of about 250 characters, each after its title and heading.

    Never empty: a passage without words is one piece.
    """
    named = [part for part in (title.strip(), passage.heading.strip()) if part]
    prefix = ". ".join(dict.fromkeys(named))[:PREFIX_CHARACTERS]
    return [f"{prefix}\n{piece}" if prefix else piece for piece in _cut(passage.content)]


def write_passages(
    document: Document, passages: Sequence[NewPassage], vectors: Sequence[NDArray[np.float32]]
) -> None:
    """Replace the document's passages and vectors; the caller holds the transaction.

    `vectors` has one array per passage, in order, of shape (its pieces, dimensions of the active space).
    The document's title and language go into the passages as they are now.
    """
    if len(vectors) != len(passages):
        raise ValueError("There must be one array of vectors for each passage.")
    delete_passages(document)
    Document.objects.filter(pk=document.pk).update(passage_count=len(passages))
    if not passages:
        return
    passage_ids = _insert_passages(document, passages)
    space = active_space()
    rows = (
        (passage_id, vector)
        for passage_id, array in zip(passage_ids, vectors, strict=True)
        for vector in np.asarray(array, dtype=np.float32).reshape(-1, space.dimensions)
    )
    with connection.cursor() as cursor:
        for batch in _batches(rows):
            cursor.execute(
                statement("insert_vectors"),
                {
                    "space_id": space.pk,
                    "document_id": document.pk,
                    "passage_ids": [passage_id for passage_id, _ in batch],
                    "vectors": [vector_text(vector) for _, vector in batch],
                },
            )


def delete_passages(document: Document) -> None:
    """Delete the document's passages, words and vectors, in a statement each: Django alone would fetch every
    passage to follow what hangs on it."""
    for rows in (Vector.objects, PassageWords.objects, Passage.objects):
        queryset = rows.filter(document=document)
        queryset._raw_delete(queryset.db)


def vector_text(vector: NDArray[np.float32]) -> str:
    """A vector as pgvector reads it."""
    return f"[{','.join(format(value, '.5g') for value in vector.tolist())}]"


def _insert_passages(document: Document, passages: Sequence[NewPassage]) -> list[int]:
    """The new rows' ids, in the order of the passages."""
    with connection.cursor() as cursor:
        cursor.execute(
            statement("insert_passages"),
            {
                "document_id": document.pk,
                "language": document.language,
                "title_words": search_text(document.title or PurePath(document.name).stem),
                "anchors": [passage.anchor for passage in passages],
                "pages": [passage.page for passage in passages],
                "headings": [passage.heading for passage in passages],
                "contents": [passage.content for passage in passages],
                "heading_words": [search_text(passage.heading) for passage in passages],
                "content_words": [search_text(passage.content) for passage in passages],
            },
        )
        return [passage_id for _, passage_id in sorted(cursor.fetchall())]


def _cut(text: str) -> list[str]:
    """Pieces of at most about 250 characters, cut at the space before the limit, of even length."""
    text = " ".join(text.split())
    count = max(1, -(-len(text) // PIECE_CHARACTERS))
    size = -(-len(text) // count)
    pieces = []
    start = 0
    while len(text) - start > size:
        # Text without spaces (Chinese, a long token) is cut where the limit falls.
        space = text.rfind(" ", start + size // 2, start + size + 1)
        end = space if space > start else start + size
        pieces.append(text[start:end])
        start = end + (space > start)
    return [*pieces, text[start:]]


def _batches(
    rows: Iterable[tuple[int, NDArray[np.float32]]],
) -> Iterator[list[tuple[int, NDArray[np.float32]]]]:
    iterator = iter(rows)
    while batch := list(islice(iterator, BATCH)):
        yield batch
