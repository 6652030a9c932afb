"""Usage figures on the admin's start page, and as CSV."""

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.formats import date_format
from django.utils.translation import gettext, gettext_lazy

from chatsite.accounts.models import User
from chatsite.http.csv_cells import plain
from chatsite.http.parameters import whole_number

from .charts import stacked
from .counting import OUTCOMES
from .figures import IN_FILE, MIN_PEOPLE, PERIODS, Figures, Totals, documents_of, scope_of

PERMISSION = "chat.view_figures"
SERIES = (  # the names of OUTCOMES for readers, in the same order
    gettext_lazy("Answered"),
    gettext_lazy("Closest passages, or no source"),
    gettext_lazy("Nothing found"),
    gettext_lazy("Failed"),
    gettext_lazy("Stopped"),
)
Line = Sequence[object]


def overview(request: HttpRequest) -> dict[str, Any]:
    """The context of the page; empty for those who may not see figures."""
    reader = request.user
    if not isinstance(reader, User) or not reader.has_perm(PERMISSION):
        return {}
    figures = _figures(request, reader)
    columns = [
        (
            date_format(day.day, gettext("j M")),
            [getattr(day.totals, name) for name in OUTCOMES] if day.totals else [],
        )
        for day in figures.days
    ]
    return {
        "figures": figures,
        "chart": stacked(columns),
        "series": [*enumerate(SERIES, 1)],
        "periods": PERIODS,
        "min_people": MIN_PEOPLE,
        "currency": settings.PRICE_CURRENCY,
        "query": request.GET.urlencode(),
    }


def csv_file(request: HttpRequest, part: str) -> HttpResponse:
    """One part of the page (see PARTS) as CSV, for the requested period and group."""
    reader = request.user
    if not isinstance(reader, User) or not reader.has_perm(PERMISSION):
        raise PermissionDenied
    lines = PARTS.get(part)
    if lines is None:
        raise Http404
    written = io.StringIO()
    csv.writer(written).writerows(
        [plain(cell) if isinstance(cell, str) else cell for cell in line]
        for line in lines(_figures(request, reader))
    )
    response = HttpResponse(written.getvalue(), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{part}.csv"'
    return response


def _figures(request: HttpRequest, reader: User) -> Figures:
    days, group = (whole_number(request.GET.get(name, "")) for name in ("days", "group"))
    return Figures(reader, scope_of(days, group))


def _days(figures: Figures) -> Iterable[Line]:
    yield "day", "people", *NAMES
    for day in figures.days:
        numbers = _numbers(day.totals) if day.totals else [""] * len(NAMES)
        yield day.day.isoformat(), day.people if day.totals else f"fewer than {MIN_PEOPLE}", *numbers


def _groups(figures: Figures) -> Iterable[Line]:
    yield "group", "people", *NAMES[: -len(LATENCIES)]
    for row in figures.groups:
        yield row.group.name, row.people, *_numbers(row.totals)[: -len(LATENCIES)]


def _documents(figures: Figures) -> Iterable[Line]:
    yield "title", "folder", "added", "cited", "found"
    for row in documents_of(figures.reader, figures.scope, IN_FILE):
        if row["readable"]:
            added = row["created_at"].date().isoformat()
            yield row["title"], row["folder"], added, row["cited"], row["found"]


LATENCIES = ("seconds to the first word (median)", "95 % within seconds")
NAMES = ("questions", *OUTCOMES, "prompt tokens", "completion tokens", "cost", *LATENCIES)
PARTS: dict[str, Callable[[Figures], Iterable[Line]]] = {
    "days": _days,
    "groups": _groups,
    "documents": _documents,
}


def _numbers(totals: Totals) -> list[object]:
    """A row of numbers, with the columns of NAMES."""
    outcomes = [getattr(totals, name) for name in OUTCOMES]
    tokens = [totals.prompt_tokens, totals.completion_tokens, round(totals.cost, 2)]
    seconds = ["" if value is None else round(value, 2) for value in (totals.median, totals.late)]
    return [totals.questions, *outcomes, *tokens, *seconds]
