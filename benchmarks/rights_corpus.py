"""A large corpus for the benchmark of rights, made once and kept in the data directory.

Each document has ten passages, recombined from the sentences of four real texts, so that texts and vectors
differ and still have a subject. The texts are abstracts of SciFact, and Markdown and reStructuredText files
of a folder. Eight people may read from a ten-thousandth to all of it.
"""

import multiprocessing
import os
import random
import re
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from collections_bench import read_collection

# isort: split
import numpy as np
from django.contrib.auth.models import Group
from django.db import connection
from pgvector import HalfVector
from pgvector.psycopg import register_vector
from server_usage import measured

from chatsite.accounts.models import User
from ingestion.access.lists import (
    Audience,
    access_list_for,
)
from ingestion.embedding import active_space, embedder
from ingestion.embedding.spaces import index_definition
from ingestion.indexing.passages import (
    NewPassage,
    pieces_of,
)
from ingestion.models import Document, EmbeddingSpace, Passage
from ingestion.search.tokens import search_text

# For each person, the share of the documents that this person may read.
SHARES = (0.0001, 0.001, 0.01, 0.1, 0.2, 0.3, 0.5, 1.0)
PASSAGES_EACH = 10
OWNERS = 100
BATCH = 500  # documents that are written at once
INDEX_MEMORY = "6GB"  # memory limit for building the index of vectors
PROCESSES = os.cpu_count() or 2
FILLED, COMPLETE = "filled", "complete"  # names of users that mark finished steps
MIN_SENTENCES = 4  # minimum number of sentences of a text that is used
MAX_SENTENCES = 40
SENTENCE = re.compile(r"(?<=[.!?]) (?=[A-Z])")
PARAGRAPH = re.compile(r"\n\s*\n|\n(?=[-*#] )")
CODE = re.compile(r"```.*?```", re.DOTALL)
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
MARKUP = re.compile(r"[|{<]")

Source = tuple[str, list[str]]  # title, sentences
Text = tuple[str, list[str]]  # title, passages


def reader_name(share: float) -> str:
    return f"sees-{share:.2%}"


def is_built() -> bool:
    """Whether the database contains the whole corpus with its indexes."""
    return User.objects.filter(username=COMPLETE).exists()


def is_filled() -> bool:
    """Whether the database contains all rows, so that only the indexes are missing."""
    return User.objects.filter(username=FILLED).exists()


def build(datasets: Path, texts: Path | None, documents: int, characters: int) -> None:
    """Fill the database and index it; if it is already filled, only index it.

    `characters` is the minimum length of a passage.
    """
    space = active_space()
    if not is_filled():
        _fill(space, _sources(datasets, texts), documents, characters)
    # Building the indexes of words and vectors after inserting the rows is faster.
    started = threading.Event()
    index = threading.Thread(target=_index_vectors, args=[space, started])
    index.start()
    started.wait()
    with measured("words, at the same time"):
        last = Passage.objects.latest("pk").pk
        _in_processes(_write_words, range(0, last + 1, BATCH * PASSAGES_EACH))
    with measured("index of words"):
        _execute_slowly(
            "SET maintenance_work_mem = '1GB'",
            "CREATE INDEX IF NOT EXISTS passage_words_search ON ingestion_passagewords USING gin (search)",
            "CREATE INDEX IF NOT EXISTS passage_words_sample ON ingestion_passagewords USING gin (search)"
            " WHERE passage_id % 17 = 0",
        )
    index.join()
    with measured("vacuum and statistics"):
        _execute_slowly("VACUUM ANALYZE")
    User.objects.create(username=COMPLETE)


def _fill(space: EmbeddingSpace, sources: list[Source], documents: int, characters: int) -> None:
    """Insert documents with their rights, passages and vectors."""
    print(f"  {len(sources):,} texts of {sum(len(own) for _, own in sources):,} sentences", flush=True)
    lists = _access_lists(random.Random(20), documents)
    _execute_slowly(
        f"DROP INDEX IF EXISTS vector_space_{space.pk:d}, passage_words_search, passage_words_sample",
        f"ALTER TABLE ingestion_vector SET (parallel_workers = {PROCESSES})",
    )
    with measured("rows and vectors"):
        write = partial(_write, space.pk, sources, lists, characters)
        _in_processes(write, range(0, documents, BATCH))
    User.objects.create(username=FILLED)


def _in_processes(work: Callable[[int], object], starts: Iterable[int]) -> None:
    """Divide the work among several processes; closes the connection, which they cannot share."""
    connection.close()
    connection.close_pool()
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(PROCESSES, context) as processes:
        for number, done in enumerate([processes.submit(work, start) for start in starts]):
            done.result()
            if number % 20 == 0:
                print(f"  {number} pieces", flush=True)


def _access_lists(chance: random.Random, documents: int) -> list[tuple[User, int]]:
    """Owner and access list of each document; each person may read exactly their share, drawn at random."""
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


def _sources(datasets: Path, texts: Path | None) -> list[Source]:
    """The texts with their sentences; a repeated sentence is kept only in the first text."""
    abstracts = read_collection(datasets, "scifact", "english").texts.values()
    sources = [
        (title, [part for part in SENTENCE.split(text) if part_fits(part)] or [text[:400]])
        for title, text in abstracts
    ]
    seen: set[str] = set()
    files = sorted(file for file in texts.rglob("*") if file.suffix in (".md", ".rst")) if texts else []
    for file in files:
        plain = CODE.sub("", file.read_text(errors="replace"))
        paragraphs = [
            " ".join(LINK.sub(r"\1", paragraph).split()).lstrip("#-* ")
            for paragraph in PARAGRAPH.split(plain)
            if not MARKUP.search(paragraph)
        ]
        own = [part for paragraph in paragraphs for part in SENTENCE.split(paragraph) if part_fits(part)]
        new = [part for part in dict.fromkeys(own) if part not in seen]
        seen.update(new)
        for start in range(0, len(new) - MIN_SENTENCES + 1, MAX_SENTENCES):
            sources.append((file.stem.replace("-", " "), new[start : start + MAX_SENTENCES]))
    return sources


def part_fits(sentence: str) -> bool:
    """Whether the part is a sentence, and not a heading or a whole paragraph."""
    return 40 < len(sentence) < 400


def _texts(sources: list[Source], characters: int, first: int) -> list[Text]:
    """The texts of a batch, which do not depend on the process that generates them."""
    chance = random.Random(first)
    texts = []
    for number in range(first, first + BATCH):
        of_document = [sources[place] for place in chance.sample(range(len(sources)), 4)]
        pool = [sentence for _, own in of_document for sentence in own]
        passages = []
        for _ in range(PASSAGES_EACH):
            passage = ""
            while len(passage) < characters:
                passage += f"{chance.choice(pool)} "
            passages.append(passage.strip())
        texts.append((f"{number}. {of_document[0][0][:80]}", passages))
    return texts


def _write(
    space_id: int, sources: list[Source], lists: list[tuple[User, int]], characters: int, first: int
) -> None:
    _execute_slowly()
    texts = _texts(sources, characters, first)[: len(lists) - first]
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
    rows = [
        Passage(document=document, position=position, content=content)
        for document, (_, passages) in zip(documents, texts, strict=True)
        for position, content in enumerate(passages)
    ]
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO ingestion_passage (document_id, position, anchor, page, heading, content)
            SELECT document_id, position, '', NULL, '', content
            FROM unnest(%s::bigint[], %s::int[], %s::text[]) WITH ORDINALITY
                AS new (document_id, position, content, place)
            ORDER BY place
            RETURNING id
            """,
            [
                [row.document_id for row in rows],
                [row.position for row in rows],
                [row.content for row in rows],
            ],
        )
        for row, (identifier,) in zip(rows, cursor.fetchall(), strict=True):
            row.pk = identifier
    _write_vectors(space_id, rows)


def _write_words(first: int) -> None:
    """Index the words of a batch of passages; `first` is its lowest id."""
    _execute_slowly()
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT passage.id, passage.document_id, document.title, passage.content
            FROM ingestion_passage AS passage
            JOIN ingestion_document AS document ON document.id = passage.document_id
            WHERE passage.id >= %s AND passage.id < %s
            """,
            [first, first + BATCH * PASSAGES_EACH],
        )
        found = cursor.fetchall()
        cursor.execute(
            """
            INSERT INTO ingestion_passagewords (passage_id, document_id, search)
            SELECT id, document, setweight(to_tsvector('english', title), 'A')
                || setweight(to_tsvector('english', content), 'D')
            FROM unnest(%s::bigint[], %s::bigint[], %s::text[], %s::text[])
                AS new (id, document, title, content)
            ON CONFLICT DO NOTHING
            """,
            [
                [passage for passage, _, _, _ in found],
                [document for _, document, _, _ in found],
                [search_text(title) for _, _, title, _ in found],
                [search_text(content) for _, _, _, content in found],
            ],
        )


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


def _index_vectors(space: EmbeddingSpace, started: threading.Event) -> None:
    with measured("index of vectors"):
        connection.ensure_connection()
        started.set()
        _execute_slowly(
            f"SET maintenance_work_mem = '{INDEX_MEMORY}'",
            f"SET max_parallel_maintenance_workers = {PROCESSES:d}",
            f"CREATE INDEX IF NOT EXISTS {index_definition(space)}",
        )
    connection.close()


def _execute_slowly(*statements: str) -> None:
    """Execute statements that may take hours."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('statement_timeout', '0', false)")
        for text in statements:
            cursor.execute(text)
