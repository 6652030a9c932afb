"""The queue for short jobs that do not read documents."""

from collections.abc import Callable, Iterable

from procrastinate.contrib.django.models import ProcrastinateJob

QUEUE = "side"


def requeue(task: str, argument: str, wanted: Iterable[int], defer: Callable[[int], None]) -> int:
    """Defer a job of `task` for each `wanted` id that has no unfinished job; returns how many.

    `argument` names the task's parameter for the id. A job is lost if a worker of another version does not
    know its task, or if the database fails more often than the job is retried.
    """
    needed = set(wanted)
    if not needed:
        return 0
    jobs = ProcrastinateJob.objects.filter(task_name=task, status__in=["todo", "doing"])
    lost = needed - {arguments[argument] for arguments in jobs.values_list("args", flat=True)}
    for number in lost:
        defer(number)
    return len(lost)
