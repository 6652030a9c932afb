"""A large corpus for the benchmark of rights: made once, kept in the data directory, and used again.

Documents of ten passages, recombined from the sentences of four real abstracts each, so that texts and
vectors are distinct and still about something. Eight people see from a ten-thousandth to all of it.
"""

import random
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from collections_bench import read_collection

# isort: split
import numpy as np
from django.contrib.auth.models import Group
from django.db import connection
from pgvector import HalfVector
from pgvector.psycopg import register_vector

from chatsite.accounts.models import User
from ingestion.access.lists import (
    Audience,
    access_list_for,
)
from ingestion.embedding import active_space, embedder
from ingestion.indexing.passages import (
    NewPassage,
    pieces_of,
)
from ingestion.models import Document, Passage
from ingestion.search.tokens import search_text

SHARES = (0.0001, 0.001, 0.01, 0.1, 0.2, 0.3, 0.5, 1.0)  # of the documents, seen by one person each
PASSAGES_EACH = 10
PASSAGE_CHARACTERS = 330
OWNERS = 100
BATCH = 500  # documents
SENTENCE = re.compile(r"(?<=[.!?]) (?=[A-Z])")

Text = tuple[str, list[str]]  # title, passages


def reader_name(share: float) -> str:
    return f"sees-{share:.2%}"


def is_built() -> bool:
    """Whether the database holds the whole corpus; a build that was cut short does not count."""
    return User.objects.filter(username="complete").exists()


def build(datasets: Path, documents: int) -> None:
    """Fill the empty database. The index of vectors is made after the rows, which is much faster."""
    chance = random.Random(20)
    space = active_space()
    lists = _access_lists(chance, documents)
    with connection.cursor() as cursor:
        cursor.execute(f"DROP INDEX IF EXISTS vector_space_{space.pk:d}, passage_words_search")
        cursor.execute("SELECT set_config('statement_timeout', '0', false)")
    started = time.perf_counter()
    texts = _texts(datasets, chance)
    for first in range(0, documents, BATCH):
        _write(space.pk, [next(texts) for _ in range(first, min(first + BATCH, documents))], lists, first)
        if first // BATCH % 8 == 0:
            print(f"  {first:,} documents, {time.perf_counter() - started:.0f} s", flush=True)
    _index(space.pk, space.dimensions)
    User.objects.create(username="complete")
    print(f"  built in {time.perf_counter() - started:.0f} s", flush=True)


def _access_lists(chance: random.Random, documents: int) -> list[tuple[User, int]]:
    """Owner and access list of each document; who sees a share sees exactly that many, drawn at random."""
    owners = [User.objects.create(username=f"owner-{number}") for number in range(OWNERS)]
    groups: list[set[int]] = [set() for _ in range(documents)]
    for share in SHARES:
        group = Group.objects.create(name=reader_name(share))
        User.objects.create(username=reader_name(share)).groups.add(group)
        for number in chance.sample(range(documents), max(2, round(share * documents))):
            groups[number].add(group.pk)
    known: dict[tuple[int, frozenset[int]], int] = {}
    rows = []
    for of_document in groups:
        owner, audience = chance.choice(owners), Audience(group_ids=frozenset(of_document))
        key = (owner.pk, audience.group_ids)
        if key not in known:
            known[key] = access_list_for(audience, owner.pk).pk
        rows.append((owner, known[key]))
    return rows


def _texts(datasets: Path, chance: random.Random) -> Iterator[Text]:
    abstracts = list(read_collection(datasets, "scifact", "english").texts.values())
    sentences = [
        [part for part in SENTENCE.split(text) if 40 < len(part) < 400] or [text[:400]]
        for _, text in abstracts
    ]
    number = 0
    while True:
        number += 1
        of_document = chance.sample(range(len(abstracts)), 4)
        pool = [sentence for abstract in of_document for sentence in sentences[abstract]]
        passages = []
        for _ in range(PASSAGES_EACH):
            passage = ""
            while len(passage) < PASSAGE_CHARACTERS:
                passage += f"{chance.choice(pool)} "
            passages.append(passage.strip())
        yield f"{number}. {abstracts[of_document[0]][0][:80]}", passages


def _write(space_id: int, texts: list[Text], lists: list[tuple[User, int]], first: int) -> None:
    documents = Document.objects.bulk_create(
        Document(
            owner=lists[first + number][0],
            access_list_id=lists[first + number][1],
            name=f"document-{first + number}.txt",
            title=title,
            category=f"category-{number % 4}",
            language="english",
            media_type="text/plain",
            size=0,
            version=1,
            passage_count=len(passages),
            status=Document.Status.READY,
        )
        for number, (title, passages) in enumerate(texts)
    )
    rows = Passage.objects.bulk_create(
        Passage(document=document, position=position, content=content)
        for document, (_, passages) in zip(documents, texts, strict=True)
        for position, content in enumerate(passages)
    )
    words = threading.Thread(target=_write_words, args=[rows])
    words.start()  # PostgreSQL finds the words on one core while the vectors are made on the other
    _write_vectors(space_id, rows)
    words.join()


def _write_words(rows: list[Passage]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO ingestion_passagewords (passage_id, document_id, search)
            SELECT id, document, setweight(to_tsvector('english', title), 'A')
                || setweight(to_tsvector('english', content), 'D')
            FROM unnest(%s::bigint[], %s::bigint[], %s::text[], %s::text[])
                AS new (id, document, title, content)
            """,
            [
                [row.pk for row in rows],
                [row.document_id for row in rows],
                [search_text(row.document.title) for row in rows],
                [search_text(row.content) for row in rows],
            ],
        )
    connection.close()


def _write_vectors(space_id: int, rows: list[Passage]) -> None:
    pieces = [
        (row, piece)
        for row in rows
        for piece in pieces_of(NewPassage("", None, "", row.content), row.document.title)
    ]
    vectors = embedder().embed([piece for _, piece in pieces]).astype(np.float16)
    register_vector(connection.connection)
    with connection.cursor() as cursor:
        columns = "(space_id, document_id, passage_id, vector)"
        with cursor.copy(f"COPY ingestion_vector {columns} FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(["int8", "int8", "int8", "halfvec"])
            for (row, _), vector in zip(pieces, vectors, strict=True):
                copy.write_row((space_id, row.document_id, row.pk, HalfVector(vector)))


def _index(space_id: int, dimensions: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET maintenance_work_mem = '2GB'")
        cursor.execute("SET max_parallel_maintenance_workers = 2")
        cursor.execute("CREATE INDEX passage_words_search ON ingestion_passagewords USING gin (search)")
        started = time.perf_counter()
        cursor.execute(
            f"CREATE INDEX vector_space_{space_id:d} ON ingestion_vector"
            f" USING hnsw ((vector::halfvec({dimensions:d})) halfvec_cosine_ops)"
            f" WITH (m = 16, ef_construction = 200) WHERE space_id = {space_id:d}"
        )
        print(f"  index of vectors in {time.perf_counter() - started:.0f} s", flush=True)
        cursor.execute("VACUUM ANALYZE")
