"""Branches of a conversation, created by editing questions and regenerating answers.

Messages are only ever added, each at the next position. A message that does not follow the one at the
previous position is a fork, and has the position of its predecessor in `follows`. `chosen` marks the branch
that the owner reads.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from itertools import chain
from uuid import UUID

from django.utils.functional import cached_property

from .models import Message

START = -1  # position before the first message


class Branches:
    """The predecessors and successors of one conversation's messages, by position.

    They are loaded at first use with one query.
    """

    def __init__(self, conversation_id: UUID) -> None:
        self._conversation_id = conversation_id

    @classmethod
    def of(cls, conversation_ids: Iterable[UUID]) -> "dict[UUID, Branches]":
        """The branches of several conversations, in one query."""
        found = {each: cls(each) for each in conversation_ids}
        for branches in found.values():
            branches._forks = {}
        rows = Message.objects.filter(conversation__in=found, follows__isnull=False).order_by()
        for conversation_id, position, follows in rows.values_list("conversation", "position", "follows"):
            assert follows is not None
            found[conversation_id]._forks[position] = follows
        return found

    @cached_property
    def _forks(self) -> dict[int, int]:
        rows = Message.objects.filter(conversation=self._conversation_id, follows__isnull=False).order_by()
        found = rows.values_list("position", "follows")
        return {position: follows for position, follows in found if follows is not None}

    @cached_property
    def _fork_positions(self) -> list[int]:
        return sorted(self._forks)

    @cached_property
    def _beginnings(self) -> dict[int, list[int]]:
        """{position: the positions of the forks that follow this message}"""
        found: dict[int, list[int]] = defaultdict(list)
        for position, follows in sorted(self._forks.items()):
            found[follows].append(position)
        return found

    def before(self, position: int) -> int:
        """The predecessor of this message; START if it has none."""
        return self._forks.get(position, position - 1)

    def path_to(self, position: int) -> list[int]:
        """The positions of the message and its predecessors, in order."""
        return list(chain.from_iterable(self.spans_to(position)))

    def spans_to(self, position: int) -> list[range]:
        """The positions of :meth:`path_to` as ranges; a path with `n` forks has at most `n` + 1."""
        spans = []
        while position > START:
            place = bisect_right(self._fork_positions, position)
            first = self._fork_positions[place - 1] if place else 0
            spans.append(range(first, position + 1))
            position = self._forks.get(first, START)
        return spans[::-1]

    def siblings(self, position: int) -> list[int]:
        """The message and the others with the same predecessor, oldest first."""
        return self.successors(self.before(position))

    def successors(self, position: int) -> list[int]:
        """The messages that follow this one in different branches, oldest first.

        If no fork begins at the next position, that position is included, even if it has no message yet.
        """
        forks = self._beginnings.get(position, [])
        return forks if position + 1 in self._forks else [position + 1, *forks]

    def newest_from(self, position: int, last: int) -> int:
        """The newest descendant of this message; `last` is the last position of the conversation."""
        reached = {position}
        for later in range(position + 1, last + 1):
            if self.before(later) in reached:
                reached.add(later)
        return max(reached)


def question_of(answer: Message) -> Message | None:
    """The question that an answer belongs to, also for later answers of a team."""
    path = Branches(answer.conversation_id).path_to(answer.position)
    asked = Message.objects.filter(conversation=answer.conversation_id, role=Message.Role.USER)
    return asked.filter(position__in=path).order_by("-position").first()
