"""Start-time fair queueing of documents by owner.

Each waiting document has a queue position, and the lowest is read first. An owner's next document gets the
position after their last one, but never one below the position being served. The first document of an owner
with nothing waiting is therefore read next, ahead of ten thousand documents of another owner. The positions
start again at 1 when the queue is empty.
"""

from collections.abc import Collection

from django.db import connection

from chatsite.db.threads import reading_everything

from .models import Document

MAX_COUNTED = 100  # waiting documents ahead of one; counting stops there

# Read from the jobs: row-level security hides other owners' documents from the caller.
CURRENT_POSITION = """
    SELECT coalesce(
        (SELECT max(-priority) FROM procrastinate_jobs WHERE status = 'doing'),
        (SELECT -priority - 1 FROM procrastinate_jobs WHERE status = 'todo' AND priority < 0
         ORDER BY priority DESC LIMIT 1),
        0
    )
"""
COUNT_BEFORE = """
    SELECT wanted.position, (
        SELECT count(*) FROM (
            SELECT FROM procrastinate_jobs
            WHERE status = 'todo' AND priority < 0 AND priority > -wanted.position LIMIT %s
        ) AS earlier
    )
    FROM unnest(%s::int[]) AS wanted (position)
"""


def next_position(document: Document) -> int:
    """Return the position of a document about to wait; call it in the transaction that saves it."""
    with connection.cursor() as cursor:
        cursor.execute(CURRENT_POSITION)
        served: int = cursor.fetchone()[0]
    # All documents of the owner count, also those that the caller may not read.
    with reading_everything():
        last = (
            Document.objects.filter(owner=document.owner_id, status__in=Document.UNFINISHED)
            .order_by("-queue_position")
            .values_list("queue_position", flat=True)
            .first()
        )
    return max(served, last or 0) + 1


def job_priority(position: int) -> int:
    """Return the job's priority: the highest is served first, so documents come after all other jobs."""
    return -position


def count_waiting_before(positions: Collection[int]) -> dict[int, int]:
    """Count the documents that are read before each of these positions, up to MAX_COUNTED."""
    with connection.cursor() as cursor:
        cursor.execute(COUNT_BEFORE, [MAX_COUNTED, list(positions)])
        return dict(cursor.fetchall())
