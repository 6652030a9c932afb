"""Work that no job is for: a worker of another version failed a job that it did not know."""

from collections.abc import Callable, Iterable

from procrastinate.contrib.django.models import ProcrastinateJob


def requeue(task: str, argument: str, wanted: Iterable[int], defer: Callable[[int], None]) -> int:
    """Defer a job of `task` for each of `wanted` ids for which none waits or runs; how many there were."""
    needed = set(wanted)
    if not needed:
        return 0
    jobs = ProcrastinateJob.objects.filter(task_name=task, status__in=["todo", "doing"])
    lost = needed - {arguments[argument] for arguments in jobs.values_list("args", flat=True)}
    for number in lost:
        defer(number)
    return len(lost)
