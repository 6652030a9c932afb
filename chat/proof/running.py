"""A run of the proof by the worker: one at a time, in short jobs between which documents are read."""

import hashlib
import logging
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from django.contrib.auth.models import Group
from django.db import DatabaseError, IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from procrastinate.contrib.django import app

from chat.models import ProofQuestion, ProofResult, ProofRun
from chatsite.accounts.models import User
from chatsite.accounts.principal import Principal
from chatsite.db import side_jobs
from chatsite.db.threads import reading_as

from .asking import ask, member_of

logger = logging.getLogger(__name__)

TASK = "chat.prove"
VIEW_AS_OTHERS = "accounts.view_as_others"
MAX_QUESTIONS = 500
AT_ONCE = 10  # questions that are asked before their results are stored
SECONDS = 10.0  # of one job; the next one goes on behind the documents that wait

State = ProofRun.State


class ProofRefused(Exception):
    """Why no run can be started now, in words for people."""


def groups_of(user: User) -> QuerySet[Group]:
    """With whose rights a person may run the proof: of their own groups, whose documents they may all read.

    Who may search as others may, which is in the audit log, takes any group.
    """
    return Group.objects.all() if user.has_perm(VIEW_AS_OTHERS) else Group.objects.filter(user=user)


def runs_of(user: User) -> QuerySet[ProofRun]:
    """The runs that a person may look at: their own, and those of groups that they may take."""
    return ProofRun.objects.filter(Q(group=None, started_by=user) | Q(group__in=groups_of(user)))


def results_of(run: ProofRun, user: User) -> list[ProofResult]:
    """What came of the questions that this person may see, in the order in which they are asked."""
    seen = ProofQuestion.objects.managed_by(user.pk)
    return list(run.results.filter(question__in=seen).select_related("question__document"))


def pairs_of(
    before: Iterable[ProofResult], after: Iterable[ProofResult]
) -> list[tuple[ProofResult, ProofResult]]:
    """Results of the same questions that wanted the same; also where the document was deleted in between."""
    former = {each.question_id: each for each in before if each.outcome}
    pairs = [
        (former[each.question_id], each) for each in after if each.outcome and each.question_id in former
    ]
    return [
        (one, two)
        for one, two in pairs
        if one.asked == two.asked and (two.wanted is None or one.wanted == two.wanted)
    ]


def start(user: User, group: Group | None, note: str) -> ProofRun:
    """Queue a run of all questions that `user` may see. Raises ProofRefused."""
    questions = list(ProofQuestion.objects.managed_by(user.pk).order_by("pk")[:MAX_QUESTIONS])
    if not questions:
        raise ProofRefused("There is no question to ask yet.")
    with transaction.atomic():
        try:
            with transaction.atomic():
                run = ProofRun.objects.create(started_by=user, group=group, note=note)
        except IntegrityError:
            raise ProofRefused("A run is under way. Wait for its end, or cancel it.") from None
        ProofResult.objects.bulk_create(
            ProofResult(
                run=run, question=question, asked=_digest(question), wants_nothing=question.wants_nothing
            )
            for question in questions
        )
        _defer(run.pk)
    return run


def cancel(run: ProofRun) -> bool:
    """End the run where it is; False if it has ended already."""
    return _end(run.pk, State.CANCELLED)


def continue_run(run_id: int, seconds: float = SECONDS) -> None:
    """Ask questions of the run for some seconds, then queue a job for the others."""
    deadline = time.monotonic() + seconds
    try:
        while _ask_some(run_id):
            if time.monotonic() >= deadline:
                _defer(run_id)
                return
    except DatabaseError:
        raise  # nothing can be stored now
    except Exception:
        logger.exception("A run of the proof failed.", extra={"run": run_id})
        _end(run_id, State.FAILED)


def _ask_some(run_id: int) -> bool:
    """Ask the next few questions; False once there is nothing left to do."""
    run = ProofRun.objects.filter(pk=run_id, ended_at=None).select_related("started_by", "group").first()
    if run is None:
        return False
    ProofRun.objects.filter(pk=run_id, state=State.WAITING).update(state=State.RUNNING)
    waiting = run.results.filter(outcome=ProofResult.Outcome.WAITING).select_related("question")[:AT_ONCE]
    if not waiting:
        _end(run_id, State.DONE)
        return False
    if run.group is None and (run.started_by is None or not run.started_by.is_active):
        _end(run_id, State.CANCELLED)
        return False
    asked = []
    with _reader_of(run) as principal:
        for row in waiting:
            result = ask(principal, row.question)
            result.pk, result.asked = row.pk, _digest(row.question)  # as it reads now
            asked.append(result)
    fields = ["asked", "wants_nothing", "wanted", "outcome", "rank", "found", "statements", "supported"]
    ProofResult.objects.bulk_update(asked, fields)
    return True


@contextmanager
def _reader_of(run: ProofRun) -> Iterator[Principal]:
    if run.group:
        with member_of(run.group) as principal:
            yield principal
    elif run.started_by:
        with reading_as(run.started_by.pk):
            yield Principal(run.started_by.pk, "command")


def _end(run_id: int, state: State) -> bool:
    unfinished = ProofRun.objects.filter(pk=run_id, ended_at=None)
    return bool(unfinished.update(state=state, ended_at=timezone.now()))


def _defer(run_id: int) -> None:
    app.configure_task(TASK, queue=side_jobs.QUEUE).defer(run_id=run_id)


def queue_lost() -> int:
    """Queue a run again that no job is for."""
    unfinished = ProofRun.objects.filter(ended_at=None).values_list("pk", flat=True)
    return side_jobs.requeue(TASK, "run_id", unfinished, _defer)


def _digest(question: ProofQuestion) -> str:
    asked = (question.text, question.place, question.wants_nothing)
    return hashlib.sha256(repr(asked).encode()).hexdigest()
