"""Usage figures of a period, of everyone or one group; callers check the permission.

A group is only shown if at least three of its members asked; the same applies to each of its days.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import Group
from django.db.models import Count, QuerySet, Sum
from django.utils import timezone
from django.utils.functional import cached_property

from chatsite.accounts.models import User
from chatsite.db.sql_files import Rows, rows
from history.models import Feedback
from ingestion.access.models import AccessEntry
from ingestion.models import Document
from ingestion.queue.fair_queue import TASK
from ingestion.reasons import in_words

from . import first_word
from .counting import OUTCOMES, PLACE
from .models import Asker, CountedUntil, DayFigures

SQL = Path(__file__).parent / "sql"
PERIODS = (7, 30, 90)  # lengths in days
DEFAULT_PERIOD = 30
MIN_PEOPLE = 3  # figures of a group are only shown if at least this many people asked
MAX_GROUPS = 100  # number of groups that are shown
LISTED = 8  # maximum number of documents in each list of the page
IN_FILE = 10_000  # maximum number of documents in each list of a CSV file
NUMBERS = ("questions", *OUTCOMES, "prompt_tokens", "completion_tokens")


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over several days."""

    questions: int = 0
    answered: int = 0
    unsure: int = 0
    refused: int = 0
    failed: int = 0
    stopped: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    first_words: Sequence[int] = ()

    @property
    def share_answered(self) -> float | None:
        """Answered questions as a percentage of all questions."""
        return self._share(self.answered)

    @property
    def share_unsure(self) -> float | None:
        """Percentage of questions answered only with the closest passages, or without a source."""
        return self._share(self.unsure)

    @property
    def share_refused(self) -> float | None:
        """Percentage of questions for which nothing was found, or that were blocked."""
        return self._share(self.refused)

    def _share(self, number: int) -> float | None:
        return 100 * number / self.questions if self.questions else None

    @property
    def median(self) -> float | None:
        """The median number of seconds to the first word."""
        return first_word.quantile(self.first_words, 0.5)

    @property
    def late(self) -> float | None:
        """Seconds within which 95 % of the answers started."""
        return first_word.quantile(self.first_words, 0.95)

    @property
    def cost(self) -> float:
        """The cost of tokens, in the currency of the settings; 0 without prices."""
        prompt = self.prompt_tokens * settings.PRICE_PROMPT
        return (prompt + self.completion_tokens * settings.PRICE_COMPLETION) / 1_000_000


@dataclass(frozen=True, slots=True)
class Day:
    """One day of the chart; `totals` is None if too few members of the group asked."""

    day: date
    people: int
    totals: Totals | None


@dataclass(frozen=True, slots=True)
class Scope:
    """The period of the figures, and the group to which they are limited, if any."""

    first: date
    days: int
    group: Group | None = None

    @property
    def last(self) -> date:
        return self.first + timedelta(days=self.days - 1)

    @property
    def before(self) -> "Scope":
        """The period of the same length that ends on the day before this one begins."""
        return Scope(self.first - timedelta(days=self.days), self.days, self.group)


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group with at least three people who asked."""

    group: Group
    people: int
    totals: Totals


@dataclass(frozen=True, slots=True)
class DocumentList:
    """Readable documents, and the numbers of all and of unreadable ones (`in_all`, `closed`)."""

    shown: Rows
    in_all: int = 0
    closed: int = 0


class Figures:
    """All figures of the page; each is computed when it is shown."""

    def __init__(self, reader: User, scope: Scope) -> None:
        self.reader = reader
        self.scope = scope

    @cached_property
    def days(self) -> list[Day]:
        return days_of(self.scope)

    @cached_property
    def totals(self) -> Totals:
        return added(day.totals for day in self.days)

    @cached_property
    def earlier(self) -> Totals:
        """The totals of the previous period."""
        return added(day.totals for day in days_of(self.scope.before))

    @property
    def has_closed_days(self) -> bool:
        return any(day.totals is None for day in self.days)

    @property
    def change(self) -> float | None:
        """Change of the number of questions from the previous period, in percent."""
        if not self.earlier.questions:
            return None
        return 100 * (self.totals.questions / self.earlier.questions - 1)

    @cached_property
    def people(self) -> int:
        if self.scope.group is not None:
            return self._people_of_groups.get(self.scope.group.pk, 0)
        return _askers(self.scope).count()

    @cached_property
    def accounts(self) -> int:
        """The number of active accounts in the scope, not counting guests."""
        people = User.objects.filter(is_active=True, guest_until=None)
        return (people.filter(groups=self.scope.group) if self.scope.group else people).count()

    @cached_property
    def _people_of_groups(self) -> dict[int, int]:
        members = User.groups.through.objects.filter(user__in=_askers(self.scope))
        return dict(members.values_list("group").annotate(people=Count("user")))

    @cached_property
    def groups(self) -> list[GroupRow]:
        """The groups that may be shown; those with the most people come first."""
        people = {group: count for group, count in self._people_of_groups.items() if count >= MIN_PEOPLE}
        largest = sorted(people, key=lambda group: (-people[group], group))[:MAX_GROUPS]
        found = _in_period(self.scope).filter(group__in=largest, people__gte=MIN_PEOPLE).order_by()
        sums = found.values_list("group").annotate(*(Sum(name) for name in NUMBERS))
        totals = {group: Totals(*numbers) for group, *numbers in sums}
        names = Group.objects.in_bulk(largest)
        return [GroupRow(names[pk], people[pk], totals.get(pk, Totals())) for pk in largest if pk in names]

    @property
    def small_groups(self) -> int:
        """The number of groups that are not shown, because only one or two members asked."""
        return sum(count < MIN_PEOPLE for count in self._people_of_groups.values())

    @cached_property
    def _documents(self) -> Rows:
        return documents_of(self.reader, self.scope, LISTED)

    @property
    def most_used(self) -> DocumentList:
        return _listed(self._documents, "most")

    @property
    def never_used(self) -> DocumentList:
        return _listed(self._documents, "never")

    @cached_property
    def ratings(self) -> dict[str, int]:
        """How often each rating was given, and each reason for a bad one."""
        zone = timezone.get_current_timezone()
        parameters = {
            "since": datetime.combine(self.scope.first, time(), zone),
            "until": datetime.combine(self.scope.last + timedelta(days=1), time(), zone),
            "group_id": self.scope.group.pk if self.scope.group else None,
        }
        return {row["word"]: row["times"] for row in rows("ratings", parameters, SQL)}

    @property
    def reasons(self) -> list[tuple[str, int]]:
        """Why answers were rated bad, the most frequent first."""
        words = dict(Feedback.Reason.choices)
        found = [(str(words[name]), times) for name, times in self.ratings.items() if name in words]
        return sorted(found, key=lambda each: -each[1])

    @cached_property
    def failed_files(self) -> DocumentList:
        failed = Document.objects.filter(status=Document.Status.FAILED)
        if self.reader.has_perm("ingestion.view_document"):  # as in the admin's list of documents
            readable = failed.without_private(self.reader.pk)
        else:
            readable = failed.filter(access_list__in=AccessEntry.lists_of(self.reader.pk))
        newest = readable.order_by("-changed_at")[:LISTED]
        in_all = failed.count()
        shown = [{"id": each.pk, "name": each.name, "reason": in_words(each.reason)} for each in newest]
        return DocumentList(shown, in_all, in_all - readable.count())

    @cached_property
    def queue(self) -> dict[str, float]:
        return rows("queue", {"task": TASK}, SQL)[0]

    @cached_property
    def counted_at(self) -> datetime | None:
        return CountedUntil.objects.filter(pk=PLACE).values_list("counted_at", flat=True).first()


def scope_of(days: int | None, group_id: int | None) -> Scope:
    """The period of this many days until today; of DEFAULT_PERIOD if `days` is not in PERIODS.

    If the group is unknown, or too few of its members asked, the scope is everyone.
    """
    days = days if days in PERIODS else DEFAULT_PERIOD
    first = timezone.localdate() - timedelta(days=days - 1)
    everyone = Scope(first, days)
    group = Group.objects.filter(pk=group_id).first() if group_id else None
    if group is None or _askers(everyone).filter(groups=group).count() < MIN_PEOPLE:
        return everyone
    return Scope(first, days, group)


def days_of(scope: Scope) -> list[Day]:
    """Every day of the period, including those without questions."""
    known = {row.day: row for row in _in_period(scope).filter(group=scope.group)}
    found = []
    for number in range(scope.days):
        day = scope.first + timedelta(days=number)
        row = known.get(day)
        if row is None:
            found.append(Day(day, 0, Totals()))
        elif scope.group and row.people < MIN_PEOPLE:
            found.append(Day(day, 0, None))
        else:
            sums = {name: getattr(row, name) for name in NUMBERS}
            found.append(Day(day, row.people, Totals(**sums, first_words=row.first_words)))
    return found


def added(many: Iterable[Totals | None]) -> Totals:
    """The sums of all shown days."""
    every = [totals for totals in many if totals is not None]
    sums = {name: sum(getattr(totals, name) for totals in every) for name in NUMBERS}
    return Totals(**sums, first_words=first_word.total([totals.first_words for totals in every]))


def documents_of(reader: User, scope: Scope, most: int) -> Rows:
    """The most cited and never cited documents of the period, up to `most` readable ones each.

    One unreadable document of each kind is included, if there is any, for the counts in its row.
    """
    parameters = {"since": scope.first, "until": scope.last, "user_id": reader.pk, "most": most}
    return rows("document_use", parameters, SQL)


def _listed(found: Rows, kind: str) -> DocumentList:
    of_kind = [row for row in found if row["of"] == kind]
    if not of_kind:
        return DocumentList([])
    return DocumentList(
        [row for row in of_kind if row["readable"]], of_kind[0]["in_all"], of_kind[0]["closed"]
    )


def _in_period(scope: Scope) -> QuerySet[DayFigures]:
    return DayFigures.objects.filter(day__range=(scope.first, scope.last))


def _askers(scope: Scope) -> QuerySet[User]:
    """The people who asked in the period."""
    asked = Asker.objects.filter(day__range=(scope.first, scope.last)).values("person").distinct()
    return User.objects.filter(pk__in=asked)
