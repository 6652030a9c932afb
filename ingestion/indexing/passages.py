"""Stores passages with their search words, and cuts them into pieces to embed.

Everything runs in the caller's transaction.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from chatsite.db.sql_files import statement
from chatsite.dependency_internals import delete_rows
from ingestion.models import Document, Passage, PassageWords, Vector
from ingestion.search.stems import indexed_text

# The vectors of longer texts are less distinct; a passage gets the score of its best piece.
PIECE_CHARACTERS = 250
# Characters of title and heading before each piece; more would outweigh the piece itself.
PREFIX_CHARACTERS = 120
# Time limit for a statement that writes passages; indexing a long document takes minutes.
WRITING_TIMEOUT = "15min"


@dataclass(frozen=True, slots=True)
class NewPassage:
    """A passage to store. `anchor` follows # in a citation; `page` counts from 1."""

    anchor: str
    page: int | None
    heading: str
    content: str


def pieces_of(passage: NewPassage, title: str = "") -> list[str]:
    """The texts to embed for a passage; at least one.

    They are pieces of about 250 characters, each preceded by title and heading. A passage without words is
    one piece.
    """
    named = [part for part in (title.strip(), passage.heading.strip()) if part]
    prefix = ". ".join(dict.fromkeys(named))[:PREFIX_CHARACTERS]
    text = " ".join(passage.content.split())
    pieces = []
    start = 0
    for left in range(max(1, -(-len(text) // PIECE_CHARACTERS)), 1, -1):
        size = -(-(len(text) - start) // left)
        # Text without spaces (such as Chinese, or a long token) is cut at the limit.
        space = text.rfind(" ", start + size // 2, start + size + 1)
        end = space if space > start else start + size
        pieces.append(text[start:end])
        start = end + (space > start)
    pieces.append(text[start:])
    return [f"{prefix}\n{piece}" if prefix else piece for piece in pieces]


def allow_long_statements() -> None:
    """Raise the time limit of statements in this transaction to WRITING_TIMEOUT."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('statement_timeout', %s, true)", [WRITING_TIMEOUT])


def delete_passages(documents: Sequence[Document]) -> None:
    """Delete the documents' passages, words and vectors, with a statement for each table.

    Django would fetch every passage to find the rows that depend on it.
    """
    for rows in (Vector.objects, PassageWords.objects, Passage.objects):
        delete_rows(rows.filter(document__in=documents))


def vector_text(vector: NDArray[np.float32]) -> str:
    """A vector in the text form that pgvector reads."""
    return f"[{','.join(['%.5g'] * len(vector))}]" % tuple(vector.tolist())


def insert_passages(document: Document, passages: Sequence[NewPassage], first: int = 0) -> list[int]:
    """Insert the passages at the positions from `first` on.

    Returns the new rows' ids in the same order.
    """
    language = document.language
    with connection.cursor() as cursor:
        cursor.execute(
            statement("insert_passages"),
            {
                "document_id": document.pk,
                "first": first,
                "language": language,
                "title_words": indexed_text(document.title or PurePath(document.name).stem, language),
                "anchors": [passage.anchor for passage in passages],
                "pages": [passage.page for passage in passages],
                "headings": [passage.heading for passage in passages],
                "contents": [passage.content for passage in passages],
                "heading_words": [indexed_text(passage.heading, language) for passage in passages],
                "content_words": [indexed_text(passage.content, language) for passage in passages],
            },
        )
        return [passage_id for _, passage_id in sorted(cursor.fetchall())]
