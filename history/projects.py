"""Projects: conversations under a name, with instructions and a scope for their questions.

A project can have members, who see the project like its owner, but read only their own conversations in it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from django.contrib.auth.models import Group
from django.db import transaction
from django.db.models import Count
from django.utils import timezone
from django.utils.translation import gettext

from chatsite.accounts.audit import record
from chatsite.accounts.holds import demand_no_hold
from chatsite.accounts.models import AuditEntry, User
from chatsite.accounts.principal import Principal
from ingestion.access.lists import Audience, access_list_for, audience_of_list, readers_for_audit
from ingestion.search.scopes import CLOSED, is_closed

from .invalid import Invalid
from .models import Conversation, ConversationQuerySet, Project, ProjectQuerySet

MAX_PROJECTS = 1_000  # per person
MAX_WORDS = 10  # words of a search by name; the rest is ignored
NO_MEMBERS = "Nobody"  # in the audit log


@dataclass(frozen=True, slots=True)
class ProjectRow:
    """A project, with the number of the reader's conversations in it."""

    project: Project
    conversations: int


def own(principal: Principal, project_id: UUID) -> Project:
    """The caller's own project. Raises Project.DoesNotExist."""
    return Project.objects.owned_by(principal).get(pk=project_id)


def opened(principal: Principal, project_id: UUID) -> Project:
    """A project of the caller or one that they are a member of. Raises Project.DoesNotExist."""
    return as_seen(principal, Project.objects.open_to(principal).select_related("owner").get(pk=project_id))


def lock(principal: Principal, project_id: UUID) -> Project:
    """Like :func:`opened`, but locks the row, and so the members, until the transaction ends."""
    open_to = Project.objects.open_to(principal)
    return as_seen(principal, open_to.select_for_update(no_key=True).get(pk=project_id))


def as_seen(principal: Principal, project: Project) -> Project:
    """The project as the caller may see it: a scope that they may not see becomes CLOSED.

    Do not save the object.
    """
    if project.owner_id != principal.user_id and is_closed(principal, project.scope):
        project.scope = CLOSED
    return project


def hide_closed(principal: Principal, conversations: Sequence[Conversation]) -> None:
    """Hide, in the caller's conversations, the projects of which the caller is no longer a member.

    Only the objects in memory change; do not save them. In the database, the conversations keep their
    project, so that a member who rejoins finds them there.
    """
    named = {row.project_id for row in conversations if row.project_id}
    if not named:
        return
    still = set(Project.objects.open_to(principal).filter(pk__in=named).values_list("pk", flat=True))
    for row in conversations:
        if row.project_id not in still:
            row.project = None


def named(principal: Principal, words: str) -> ProjectQuerySet:
    """The projects open to the caller whose names contain all of `words`, last used first."""
    found = Project.objects.open_to(principal).select_related("owner")
    for word in words.split()[:MAX_WORDS]:
        found = found.filter(name__icontains=word)
    return found.order_by("-updated_at", "-id")


def newest(principal: Principal, limit: int) -> list[Project]:
    """The most recently used projects open to the caller, with only their names, in one query."""
    own, joined = (
        found.only("name", "updated_at").order_by("-updated_at", "-id")[:limit]
        for found in (Project.objects.owned_by(principal), Project.objects.joined_by(principal))
    )
    rows = sorted(own.union(joined, all=True), key=lambda row: (row.updated_at, row.pk), reverse=True)
    return rows[:limit]


def conversations_of(principal: Principal, project: Project) -> ConversationQuerySet:
    """The caller's own conversations in a project, without archived ones."""
    return Conversation.objects.owned_by(principal).current().filter(project=project)


def counted(principal: Principal, projects: Sequence[Project]) -> list[ProjectRow]:
    """Projects as the caller may see them, each with the number of the caller's conversations."""
    mine = Conversation.objects.owned_by(principal).current().filter(project__in=projects)
    numbers = dict(mine.order_by().values_list("project").annotate(Count("pk")))
    return [ProjectRow(as_seen(principal, project), numbers.get(project.pk, 0)) for project in projects]


def create(principal: Principal, name: str, instructions: str = "", scope: str = "") -> Project:
    """Create a project of the caller. Raises Invalid."""
    values = _checked(name, instructions)
    if Project.objects.owned_by(principal).count() >= MAX_PROJECTS:
        words = gettext("You have %(number)s projects, which is the maximum. Delete one first.")
        raise Invalid(words % {"number": MAX_PROJECTS}, "name")
    return Project.objects.create(owner_id=principal.user_id, scope=scope, **values)


def change(
    principal: Principal, project_id: UUID, name: str, instructions: str, scope: str | None = None
) -> None:
    """Change the caller's own project. If `scope` is None, the project keeps its scope.

    Raises Invalid, OnHold, or Project.DoesNotExist.
    """
    values = _checked(name, instructions)
    mine = Project.objects.owned_by(principal).filter(pk=project_id)
    if mine.exclude(**values).exists():
        demand_no_hold(principal.user_id)
    _update(principal, project_id, **values, **({} if scope is None else {"scope": scope}))


def set_scope(principal: Principal, project_id: UUID, scope: str) -> None:
    """Set the scope of new conversations in a project; existing conversations do not change.

    Raises Project.DoesNotExist.
    """
    _update(principal, project_id, scope=scope)


@transaction.atomic
def delete(principal: Principal, project_id: UUID) -> None:
    """Delete a project but keep its conversations, including those of members.

    Raises Project.DoesNotExist or OnHold.
    """
    project = Project.objects.owned_by(principal).select_for_update().get(pk=project_id)
    demand_no_hold(principal.user_id)
    project.delete()


def members_of(project: Project) -> Audience:
    """The members, without the owner."""
    return audience_of_list(project.access_list, project.owner_id) if project.access_list else Audience()


def member_names(project: Project) -> list[str]:
    """The names of the members, to show to the owner: first groups, then people."""
    members = members_of(project)
    people = User.objects.filter(pk__in=members.user_ids)
    groups = Group.objects.filter(pk__in=members.group_ids).order_by("name")
    return [*groups.values_list("name", flat=True), *sorted(person.display_name() for person in people)]


@transaction.atomic
def set_members(principal: Principal, project_id: UUID, members: Audience) -> None:
    """Set the members of the caller's own project. Raises Project.DoesNotExist."""
    _give(Project.objects.owned_by(principal), principal, project_id, lambda _: members)


@transaction.atomic
def leave(principal: Principal, project_id: UUID) -> None:
    """End the caller's own membership; a membership through a group remains.

    Raises Project.DoesNotExist.
    """

    def without_caller(members: Audience) -> Audience:
        return replace(members, user_ids=members.user_ids - {principal.user_id})

    _give(Project.objects.open_to(principal), principal, project_id, without_caller)


def _give(
    among: ProjectQuerySet,
    principal: Principal,
    project_id: UUID,
    change: Callable[[Audience], Audience],
) -> None:
    project = among.select_for_update(no_key=True).get(pk=project_id)
    before = members_of(project)
    after = change(before)
    if after == before:
        return
    former = readers_for_audit(project.access_list) if project.access_list else [NO_MEMBERS]
    nobody = not (after.user_ids or after.group_ids)
    access_list = None if nobody else access_list_for(after, project.owner_id)
    Project.objects.filter(pk=project.pk).update(access_list=access_list)
    present = readers_for_audit(access_list) if access_list else [NO_MEMBERS]
    subject = [f"project {project.pk}: ", *former, " → ", *present]
    owner = User.objects.get(pk=project.owner_id)
    actor = User.objects.get(pk=principal.user_id)
    record(AuditEntry.Action.MEMBERS_CHANGED, actor=actor, person=owner, subject=subject)


def _checked(name: str, instructions: str) -> dict[str, str]:
    """The columns with their cleaned values. Raises Invalid."""
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
