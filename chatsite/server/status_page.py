"""The status page of the admin: the state of the site, without Prometheus or a terminal."""

from collections.abc import Iterator

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db import Error as DatabaseError
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils.translation import gettext, pgettext_lazy

from chatsite import metrics
from chatsite.accounts.models import User

from . import metrics_page
from .diagnosis import findings
from .product_version import product_version

Row = tuple[str, str]
# Display names of servers by their labels in the metrics; all other labels are names of language models.
SERVERS = {
    "database": pgettext_lazy("server", "database"),
    "embedding": pgettext_lazy("server", "embedding model"),
}


def status(request: HttpRequest, context: dict[str, object]) -> TemplateResponse:
    """Problems and current load of the site. Changes nothing; asks no server but the database."""
    if not (isinstance(request.user, User) and request.user.is_superuser):
        raise PermissionDenied
    found = [*findings(ask_servers=False)]
    files = gettext("in a bucket") if settings.STORAGE == "S3" else gettext("in a folder")
    rows = [
        (gettext("Version"), product_version()),
        (gettext("Language model"), settings.CHAT_MODEL or gettext("none: answers are quotations")),
        (gettext("Files"), files),
        *_of_database(),
        *_of_processes(),
    ]
    # Servers that this process calls, with the state of their circuit breakers.
    for labels, (is_open,) in metrics.BREAKERS_OPEN.read():
        state = gettext("paused after failures") if is_open else gettext("in use")
        name = SERVERS.get(labels[0], labels[0])
        rows.append((gettext("Connection: %(name)s") % {"name": name}, state))
    context = {
        **context,
        "title": gettext("Status"),
        "wrong": [finding.words for finding in found if finding.level == "wrong"],
        "others": [finding.words for finding in found if finding.level != "wrong"],
        "rows": rows,
    }
    return TemplateResponse(request, "admin/status.html", context)


def _of_database() -> Iterator[Row]:
    try:
        stored = metrics_page.stored_numbers()
    except DatabaseError:
        return
    jobs = {labels[0]: int(numbers[0]) for labels, numbers in stored[metrics.JOBS.name]}
    leases = {labels[0]: int(numbers[0]) for labels, numbers in stored[metrics.LEASES.name]}
    minutes = stored[metrics.OLDEST_JOB_SECONDS.name][0][1][0] / 60
    yield gettext("Answers being written"), str(leases["held"])
    waiting = gettext("%(count)s; the oldest for %(minutes)s minutes")
    waiting %= {"count": jobs["todo"], "minutes": f"{minutes:.0f}"}
    yield gettext("Waiting jobs"), waiting if jobs["todo"] else "0"
    yield gettext("Running jobs"), str(jobs["doing"])


def _of_processes() -> Iterator[Row]:
    """Rows about the processes of this machine, from the metrics that they write."""
    if not settings.METRICS:
        return
    numbers = metrics.gathered(metrics_page.folder())
    peaks = {labels[0]: value[0] for labels, value in numbers.get(metrics.PROCESS_PEAK_BYTES.name, ())}
    for labels, (count,) in numbers.get(metrics.PROCESSES.name, ()):
        kind = labels[0]
        megabytes = peaks.get(kind, 0.0) / 1e6
        words = gettext("%(count)s, with at most %(megabytes)s MB")
        yield (
            gettext("Processes of this machine: %(kind)s") % {"kind": kind},
            words % {"count": f"{count:.0f}", "megabytes": f"{megabytes:.0f}"},
        )
