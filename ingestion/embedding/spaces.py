"""Embedding spaces: one for each embedding model; only one space is active.

A space with vectors stays active until `manage.py reembed` has filled another one, even if the settings name
another model. A space without vectors is replaced at once by that of the configured model.
"""

from django.db import connection, transaction
from django.utils.translation import gettext

from chatsite.db.sql_files import Rows, instances, rows_of_each
from ingestion.models import EmbeddingSpace, Vector

from .embedder import Embedder
from .selection import configured, embedder

# Key of the advisory lock for changing the active space: an arbitrary number that must never change.
SPACE_LOCK = 0x636861740001
ACTIVE = "SELECT * FROM ingestion_embeddingspace WHERE active LIMIT 1"  # every search runs this
LOCK_WAIT = "1min"  # how long writing vectors may wait while the active space is being changed
INDEXED_DIMENSIONS = 4_000  # limit of an index on halfvec; larger vectors are scanned


def active_space(found: Rows | None = None) -> EmbeddingSpace:
    """The active space, created and indexed on first use.

    `found` has the rows of the statement ACTIVE if the caller has already run it.
    """
    active = rows_of_each([ACTIVE], {})[0] if found is None else found
    space = next(iter(instances(EmbeddingSpace, active)), None)
    name, dimensions = configured()
    if space and ((space.name, space.dimensions) == (name, dimensions) or is_used(space)):
        return space
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [SPACE_LOCK])
        current = EmbeddingSpace.objects.filter(active=True).first()
        if current and is_used(current):  # another process has activated or filled it meanwhile
            return current
        space, _ = EmbeddingSpace.objects.get_or_create(name=name, dimensions=dimensions)
        activate(space)
        if definition := index_definition(space):
            cursor.execute(f"CREATE INDEX IF NOT EXISTS {definition}")
    return space


def is_used(space: EmbeddingSpace) -> bool:
    return Vector.objects.filter(space=space).exists()


def embedder_of(space: EmbeddingSpace) -> Embedder:
    """The model of the space's vectors, even if the settings name another model."""
    return embedder(space.name, space.dimensions)


def lock_active(space: EmbeddingSpace) -> bool:
    """Whether the space is active; if so, keep it active until the caller's transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", [LOCK_WAIT])
        cursor.execute("SELECT pg_advisory_xact_lock_shared(%s)", [SPACE_LOCK])
    return EmbeddingSpace.objects.filter(pk=space.pk, active=True).exists()


def activate(space: EmbeddingSpace) -> None:
    """Make the space the active one. The caller holds SPACE_LOCK exclusively, in a transaction."""
    EmbeddingSpace.objects.filter(active=True).exclude(pk=space.pk).update(active=False)
    EmbeddingSpace.objects.filter(pk=space.pk).update(active=True)
    space.active = True


def pending_change() -> str:
    """A warning if search does not use the configured model yet; otherwise empty."""
    space = EmbeddingSpace.objects.filter(active=True).first()
    name, dimensions = configured()
    if space is None or (space.name, space.dimensions) == (name, dimensions) or not is_used(space):
        return ""
    return gettext(
        "The documents are embedded with %(used)s, but the settings say %(wanted)s: run “manage.py reembed”."
        " Until it has finished, search uses the former model."
    ) % {"used": space, "wanted": f"{name} ({dimensions})"}


def index_name(space: EmbeddingSpace) -> str:
    return f"vector_space_{space.pk:d}"


def index_definition(space: EmbeddingSpace) -> str:
    """The index's name and definition, for CREATE INDEX; empty with too many dimensions."""
    if space.dimensions > INDEXED_DIMENSIONS:
        return ""
    # Safe to format: these are our own integers, and identifiers and types cannot be parameters.
    return (
        f"{index_name(space)} ON ingestion_vector"
        f" USING hnsw ((vector::halfvec({space.dimensions:d})) halfvec_cosine_ops)"
        f" WITH (m = 16, ef_construction = 200) WHERE space_id = {space.pk:d}"
    )
