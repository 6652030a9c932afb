"""The spaces that vectors lie in: one for each embedding model, of which one is searched."""

from django.conf import settings
from django.db import connection, transaction

from ingestion.models import EmbeddingSpace

from .names import BUILT_IN_DIMENSIONS, BUILT_IN_NAME

SPACE_LOCK = 0x636861740001  # PostgreSQL's advisory lock for making a space, any number of our own
INDEXED_DIMENSIONS = 4_000  # the most that an index on halfvec takes; above, search scans


def active_space() -> EmbeddingSpace:
    """The space of the configured model; made and indexed on first use, and from then on the active one."""
    name, dimensions = _configured()
    space = EmbeddingSpace.objects.filter(name=name, dimensions=dimensions, active=True).first()
    return space or _activate(name, dimensions)


def _configured() -> tuple[str, int]:
    # Without loading the model: search by words alone needs the space but no vectors.
    if settings.EMBEDDING_MODEL:
        return settings.EMBEDDING_MODEL, settings.EMBEDDING_DIMENSIONS
    return BUILT_IN_NAME, BUILT_IN_DIMENSIONS


def _activate(name: str, dimensions: int) -> EmbeddingSpace:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [SPACE_LOCK])
        space, created = EmbeddingSpace.objects.get_or_create(name=name, dimensions=dimensions)
        if not space.active:
            EmbeddingSpace.objects.filter(active=True).update(active=False)
            EmbeddingSpace.objects.filter(pk=space.pk).update(active=True)
            space.active = True
        if created and dimensions <= INDEXED_DIMENSIONS:
            # Whole numbers of our own: identifiers and types cannot be parameters.
            cursor.execute(
                f"CREATE INDEX vector_space_{space.pk:d} ON ingestion_vector"
                f" USING hnsw ((vector::halfvec({dimensions:d})) halfvec_cosine_ops)"
                f" WITH (m = 16, ef_construction = 200) WHERE space_id = {space.pk:d}"
            )
    return space
