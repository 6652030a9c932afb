"""Branches of a conversation: questions that were edited, and answers that were given again.

Messages are only ever added, each at the next position. One that does not follow the message at the position
before it says which one it follows; `chosen` is set on those of the branch that its owner reads.
"""

from collections import defaultdict
from functools import cached_property
from uuid import UUID

from .models import Message

START = -1  # what the first message follows


class Branches:
    """Which message follows which in one conversation, by position; one query, where it is looked at."""

    def __init__(self, conversation_id: UUID) -> None:
        self._conversation_id = conversation_id

    @cached_property
    def _forks(self) -> dict[int, int]:
        rows = Message.objects.filter(conversation=self._conversation_id, follows__isnull=False).order_by()
        found = rows.values_list("position", "follows")
        return {position: follows for position, follows in found if follows is not None}

    @cached_property
    def _beginnings(self) -> dict[int, list[int]]:
        """The messages that fork after each message."""
        found: dict[int, list[int]] = defaultdict(list)
        for position, follows in sorted(self._forks.items()):
            found[follows].append(position)
        return found

    def before(self, position: int) -> int:
        """The message that this one follows; START for one that begins the conversation."""
        return self._forks.get(position, position - 1)

    def path_to(self, position: int) -> list[int]:
        """The message and all before it, in order."""
        path = []
        while position > START:
            path.append(position)
            position = self.before(position)
        return path[::-1]

    def siblings(self, position: int) -> list[int]:
        """The message and the others that follow the same one, oldest first."""
        before = self.before(position)
        forks = self._beginnings.get(before, [])
        return forks if before + 1 in self._forks else [before + 1, *forks]

    def newest_from(self, position: int, last: int) -> int:
        """The newest message that this one leads to; `last` is the last position of the conversation."""
        reached = {position}
        for later in range(position + 1, last + 1):
            if self.before(later) in reached:
                reached.add(later)
        return max(reached)


def question_of(answer: Message) -> Message | None:
    """The question that an answer follows, also behind others of its team."""
    path = Branches(answer.conversation_id).path_to(answer.position)
    asked = Message.objects.filter(conversation=answer.conversation_id, role=Message.Role.USER)
    return asked.filter(position__in=path).order_by("-position").first()
