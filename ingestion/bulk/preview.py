"""Previews a change of readers: who gains access, and who loses it."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import Group
from django.db.models import Count, QuerySet
from django.utils.translation import gettext

from chatsite.accounts.models import User
from ingestion.access.lists import Audience, audience_of_list
from ingestion.access.models import AccessList
from ingestion.models import Document

from .changes import Readers, as_audience, as_value

MAX_NAMED = 300  # readers that one side lists
EVERYONE, GUESTS = "everyone", "guests"
Key = tuple[str, int]  # ("everyone" | "guests", 0), ("group", id) or ("person", id)


@dataclass(frozen=True, slots=True)
class NamedReader:
    """A reader who gains or loses access; `people` is the size of a group."""

    name: str
    documents: int
    people: int | None = None


@dataclass(slots=True)
class Side:
    """One side of a preview: those who gain access to at least one document, or those who lose it."""

    people: int = 0
    readers: list[NamedReader] = field(default_factory=list)
    more: int = 0  # number of readers that are not listed


@dataclass(frozen=True, slots=True)
class Preview:
    """Who gains and who loses access.

    `fixed` is the number of documents that do not change, because a synchronised folder, an archive or a
    message determines their readers.
    """

    gaining: Side
    losing: Side
    fixed: int

    @property
    def changes_nothing(self) -> bool:
        return not (self.gaining.readers or self.losing.readers)


def preview(chosen: QuerySet[Document], form: dict[str, Any]) -> Preview:
    """Preview the form's change of readers for these documents."""
    free = chosen.filter(part_of=None, source_file=None)
    counted = free.order_by().values_list("access_list", "owner").annotate(documents=Count("pk"))
    lists = {
        each.pk: each
        for each in AccessList.objects.filter(pk__in=free.order_by().values("access_list")).prefetch_related(
            "entries"
        )
    }
    moves = []
    for list_id, owner, documents in counted:
        before = audience_of_list(lists[list_id], owner)
        after = as_audience(Readers().wanted(as_value(before), form))
        if before != after:
            moves.append(_Move(before, after, frozenset([owner] if owner else []), documents))
    return _Comparison(moves).preview(chosen.count() - free.count())


@dataclass(frozen=True, slots=True)
class _Move:
    """The change of readers for documents that have the same owner and the same readers."""

    before: Audience
    after: Audience
    owner: frozenset[int]
    documents: int


class _Comparison:
    """Compares readers by account: a person who may still read as a member of a group loses nothing."""

    def __init__(self, moves: list[_Move]) -> None:
        self.moves = moves
        active = User.objects.filter(is_active=True, guest_until=None)
        self.all = frozenset(active.values_list("pk", flat=True))
        groups = {group for move in moves for side in (move.before, move.after) for group in side.group_ids}
        members = User.groups.through.objects.filter(group__in=groups, user__in=active)
        self.members: dict[int, set[int]] = {group: set() for group in groups}
        for group, person in members.values_list("group", "user"):
            self.members[group].add(person)

    def preview(self, fixed: int) -> Preview:
        gaining, losing = Counter[Key](), Counter[Key]()
        gain, loss = _People(self.all), _People(self.all)
        for move in self.moves:
            before, after = self._people(move.before, move.owner), self._people(move.after, move.owner)
            gain.add(after, before)
            loss.add(before, after)
            for key in self._named(move.after, move.before, before):
                gaining[key] += move.documents
            for key in self._named(move.before, move.after, after):
                losing[key] += move.documents
        return Preview(self._side(gaining, gain), self._side(losing, loss), fixed)

    def _people(self, audience: Audience, owner: frozenset[int]) -> frozenset[int] | None:
        """The accounts that may read; None if everyone may."""
        if audience.everyone:
            return None
        members = (self.members[group] for group in audience.group_ids)
        return (owner | audience.user_ids).union(*members) & self.all

    def _named(self, those: Audience, others: Audience, readers: frozenset[int] | None) -> Iterable[Key]:
        """The readers named in `those` that include an account that `others` does not include.

        `readers` are the accounts that `others` includes; None if it includes everyone.
        """
        if those.guests and not others.guests:
            yield GUESTS, 0
        if readers is None:
            return
        if those.everyone:
            yield EVERYONE, 0
            return
        yield from (("group", group) for group in those.group_ids if self.members[group] - readers)
        yield from (("person", person) for person in (those.user_ids & self.all) - readers)

    def _side(self, counted: Counter[Key], people: "_People") -> Side:
        most = sorted(
            counted.items(), key=lambda each: (each[0][0] not in (EVERYONE, GUESTS), -each[1], each[0])
        )
        shown = most[:MAX_NAMED]
        groups = Group.objects.in_bulk([number for (kind, number), _ in shown if kind == "group"])
        persons = User.objects.in_bulk([number for (kind, number), _ in shown if kind == "person"])
        readers = []
        for (kind, number), documents in shown:
            if kind == "group":
                readers.append(NamedReader(groups[number].name, documents, len(self.members[number])))
            elif kind == "person":
                username, name = persons[number].get_username(), persons[number].get_full_name()
                readers.append(NamedReader(f"{name} ({username})" if name else username, documents))
            else:
                name = gettext("Everyone who signs in") if kind == EVERYONE else gettext("Guests")
                readers.append(NamedReader(name, documents))
        return Side(people.count, readers, len(most) - len(shown))


class _People:
    """Collects the accounts that, in at least one of the added pairs of sets, are only in the first."""

    def __init__(self, everybody: frozenset[int]) -> None:
        self.everybody = everybody
        self.some: set[int] = set()
        # The accounts that are in the second set of every pair whose first set is None (all accounts).
        self.always: frozenset[int] | None = None

    def add(self, those: frozenset[int] | None, others: frozenset[int] | None) -> None:
        if others is None:
            return
        if those is None:
            self.always = others if self.always is None else self.always & others
        else:
            self.some |= those - others

    @property
    def count(self) -> int:
        return len(self.some if self.always is None else self.some | (self.everybody - self.always))
