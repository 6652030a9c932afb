"""Adds each ended run once to the figures of the day on which it began.

The position up to which runs are counted is stored in the same transaction as the figures, so that no run is
counted twice and a worker can continue after a pause. Counts remain when answers are deleted.
"""

import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Count
from django.utils import timezone

from chat import pleasantries
from chat.llm.chat_model import MAX_TOKENS, NOTHING_FOUND
from chatsite.accounts.models import User
from chatsite.db.sql_files import rows
from chatsite.db.threads import reading_everything
from history.tally import NEEDS_MODEL, UNSURE

from . import first_word
from .models import Asker, CountedUntil, DayFigures

SQL = Path(__file__).parent / "sql"
LAG = timedelta(seconds=30)  # the transaction that ends a run is committed or rolled back within this time
RUNS_AT_ONCE = 10_000
SECONDS = 50.0  # longest time for one job; the next one continues
BEFORE_ALL = datetime(1970, 1, 1, tzinfo=UTC)
OUTCOMES = ("answered", "unsure", "refused", "failed", "stopped")
PLACE = 1  # key of this module's row in CountedUntil
LATER = """
    SELECT finished_at FROM chat_run WHERE finished_at > %s AND finished_at <= %s
    ORDER BY finished_at OFFSET %s LIMIT 1
"""


@dataclass(slots=True)
class Counts:
    """What to add to the figures of a day, for everyone or for a group."""

    numbers: Counter[str] = field(default_factory=Counter)
    first_words: list[int] = field(default_factory=list)


def count_ended_runs(seconds: float = SECONDS) -> int:
    """Count newly ended runs; return their number. Does nothing while another process is counting."""
    deadline = time.monotonic() + seconds
    counted = 0
    with reading_everything():
        CountedUntil.objects.get_or_create(
            pk=PLACE, defaults={"finished_at": BEFORE_ALL, "counted_at": timezone.now()}
        )
        while True:
            some = _count_some()
            counted += some or 0
            if not some or time.monotonic() >= deadline:
                return counted


@transaction.atomic
def _count_some() -> int | None:
    """Count the next runs, about RUNS_AT_ONCE or fewer; None while another process is counting."""
    place = CountedUntil.objects.select_for_update(skip_locked=True).filter(pk=PLACE).first()
    if place is None:
        return None
    until = timezone.now() - LAG
    with connection.cursor() as cursor:
        cursor.execute(LATER, [place.finished_at, until, RUNS_AT_ONCE])
        if (border := cursor.fetchone()) is not None:
            (until,) = border
    span = {"since": place.finished_at, "until": until, "zone": settings.TIME_ZONE}
    lines = {
        "nothing": list(NOTHING_FOUND),
        "unsure": [UNSURE, NEEDS_MODEL],
        "pleasantries": list(pleasantries.ANSWERS),
    }
    ended = rows("ended_runs", {**span, **lines, "most": MAX_TOKENS}, SQL)
    if ended:
        rows("count_documents", span, SQL)
        # The current groups of each person, which may differ from those at the time of the question.
        groups: dict[int, list[int]] = defaultdict(list)
        memberships = User.groups.through.objects.filter(user_id__in={row["owner_id"] for row in ended})
        for person, group_id in memberships.values_list("user_id", "group_id"):
            groups[person].append(group_id)
        counts: dict[tuple[date, int | None], Counts] = defaultdict(Counts)
        for row in ended:
            for group in (None, *groups.get(row["owner_id"], ())):
                more = counts[row["day"], group]
                more.numbers.update(
                    questions=1,
                    prompt_tokens=row["prompt"],
                    completion_tokens=row["completion"],
                    **{row["outcome"]: 1},
                )
                if row["first_word_ms"] is not None:
                    first_word.add(more.first_words, row["first_word_ms"])
        askers = {(row["day"], row["owner_id"]) for row in ended}
        Asker.objects.bulk_create(
            [Asker(day=day, person_id=person) for day, person in sorted(askers)], ignore_conflicts=True
        )
        _add(counts)
    place.finished_at, place.counted_at = max(place.finished_at, until), timezone.now()
    place.save()
    return len(ended)


def _add(counts: dict[tuple[date, int | None], Counts]) -> None:
    days = {day for day, _ in counts}
    known = {(row.day, row.group_id): row for row in DayFigures.objects.filter(day__in=days)}
    # Count how many people asked on each of these days, in total and by group.
    asked = Asker.objects.filter(day__in=days).order_by()
    everyone = asked.values_list("day").annotate(people=Count("pk"))
    members = asked.filter(person__groups__isnull=False).values_list("day", "person__groups")
    people: dict[tuple[date, int | None], int] = {(day, None): count for day, count in everyone}
    people |= {(day, group): count for day, group, count in members.annotate(people=Count("pk"))}
    for (day, group), more in counts.items():
        row = known.get((day, group)) or DayFigures(day=day, group_id=group)
        for name, number in more.numbers.items():
            setattr(row, name, getattr(row, name) + number)
        row.first_words = first_word.total([row.first_words, more.first_words])
        # Never decrease this number, because accounts may have been erased since.
        row.people = max(row.people, people.get((day, group), 0))
        row.save()
