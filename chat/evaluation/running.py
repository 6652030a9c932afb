"""Runs of a site's own evaluation questions, executed by the worker, one run at a time.

Runs are split into short jobs, so that other jobs of the same queue can run in between.
"""

import hashlib
import logging
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from django.contrib.auth.models import Group
from django.db import DatabaseError, IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext
from procrastinate.contrib.django import app

from chatsite.accounts.models import User
from chatsite.accounts.principal import Principal
from chatsite.db import side_jobs
from chatsite.db.threads import reading_as

from .asking import ask, member_of
from .models import ProofQuestion, ProofResult, ProofRun

logger = logging.getLogger(__name__)

TASK = "chat.prove"
VIEW_AS_OTHERS = "accounts.view_as_others"
MAX_QUESTIONS = 500
AT_ONCE = 10  # questions whose results are stored together
SECONDS = 10.0  # duration of one job; the next one is queued behind other side jobs

State = ProofRun.State


class EvaluationRefused(Exception):
    """No run can be started now; the message says why."""


def groups_of(user: User) -> QuerySet[Group]:
    """Groups whose rights a person may use for a run.

    These are the person's own groups, whose documents they may read anyway. People with the permission to
    search with others' rights may use any group; such use is audited.
    """
    return Group.objects.all() if user.has_perm(VIEW_AS_OTHERS) else Group.objects.filter(user=user)


def runs_of(user: User) -> QuerySet[ProofRun]:
    """The runs that a person may see.

    These are the person's runs without a group, and everybody's runs with a group in :func:`groups_of`.
    """
    return ProofRun.objects.filter(Q(group=None, started_by=user) | Q(group__in=groups_of(user)))


def results_of(run: ProofRun, user: User) -> list[ProofResult]:
    """The results of the questions that this person may see, in order."""
    seen = ProofQuestion.objects.managed_by(user.pk)
    return list(run.results.filter(question__in=seen).select_related("question__document"))


def pairs_of(
    before: Iterable[ProofResult], after: Iterable[ProofResult]
) -> list[tuple[ProofResult, ProofResult]]:
    """Pair the results of each question whose text, expected document and place are unchanged.

    A document that was deleted between the runs counts as unchanged.
    """
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
    """Queue a run of up to MAX_QUESTIONS questions that `user` may see. Raises EvaluationRefused."""
    questions = list(ProofQuestion.objects.managed_by(user.pk).order_by("pk")[:MAX_QUESTIONS])
    if not questions:
        raise EvaluationRefused(gettext("There is no question to ask yet."))
    with transaction.atomic():
        try:
            with transaction.atomic():
                run = ProofRun.objects.create(started_by=user, group=group, note=note)
        except IntegrityError:
            raise EvaluationRefused(
                gettext("A run is in progress. Wait until it has ended, or cancel it.")
            ) from None
        ProofResult.objects.bulk_create(
            ProofResult(
                run=run, question=question, asked=_digest(question), wants_nothing=question.wants_nothing
            )
            for question in questions
        )
        _defer(run.pk)
    return run


def cancel(run: ProofRun) -> bool:
    """Cancel the run; False if it has ended."""
    return _end(run.pk, State.CANCELLED)


def continue_run(run_id: int, seconds: float = SECONDS) -> None:
    """Ask questions of the run for some seconds, then queue another job for the rest."""
    deadline = time.monotonic() + seconds
    try:
        while _ask_some(run_id):
            if time.monotonic() >= deadline:
                _defer(run_id)
                return
    except DatabaseError:
        raise  # nothing can be stored now
    except Exception:
        logger.exception("An evaluation failed.", extra={"run": run_id})
        _end(run_id, State.FAILED)


def _ask_some(run_id: int) -> bool:
    """Ask the next few questions; False if none are left, or if the run has ended."""
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
            # The question may have changed since the start of the run.
            result.pk, result.asked = row.pk, _digest(row.question)
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
    """Queue a job for each unfinished run that has none."""
    unfinished = ProofRun.objects.filter(ended_at=None).values_list("pk", flat=True)
    return side_jobs.requeue(TASK, "run_id", unfinished, _defer)


def _digest(question: ProofQuestion) -> str:
    asked = (question.text, question.place, question.wants_nothing)
    return hashlib.sha256(repr(asked).encode()).hexdigest()
