"""Turns on the page of a conversation: questions with their answers."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from django.utils.functional import cached_property

from chatsite.accounts.principal import Principal
from history.branches import Branches
from history.models import Conversation, Message
from ingestion.models import Document
from ingestion.search.scopes import named

from .shown_answers import Answer, Switch, answers_of, switch_of
from .turn_pages import EVERYTHING, TurnsPage, asked_in


@dataclass
class Turn:
    """A question and its answers."""

    question: Message
    answers: list[Answer] = field(default_factory=list)
    branches: Branches | None = None  # branches of the conversation; None if no other versions are offered
    documents: list[Document] = field(default_factory=list)  # the documents that the turn's scope names
    repeats: bool = False  # whether there are several such documents, and the previous turn has the same ones

    @cached_property
    def switch(self) -> Switch | None:
        """The switch between edited versions of the question."""
        return switch_of(self.branches, self.question.position)

    @property
    def comparable(self) -> tuple[int, int] | None:
        """The positions of this version of the question and an adjacent one, older first."""
        return self.switch.comparable(self.question.position) if self.switch else None

    @property
    def last(self) -> int:
        """The position of the last message."""
        return self.answers[-1].place if self.answers else self.question.position

    @property
    def long(self) -> bool:
        """Whether the question is truncated, with “Show all”."""
        return self.question.content.count("\n") >= 12 or len(self.question.content) > 1_200


def turn_of(principal: Principal, conversation: Conversation, position: int) -> list[Turn]:
    """The turn with this position of the chosen branch, as a list; empty if there is none."""
    asked = asked_in(conversation)
    place = bisect_right(asked, position)
    end = asked[place] if place < len(asked) else None
    return turns_of(principal, conversation, TurnsPage(asked[place - 1], end)) if place else []


def turns_since(principal: Principal, conversation: Conversation, position: int) -> list[Turn]:
    """The turns with a message at this position or later."""
    asked = asked_in(conversation)
    before = bisect_right(asked, position) - 2  # include the previous turn, to compare its documents
    turns = turns_of(principal, conversation, TurnsPage(asked[before] if before >= 0 else 0))
    return [turn for turn in turns if turn.last >= position]


def turns_of(principal: Principal, conversation: Conversation, page: TurnsPage = EVERYTHING) -> list[Turn]:
    """The turns on a page of a conversation's chosen branch, in order."""
    rows = conversation.messages.chosen().filter(position__gte=page.first)
    if page.end is not None:
        rows = rows.filter(position__lt=page.end)
    messages = list(rows.select_related("feedback").defer("search").order_by("position"))
    branches = Branches(conversation.pk)
    said = [row for row in messages if row.role == Message.Role.ASSISTANT]
    answers = answers_of(principal, said, branches)
    if answers and page.is_newest:
        answers[-1].newest = True
    by_id = {answer.message.pk: answer for answer in answers}
    turns: list[Turn] = []
    for message in messages:
        if message.role == Message.Role.USER:
            turns.append(Turn(message, branches=branches))
        elif turns:
            for earlier in turns[-1].answers:
                # Answers of the same run come from agents of a team and do not supersede each other.
                if earlier.message.run_id != message.run_id:
                    earlier.superseded = True
            answer = by_id[message.pk]
            turns[-1].answers.append(answer)
            turns[-1].documents = turns[-1].documents or asked_about(principal, answer.searched_in)
    for before, turn in pairwise(turns):
        turn.repeats = len(turn.documents) > 1 and turn.documents == before.documents
    return turns


def asked_about(principal: Principal, scope: str) -> list[Document]:
    """The readable documents that a scope names; those whose reading failed come first."""
    return sorted(named(principal, scope), key=lambda each: each.status != Document.Status.FAILED)


def repeats(principal: Principal, question: Message, documents: Sequence[Document]) -> bool:
    """Whether there are several documents, the same as in the previous question's scope."""
    if len(documents) < 2:
        return False
    branches = Branches(question.conversation_id)
    path = branches.path_to(branches.before(question.position))
    said = Message.objects.filter(conversation=question.conversation_id, role=Message.Role.ASSISTANT)
    before = said.filter(position__in=path).order_by("-position").first()
    if before is None:
        return False
    return asked_about(principal, answers_of(principal, [before])[0].searched_in) == documents
