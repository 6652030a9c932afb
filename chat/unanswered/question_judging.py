"""Judges which questions count as unanswered, and why, and groups similar ones.

Every minute, the worker judges the questions of people for whom something has changed, and every night those
of everybody. The admin's page of unanswered questions then needs only the stored judgements, and the texts
that it shows.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.crypto import salted_hmac

from chat.llm.chat_model import NOTHING_FOUND
from chat.overview.models import CountedUntil
from chat.pleasantries import answer_to
from chat.unanswered.models import UnansweredQuestion
from chatsite.db.sql_files import rows
from chatsite.db.threads import reading_everything
from history.tally import UNSURE
from ingestion.search.tokens import plain_words

from .question_likeness import alike, describes_situation, is_small_talk, numbered

SQL = Path(__file__).parent / "sql"
LISTED_FOR = timedelta(days=30)
LAG = timedelta(seconds=30)  # the transaction that ends a run is committed or rolled back within this time
MAX_ASKED = 5_000  # newest questions that are grouped
OWNERS_AT_ONCE = 200
PLACE = 2  # key of this module's row in CountedUntil; the overview's row has the key 1
SITUATION = "told"  # marks a question that describes a situation: documents may answer it in different words
FIELDS = ("owner_id", "asked_at", "reasons", "digest", "answers", "shown", "cited")


def digest_of(text: str) -> str:
    """A keyed hash, so that nobody can guess whether a question was asked."""
    return salted_hmac("chat.unanswered", plain_words(text), algorithm="sha256").hexdigest()


def judge_new(*, everything: bool = False) -> None:
    """Judge the questions of people for whom something has changed since the last call.

    With `everything`, all questions of the last 30 days are judged. Stops as soon as another process is
    judging. After an interruption, the next call begins again with the same changes.
    """
    with reading_everything():
        begun = timezone.now()
        beginning = begun - LISTED_FOR
        place, _ = CountedUntil.objects.get_or_create(
            pk=PLACE, defaults={"finished_at": beginning, "counted_at": beginning}
        )
        since = beginning if everything else max(beginning, place.finished_at - LAG)
        owners = [row["owner_id"] for row in rows("changed_owners", {"since": since, "all": everything}, SQL)]
        changed = UnansweredQuestion.objects.filter(asked_at__lt=beginning).delete()[0] > 0
        for start in range(0, len(owners), OWNERS_AT_ONCE):
            with transaction.atomic():
                if not _is_mine():
                    return
                changed |= _judge(owners[start : start + OWNERS_AT_ONCE], beginning)
        with transaction.atomic():
            if not _is_mine():
                return
            if changed or everything:
                _group()
            CountedUntil.objects.filter(pk=PLACE).update(finished_at=begun, counted_at=begun)


def _is_mine() -> bool:
    """Lock this module's row in CountedUntil for this transaction; False if another process has it."""
    return CountedUntil.objects.select_for_update(skip_locked=True).filter(pk=PLACE).exists()


def _judge(owners: Sequence[int], beginning: datetime) -> bool:
    """Replace the rows of these people with current ones; return whether anything changed."""
    parameters = {
        "since": beginning,
        "owners": list(owners),
        "nothing": list(NOTHING_FOUND),
        "unsure": UNSURE,
    }
    found = {each.message_id: each for each in _found(parameters)}
    known = {each.message_id: each for each in UnansweredQuestion.objects.filter(owner__in=owners)}
    gone = [key for key in known if key not in found]
    new = [each for key, each in found.items() if key not in known]
    other = [
        each
        for key, each in found.items()
        if key in known and any(getattr(each, name) != getattr(known[key], name) for name in FIELDS)
    ]
    UnansweredQuestion.objects.filter(pk__in=gone).delete()
    UnansweredQuestion.objects.bulk_create(new, ignore_conflicts=True)
    UnansweredQuestion.objects.bulk_update(other, FIELDS, batch_size=500)
    return bool(gone or new or other)


def _found(parameters: dict[str, Any]) -> Iterator[UnansweredQuestion]:
    for row in rows("judge_questions", parameters, SQL):
        if is_small_talk(row["content"]) or answer_to(row["content"]):
            continue
        reasons = [reason for reason in ("refused", "unsure", "bad", "again") if row[reason]]
        if row["repeated_soon"] and not row["again"] and alike(row["content"], row["next_content"]):
            reasons.append("again")
        if reasons and describes_situation(row["content"]):
            reasons.append(SITUATION)
        if reasons:
            yield UnansweredQuestion(
                message_id=row["id"],
                conversation_id=row["conversation_id"],
                owner_id=row["owner_id"],
                asked_at=row["created_at"],
                reasons=reasons,
                digest=digest_of(row["content"]),
                answers=sorted(row["answers"]),
                shown=sorted(row["shown"]),
                cited=sorted(row["cited"]),
            )


def _group() -> None:
    """Renumber the groups of the newest questions; older ones lose their numbers."""
    newest = UnansweredQuestion.objects.order_by("-asked_at", "pk")
    asked = list(newest.values_list("pk", "message__content", "group_number")[:MAX_ASKED])
    numbers = numbered([text for _, text, _ in asked])
    changed = [
        UnansweredQuestion(pk=key, group_number=number)
        for (key, _, before), number in zip(asked, numbers, strict=True)
        if number != before
    ]
    UnansweredQuestion.objects.bulk_update(changed, ["group_number"], batch_size=1_000)
    oldest = newest[MAX_ASKED - 1 : MAX_ASKED].values_list("asked_at", flat=True).first()
    if oldest is not None:
        older = UnansweredQuestion.objects.filter(asked_at__lt=oldest)
        older.exclude(group_number=None).update(group_number=None)
