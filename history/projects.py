"""Projects: conversations of one person under a name, with wishes and a scope for their questions."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import Count
from django.utils import timezone
from django.utils.translation import gettext

from chatsite.accounts.principal import Principal

from .models import Conversation, ConversationQuerySet, Project, ProjectQuerySet

MAX_PROJECTS = 1_000  # of one person


class Invalid(Exception):
    """Why a project is not as it was asked for, in a sentence for people; `member` is what is wrong."""

    def __init__(self, message: str, member: str) -> None:
        super().__init__(message)
        self.message = message
        self.member = member


@dataclass(frozen=True, slots=True)
class Listed:
    """A project with how many conversations it has."""

    project: Project
    conversations: int


def own(principal: Principal, project_id: UUID) -> Project:
    """Raises Project.DoesNotExist for any id that is not the caller's."""
    return Project.objects.owned_by(principal).get(pk=project_id)


def named(principal: Principal, words: str) -> ProjectQuerySet:
    """The caller's projects with all the words in their name, the last used first."""
    found = Project.objects.owned_by(principal)
    for word in words.split():
        found = found.filter(name__icontains=word)
    return found.order_by("-updated_at", "-id")


def conversations_of(principal: Principal, project: Project) -> ConversationQuerySet:
    """The conversations of a project that were not put away."""
    return Conversation.objects.owned_by(principal).current().filter(project=project)


def counted(principal: Principal, projects: Sequence[Project]) -> list[Listed]:
    """The projects with their numbers of conversations, in one query."""
    mine = Conversation.objects.owned_by(principal).current().filter(project__in=projects)
    numbers = dict(mine.order_by().values_list("project").annotate(Count("pk")))
    return [Listed(project, numbers.get(project.pk, 0)) for project in projects]


def create(principal: Principal, name: str, instructions: str = "", scope: str = "") -> Project:
    """Raises Invalid."""
    values = _checked(name, instructions)
    if Project.objects.owned_by(principal).count() >= MAX_PROJECTS:
        words = gettext("You have %(number)s projects, which is the most. Delete one first.")
        raise Invalid(words % {"number": MAX_PROJECTS}, "name")
    return Project.objects.create(owner_id=principal.user_id, scope=scope, **values)


def change(
    principal: Principal, project_id: UUID, name: str, instructions: str, scope: str | None = None
) -> None:
    """Raises Invalid, or Project.DoesNotExist. Without a scope the project keeps its own."""
    values = _checked(name, instructions)
    _update(principal, project_id, **values, **({} if scope is None else {"scope": scope}))


def set_scope(principal: Principal, project_id: UUID, scope: str) -> None:
    """What new conversations in it are searched in; those that it has stay as they are.

    Raises Project.DoesNotExist.
    """
    _update(principal, project_id, scope=scope)


@transaction.atomic
def delete(principal: Principal, project_id: UUID) -> None:
    """Delete a project and keep its conversations. Raises Project.DoesNotExist."""
    Project.objects.owned_by(principal).select_for_update().get(pk=project_id).delete()


def _checked(name: str, instructions: str) -> dict[str, str]:
    """The columns, cleaned. Raises Invalid."""
    name = " ".join(name.replace("\x00", " ").split())
    instructions = instructions.replace("\r\n", "\n").replace("\x00", "\ufffd").strip()
    if not name:
        raise Invalid(gettext("A name needs at least one character."), "name")
    for text, most, member in (
        (name, Project.MAX_NAME_CHARACTERS, "name"),
        (instructions, Project.MAX_INSTRUCTIONS_CHARACTERS, "instructions"),
    ):
        if len(text) > most:
            raise Invalid(gettext("At most %(most)s characters.") % {"most": most}, member)
    return {"name": name, "instructions": instructions}


def _update(principal: Principal, project_id: UUID, **values: str | datetime) -> None:
    mine = Project.objects.owned_by(principal).filter(pk=project_id)
    if not mine.update(updated_at=timezone.now(), **values):
        raise Project.DoesNotExist
