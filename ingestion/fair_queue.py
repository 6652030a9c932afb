"""Whose document is read next: owners take turns, however many documents each has waiting.

Each waiting document has a turn, and the smallest is read first. An owner's next document comes one turn
after their last, but never before the turn that is being served. So the first document of somebody who has
nothing waiting comes right after those that are being read, and ten thousand of another's behind it. (This is
start-time fair queueing.) With nothing waiting the count begins again.
"""

from collections.abc import Collection

from django.db import connection

from chatsite.db.threads import reading_everything

from .models import Document

COUNTED = 100  # waiting documents in front of one, at the most; beyond that nobody counts

# Jobs and not documents: who adds a document may not see those of others.
SERVED = """
    SELECT coalesce(
        (SELECT max(-priority) FROM procrastinate_jobs WHERE status = 'doing'),
        (SELECT -priority - 1 FROM procrastinate_jobs WHERE status = 'todo' AND priority < 0
         ORDER BY priority DESC LIMIT 1),
        0
    )
"""
BEFORE = """
    SELECT wanted.turn, (
        SELECT count(*) FROM (
            SELECT FROM procrastinate_jobs
            WHERE status = 'todo' AND priority < 0 AND priority > -wanted.turn LIMIT %s
        ) AS earlier
    )
    FROM unnest(%s::int[]) AS wanted (turn)
"""


def next_turn(document: Document) -> int:
    """The turn of a document that is about to wait; the caller holds the transaction."""
    with connection.cursor() as cursor:
        cursor.execute(SERVED)
        served: int = cursor.fetchone()[0]
    # Whoever has the owner's document read again may not read the owner's others, which count all the same.
    with reading_everything():
        theirs = (
            Document.objects.filter(owner=document.owner_id, status__in=Document.UNFINISHED)
            .order_by("-turn")
            .values_list("turn", flat=True)
            .first()
        )
    return max(served, theirs or 0) + 1


def priority_of(turn: int) -> int:
    """What the queue calls it: the highest priority is served first, and other jobs before documents."""
    return -turn


def waiting_before(turns: Collection[int]) -> dict[int, int]:
    """How many documents are read before one of each turn, up to COUNTED."""
    with connection.cursor() as cursor:
        cursor.execute(BEFORE, [COUNTED, list(turns)])
        return dict(cursor.fetchall())
