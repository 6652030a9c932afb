"""Changes the embedding model: adds new vectors, switches to them, deletes the former ones.

Every step is committed separately and reads from the database what is left to do, so that the job can be
interrupted and restarted at any point. Search uses the former vectors until the new ones are complete.
"""

import contextlib
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from django.conf import settings
from django.db import OperationalError, connection, transaction

from chatsite.db.sql_files import statement
from chatsite.dependency_internals import delete_rows
from ingestion.embedding import (
    Embedder,
    EmbeddingError,
    Vectors,
    configured,
    embedder_of,
)
from ingestion.embedding.spaces import (
    SPACE_LOCK,
    activate,
    index_definition,
    index_name,
)
from ingestion.models import (
    Document,
    EmbeddingSpace,
    Passage,
    PreparedVector,
    Vector,
)

from .passages import (
    NewPassage,
    pieces_of,
)
from .replacing import (
    copy_vectors,
    digest_of,
)

REEMBED_LOCK = 0x636861740002  # key of the advisory lock that a process holds while it changes the model
PASSAGE_BATCH = 200
DELETE_BATCH = 5_000
MAX_LEFT_FOR_LOCK = 200  # passages that may be embedded while writes are blocked; doubled at each attempt
RETRY_DELAYS = (1, 2, 4, 8, 16, 32)  # seconds before each retry of a failed service
MAX_RETRY_SECONDS = 60.0  # limit of each pause, even if the server's Retry-After is longer
PAUSE = 1.0
INDEX_MEMORY = "256MB"  # memory for building the index; an index that does not fit is built more slowly


class AlreadyRunning(Exception):
    """Another process is changing the model."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The current step and its progress; `total` is 0 if unknown."""

    words: str
    done: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True)
class _Row:
    passage_id: int
    document_id: int
    title: str
    heading: str
    content: str


def configured_space() -> EmbeddingSpace:
    """The space of the configured model, which may still be empty."""
    name, dimensions = configured()
    return EmbeddingSpace.objects.get_or_create(name=name, dimensions=dimensions)[0]


def reembed() -> Iterator[Progress]:
    """Move all documents to the space of the configured model. Finished work survives an error.

    Raises AlreadyRunning, and EmbeddingError if the model fails.
    """
    with _reembedding_lock(), _without_timeouts():
        space = configured_space()
        yield from _fill(space)
        yield Progress("Building the index")
        _build_index(space)
        if not EmbeddingSpace.objects.filter(pk=space.pk, active=True).exists():
            yield from _switch(space)
        others = list(EmbeddingSpace.objects.exclude(pk=space.pk))
        if others:
            # Wait: questions that the former model has just embedded still need its vectors.
            time.sleep(settings.EMBEDDING_QUESTION_SECONDS)
        for other in others:
            yield from _drop(other)


def missing(space: EmbeddingSpace) -> int:
    """The number of passages without a vector in the space."""
    vectors = Vector.objects.filter(space=space)
    return Passage.objects.count() - vectors.values("passage").distinct().count()


def _fill(space: EmbeddingSpace) -> Iterator[Progress]:
    """Embed the passages that lack a vector, including new ones."""
    model = embedder_of(space)
    left = missing(space)
    total = Passage.objects.count()
    after = 0
    while True:
        with connection.cursor() as cursor:
            parameters = {"space_id": space.pk, "after": after, "number": PASSAGE_BATCH}
            cursor.execute(statement("passages_to_embed"), parameters)
            rows = [_Row(*row) for row in cursor.fetchall()]
        if not rows:
            return

        # Embed equal pieces of a passage only once.
        pieces = [
            list(dict.fromkeys(pieces_of(NewPassage("", None, row.heading, row.content), row.title)))
            for row in rows
        ]
        vectors = yield from _embed_with_retries(model, [piece for group in pieces for piece in group])
        ends = np.cumsum([len(group) for group in pieces])[:-1]
        digests = [[digest_of(piece) for piece in group] for group in pieces]
        _write(space, rows, list(zip(rows, digests, np.split(vectors, ends), strict=True)))

        after = rows[-1].passage_id
        left -= len(rows)
        yield Progress("Embedding", min(total, total - left), total)


def _switch(space: EmbeddingSpace) -> Iterator[Progress]:
    """Embed new passages, block writes for the last ones, and activate the space."""
    allowed = MAX_LEFT_FOR_LOCK
    while True:
        with _writes_blocked():
            if missing(space) <= allowed:
                for _ in _fill(space):
                    pass
                if missing(space) == 0:
                    with transaction.atomic():
                        activate(space)
                    return
        yield from _fill(space)
        # If documents arrive faster than they are embedded, allow more to be embedded while writes are
        # blocked.
        allowed *= 2
        time.sleep(PAUSE)


def _embed_with_retries(model: Embedder, texts: Sequence[str]) -> Generator[Progress, None, Vectors]:
    """Retry temporary failures, and report each: a wrong URL looks like an unavailable server."""
    for wait in RETRY_DELAYS:
        try:
            return model.embed(texts)
        except EmbeddingError as error:
            if not error.temporary:
                raise
            seconds = min(max(wait, error.retry_after or 0.0), MAX_RETRY_SECONDS)
            yield Progress(f"{error} Retrying in {seconds:.0f} s")
            time.sleep(seconds)
    return model.embed(texts)


def _write(
    space: EmbeddingSpace, rows: Sequence[_Row], embedded: Sequence[tuple[_Row, list[int], Vectors]]
) -> None:
    """Store the vectors of passages that still exist.

    Skips documents that another transaction has locked, for example to replace them; their passages
    are left to a later `_fill`.
    """
    with transaction.atomic():
        documents = Document.objects.filter(pk__in={row.document_id for row in rows}).order_by("pk")
        held = set(documents.select_for_update(skip_locked=True, no_key=True).values_list("pk", flat=True))
        passages = Passage.objects.filter(pk__in=[row.passage_id for row in rows], document__in=held)
        there = set(passages.values_list("pk", flat=True))
        kept = [item for item in embedded if item[0].passage_id in there]
        if kept:
            columns = ("ingestion_vector", "space_id", "document_id", "passage_id", "digest")
            keys = [
                (space.pk, row.document_id, row.passage_id, digest)
                for row, digests, _ in kept
                for digest in digests
            ]
            copy_vectors(columns, keys, np.concatenate([vectors for _, _, vectors in kept]))


def _build_index(space: EmbeddingSpace) -> None:
    """Build the index in one step, which is much faster than incrementally.

    Reads and writes continue meanwhile.
    """
    definition = index_definition(space)
    if not definition:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", [index_name(space)]
        )
        found = cursor.fetchone()
        if found and found[0]:
            return
        if found:  # left by a killed process
            cursor.execute(f"DROP INDEX CONCURRENTLY {index_name(space)}")
        cursor.execute("SELECT set_config('maintenance_work_mem', %s, false)", [INDEX_MEMORY])
        # No parallel workers: they need shared memory, of which containers have little, and searches need the
        # other cores.
        cursor.execute("SET max_parallel_maintenance_workers = 0")
        cursor.execute(f"CREATE INDEX CONCURRENTLY {definition}")


def _drop(space: EmbeddingSpace) -> Iterator[Progress]:
    """Drop an unused space. Its index is dropped first, so that vectors need not be removed from it."""
    with connection.cursor() as cursor:
        cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {index_name(space)}")
        cursor.execute("SELECT min(id), max(id) FROM ingestion_vector WHERE space_id = %s", [space.pk])
        first, last = cursor.fetchone()
        if first is not None:
            for start in range(first, last + 1, DELETE_BATCH):
                end = min(start + DELETE_BATCH, last + 1)
                delete_rows(Vector.objects.filter(space=space, pk__gte=start, pk__lt=end))
                yield Progress("Removing the former vectors", end - first, last + 1 - first)
        with transaction.atomic():
            PreparedVector.objects.filter(space=space).delete()
            EmbeddingSpace.objects.filter(pk=space.pk, active=False).delete()
        yield Progress("Returning disk space")
        cursor.execute("VACUUM (ANALYZE) ingestion_vector")


@contextlib.contextmanager
def _reembedding_lock() -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [REEMBED_LOCK])
        if not cursor.fetchone()[0]:
            raise AlreadyRunning
        try:
            yield
        finally:
            _unlock(REEMBED_LOCK)


@contextlib.contextmanager
def _writes_blocked() -> Iterator[None]:
    """Within the block, nobody can replace passages. Waits for running replacements first."""
    with connection.cursor() as cursor:
        while True:
            try:
                # A short timeout: replacements that begin while this statement waits must wait behind it.
                cursor.execute("SET lock_timeout = '2s'")
                cursor.execute("SELECT pg_advisory_lock(%s)", [SPACE_LOCK])
                break
            except OperationalError:
                time.sleep(PAUSE)
            finally:
                cursor.execute("SET lock_timeout = 0")
        try:
            yield
        finally:
            _unlock(SPACE_LOCK)


@contextlib.contextmanager
def _without_timeouts() -> Iterator[None]:
    """Run the block without time limits, because its statements take minutes."""
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0")
        cursor.execute("SET lock_timeout = 0")
        try:
            yield
        finally:
            with contextlib.suppress(OperationalError):
                for name in (
                    "statement_timeout",
                    "lock_timeout",
                    "maintenance_work_mem",
                    "max_parallel_maintenance_workers",
                ):
                    cursor.execute(f"RESET {name}")


def _unlock(key: int) -> None:
    with contextlib.suppress(OperationalError), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_unlock(%s)", [key])
