"""The queue of work that is short and waits for no document."""

from collections.abc import Callable, Iterable

from procrastinate.contrib.django.models import ProcrastinateJob

QUEUE = "side"


def requeue(task: str, argument: str, wanted: Iterable[int], defer: Callable[[int], None]) -> int:
    """Defer a job of `task` for each of `wanted` ids for which none waits or runs; how many there were.

    Jobs get lost where a worker of another version fails what it does not know, and where the database fails
    more often than a job is tried.
    """
    needed = set(wanted)
    if not needed:
        return 0
    jobs = ProcrastinateJob.objects.filter(task_name=task, status__in=["todo", "doing"])
    lost = needed - {arguments[argument] for arguments in jobs.values_list("args", flat=True)}
    for number in lost:
        defer(number)
    return len(lost)
