"""Writes conversations and messages.

Besides this module, only history.merging, chat.persons.erasure and chat.retention_rules do so. All functions
are synchronous and use the caller's transaction, if any.
"""

import json
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone
from django.utils.translation import gettext

from chatsite.accounts.holds import demand_no_hold
from chatsite.accounts.principal import Principal
from chatsite.db.sql_files import prepared, rows, rows_of_each, statement
from chatsite.db.threads import reading_everything

from . import projects
from .branches import START, Branches
from .citation_text import without
from .models import Conversation, Message, Source
from .search_words import (
    lexemes,
    search_vector,
)

SQL = Path(__file__).parent / "sql"
BEGIN_TURN = statement("begin_turn", SQL)
SET_TITLE = statement("set_title", SQL)
TITLE_LENGTH = 200
COPIED_FIELDS = (
    "state", "finish_reason", "error_code", "agent_name", "citations", "labels", "verification", "grade",
    "created_at", "finished_at", "verified",
)  # fmt: skip
PURGE_BATCH = 500  # conversations
RESTORE_TTL = timedelta(hours=1)  # time during which a deleted conversation can be restored
# An answer whose complete text was shown counts as seen if its run ends within this time.
WHOLE_TTL = timedelta(seconds=30)
UNLISTED_TTL = timedelta(hours=1)  # how long unlisted conversations are kept, for repeated requests


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnIds:
    """The owner of a stored question, and the ids of the question, its answer, their run and the request."""

    principal: Principal
    run_id: UUID
    conversation_id: UUID
    question_id: UUID
    answer_id: UUID  # for a team, the first answer
    request_id: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class NewConversation:
    """A conversation to open. An unlisted one is not shown and is purged soon."""

    title: str
    mode: str = Conversation.Mode.STANDARD
    listed: bool = True
    project_id: UUID | None = None  # the caller has locked this project


@dataclass(frozen=True, slots=True)
class AnswerOutcome:
    """The outcome of an answer, as :func:`close_answers` stores it."""

    state: Message.State
    content: str
    finish_reason: str = ""
    error_code: str = ""
    citations: Sequence[str] = ()
    followups: Sequence[str] = ()
    usage: dict[str, int] | None = None
    # Statements in the form of chat.statements; None if not verified.
    verification: Sequence[Mapping[str, Any]] | None = None
    grade: str = ""  # a value of history.tally.Grade


@transaction.atomic
def open_conversation(
    principal: Principal,
    mode: str = Conversation.Mode.STANDARD,
    *,
    title: str = "",
    listed: bool = True,
    project_id: UUID | None = None,
) -> Conversation:
    """Create a conversation; in a project it gets the project's scope.

    An unlisted one is not shown and is purged soon. Raises Project.DoesNotExist.
    """
    project = projects.lock(principal, project_id) if project_id else None
    return Conversation.objects.create(
        owner_id=principal.user_id,
        mode=mode,
        listed=listed,
        project=project,
        scope=project.scope if project else "",
        **_titled(principal.user_id, title),
    )


def lock_conversation(principal: Principal, conversation_id: UUID) -> Conversation:
    """The caller's conversation, locked until the transaction ends.

    Raises Conversation.DoesNotExist.
    """
    return Conversation.objects.owned_by(principal).select_for_update(of=("self",)).get(pk=conversation_id)


def append(conversation: Conversation, role: str, content: str = "", **values: Any) -> Message:
    """Add the next message of the chosen branch to a conversation that the caller has locked."""
    position = last_position(conversation) + 1
    before = last_position(conversation, chosen=True)
    message = Message.objects.create(
        conversation=conversation,
        role=role,
        content=content,
        position=position,
        follows=None if before == position - 1 else before,
        search=search_vector(conversation.owner_id, without(content, values.get("citations", ()))),
        **values,
    )
    Conversation.objects.filter(pk=conversation.pk).update(updated_at=message.created_at)
    return message


def last_position(conversation: Conversation, *, chosen: bool = False) -> int:
    """The position of the last message, optionally of the chosen branch; START if there is none."""
    rows = conversation.messages.chosen() if chosen else conversation.messages.all()
    last = rows.order_by("-position").values_list("position", flat=True).first()
    return START if last is None else last


def go_back(conversation: Conversation, position: int) -> None:
    """Choose the path to a message of any branch; all messages off this path become unchosen.

    With START, no message is chosen. The caller has locked the conversation.
    """
    path = Branches(conversation.pk).path_to(position)
    messages = conversation.messages
    messages.filter(chosen=True).exclude(position__in=path).update(chosen=False)
    messages.filter(chosen=False, position__in=path).update(chosen=True)


def choose_branch(conversation: Conversation, position: int) -> None:
    """Choose the branch of a message, up to its newest descendant.

    The caller has locked the conversation. Raises Message.DoesNotExist.
    """
    if not conversation.messages.get(position=position).chosen:
        newest = Branches(conversation.pk).newest_from(position, last_position(conversation))
        go_back(conversation, newest)


@transaction.atomic
def copy_branch(principal: Principal, answer_id: UUID, title: str) -> Conversation:
    """Create a conversation with copies of this answer of the caller's and of the messages that lead to it.

    Raises Message.DoesNotExist.
    """
    answer = Message.objects.owned_by(principal).select_related("conversation").get(pk=answer_id)
    path = Branches(answer.conversation_id).path_to(answer.position)
    messages = answer.conversation.messages.filter(position__in=path).exclude(state__in=Message.UNFINISHED)
    said = [
        (each, list(each.sources.all())) for each in messages.order_by("position").prefetch_related("sources")
    ]
    copied = copy_messages(principal, title, said, answer.conversation.mode)
    if answer.conversation.scope:
        set_scope(copied, answer.conversation.scope)
    return copied


@transaction.atomic
def copy_messages(
    principal: Principal,
    title: str,
    said: Sequence[tuple[Message, Sequence[Source]]],
    mode: str = Conversation.Mode.STANDARD,
) -> Conversation:
    """Create a conversation of this person from messages of another one, which do not change.

    Each message is given with the sources to copy, which the person may see.
    """
    conversation = open_conversation(principal, title=title[:TITLE_LENGTH], mode=mode)
    sources = []
    for message, readable in said:
        values = {name: getattr(message, name) for name in COPIED_FIELDS}
        copied = append(conversation, message.role, message.content, **values)
        for source in readable:
            there = copy(source)
            there.pk, there.message = None, copied
            there._state.adding = True
            sources.append(there)
    Source.objects.bulk_create(sources)
    Conversation.objects.filter(pk=conversation.pk).update(updated_at=timezone.now())
    return conversation


def append_answer(conversation_id: UUID, run_id: UUID, agent_name: str, *, request_id: str = "") -> Message:
    """Append the next message of a team's run, or return it if it is queued already."""
    with transaction.atomic():
        conversation = Conversation.objects.select_for_update().get(pk=conversation_id)
        queued = conversation.messages.filter(run_id=run_id, state=Message.State.QUEUED)
        if there := queued.filter(agent_name=agent_name).last():
            return there
        return append(
            conversation,
            Message.Role.ASSISTANT,
            state=Message.State.QUEUED,
            run_id=run_id,
            agent_name=agent_name,
            request_id=request_id,
        )


def name_speaker(answer_id: UUID, agent_name: str) -> Message:
    """Set the agent that writes a queued answer."""
    Message.objects.filter(pk=answer_id).update(agent_name=agent_name)
    return Message.objects.get(pk=answer_id)


def timestamp(moment: datetime) -> str:
    """ISO 8601 in UTC with milliseconds, as in all protocols here."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def set_scope(conversation: Conversation, scope: str) -> None:
    """Set the search scope for the next questions of a locked conversation."""
    conversation.scope = scope
    conversation.save(update_fields=["scope"])


def turn_values(
    turn: TurnIds,
    question: str,
    *,
    agent_name: str = "",
    scope: str = "",
    opens: NewConversation | None = None,
) -> dict[str, Any]:
    """The parameters of BEGIN_TURN, which stores a question with its queued answer.

    BEGIN_TURN returns the positions of both. Without `opens`, the caller must have locked the conversation.
    `agent_name` is the first agent of a team. `scope` also applies to the conversation's next questions.
    """
    owner_id = turn.principal.user_id
    conversation = opens or NewConversation("")
    title = conversation.title[:TITLE_LENGTH]
    return {
        "opens": opens is not None,
        "conversation": turn.conversation_id,
        "owner": owner_id,
        "title": title,
        "title_words": lexemes(owner_id, title),
        "mode": conversation.mode,
        "listed": conversation.listed,
        "project": conversation.project_id,
        "scope": scope,
        "now": turn.created_at,
        "question": turn.question_id,
        "text": question,
        "words": lexemes(owner_id, question),
        "answer": turn.answer_id,
        "run_id": turn.run_id,
        "agent_name": agent_name,
        "request_id": turn.request_id,
    }


def record_context(
    answer_id: UUID,
    sources: Sequence[Mapping[str, Any]],
    thoughts: Sequence[Any],
    readable: int | None,
    verified: Mapping[str, str] | None = None,
) -> None:
    """Store the sources and steps of an answer before its text is shown.

    Each source has the columns of Source, with ranks from 1, and the `public_id` of its document. `verified`
    has the members of chat.events.Verified.
    """
    parameters = {
        "answer": answer_id,
        "sources": json.dumps(sources),
        "count": len(sources),
        "labels": json.dumps([source["label"] for source in sources]),
        "thoughts": json.dumps(thoughts),
        "readable": readable,
        "verified": None if verified is None else json.dumps(verified),
    }
    rows_of_each([prepared("record_context", SQL)], parameters)


def record_quotes(answer_id: UUID, quotes: Mapping[int, Sequence[tuple[int, int]]]) -> None:
    """Store the character ranges that the answer quotes from each source, by the source's rank."""
    parameters = {"answer": answer_id, "quotes": json.dumps(quotes)}
    rows("record_quotes", parameters, SQL)


def close_answer(owner_id: int, answer_id: UUID, closing: AnswerOutcome) -> bool:
    """End one answer like :func:`close_answers`. Returns False if it had ended before."""
    return answer_id in close_answers(owner_id, {answer_id: closing})


def close_answers(
    owner_id: int, closings: Mapping[UUID, AnswerOutcome], *, commits: bool = False
) -> set[UUID]:
    """End answers of one person. Returns the ids of those that had not ended before.

    A terminal state never changes. With `commits`, the surrounding transaction is committed as well.
    """
    values = [
        {
            "id": str(answer_id),
            "state": closing.state,
            "content": closing.content,
            "words": lexemes(owner_id, without(closing.content, closing.citations)),
            "finish_reason": closing.finish_reason,
            "error_code": closing.error_code,
            "citations": list(closing.citations),
            "followups": list(closing.followups),
            "usage": closing.usage or {},
            "verification": closing.verification
            if closing.verification is None
            else list(closing.verification),
            "grade": closing.grade,
        }
        for answer_id, closing in closings.items()
    ]
    parameters = {"closings": json.dumps(values), "now": timezone.now()}
    return {row["id"] for row in rows("close_answers", parameters, SQL, commits=commits)}


def set_title(owner_id: int, conversation_id: UUID, title: str) -> bool:
    """Set a generated title. False if it is unchanged, or if the owner has chosen one."""
    return bool(rows("set_title", title_values(owner_id, conversation_id, title), SQL))


def title_values(owner_id: int, conversation_id: UUID, title: str) -> dict[str, Any]:
    """The parameters of SET_TITLE, which sets a generated title unless the owner has chosen one."""
    title = title[:TITLE_LENGTH]
    return {
        "owner": owner_id,
        "conversation": conversation_id,
        "title": title,
        "words": lexemes(owner_id, title),
    }


def rename(principal: Principal, conversation_id: UUID, title: str) -> None:
    """Set a title on behalf of the owner.

    Raises Conversation.DoesNotExist, OnHold if a legal hold keeps another title, or ValueError for a title
    without visible text.
    """
    words = " ".join(title.replace("\x00", " ").split())[:TITLE_LENGTH]
    if not words:
        raise ValueError(gettext("A title needs at least one character."))
    mine = Conversation.objects.owned_by(principal)
    if mine.filter(pk=conversation_id).exclude(title="").exclude(title=words).exists():
        demand_no_hold(principal.user_id)
    titled = _titled(principal.user_id, words)
    _change(mine, conversation_id, title_by_owner=True, **titled)


def pin(principal: Principal, conversation_id: UUID, *, pinned: bool) -> None:
    """Pin or unpin a conversation; pinning also takes it out of the archive."""
    values = {"pinned_at": timezone.now(), "archived_at": None} if pinned else {"pinned_at": None}
    _change(Conversation.objects.owned_by(principal), conversation_id, **values)


def saw(conversation: Conversation, *, whole: bool = False, ended: datetime | None = None) -> None:
    """Mark all answers of the conversation as seen by its owner.

    With `whole`, this includes an answer whose complete text was shown although its run is still generating
    follow-up questions. `ended` is the time at which the newest shown answer ended, which may be after
    `conversation` was loaded.
    """
    now = timezone.now()
    unfinished = whole and conversation.messages.filter(state__in=Message.UNFINISHED).exists()
    seen, updated = conversation.seen_at, max(conversation.updated_at, ended or conversation.updated_at)
    if unfinished or seen is None or seen <= updated or seen > now:
        until = now + WHOLE_TTL if unfinished else now
        Conversation.objects.filter(pk=conversation.pk).update(seen_at=until)


def archive(principal: Principal, conversation_id: UUID, *, archived: bool) -> None:
    """Archive or unarchive a conversation. Archived ones remain readable, searchable and shared."""
    values = {"pinned_at": None, "archived_at": timezone.now()} if archived else {"archived_at": None}
    _change(Conversation.objects.owned_by(principal), conversation_id, **values)


@transaction.atomic
def move(principal: Principal, conversation_id: UUID, project_id: UUID | None) -> None:
    """Move a conversation into a project open to its owner; None takes it out of its project.

    Raises Conversation.DoesNotExist or Project.DoesNotExist.
    """
    project = projects.lock(principal, project_id) if project_id else None
    _change(Conversation.objects.owned_by(principal), conversation_id, project=project)


def delete(principal: Principal, conversation_id: UUID) -> None:
    """Hide a conversation everywhere. Until it is purged, :func:`restore` can undo this."""
    _change(Conversation.objects.owned_by(principal), conversation_id, deleted_at=timezone.now())


def discard(principal: Principal, conversation_id: UUID) -> None:
    """Like :func:`delete`, but also for unlisted conversations."""
    own = Conversation.objects.filter(owner_id=principal.user_id, deleted_at=None)
    _change(own, conversation_id, deleted_at=timezone.now())


def restore(principal: Principal, conversation_id: UUID) -> None:
    _change(Conversation.objects.deleted_by(principal), conversation_id, deleted_at=None)


@transaction.atomic
def purge() -> int:
    """Delete conversations that can no longer be restored, and old unlisted ones.

    Skips conversations under a legal hold or with an unfinished answer. Deletes at most PURGE_BATCH
    conversations, and none that another process is deleting: two processes that delete the rows of a
    conversation in different orders would wait for each other. Runs with the right to read everything,
    because the sources of answers are deleted too and there is no signed-in person. Returns the number of
    rows.
    """
    now = timezone.now()
    gone = Q(deleted_at__lt=now - RESTORE_TTL) | Q(listed=False, updated_at__lt=now - UNLISTED_TTL)
    finished = ~Exists(Message.objects.filter(conversation=OuterRef("pk"), state__in=Message.UNFINISHED))
    due = Conversation.objects.filter(gone, finished, owner__legal_hold="").order_by("pk")
    locked = due.select_for_update(skip_locked=True, of=("self",)).values_list("pk", flat=True)
    with reading_everything():
        ids = list(locked[:PURGE_BATCH])
        return Conversation.objects.filter(pk__in=ids).delete()[0] if ids else 0


def _titled(owner_id: int, title: str) -> dict[str, Any]:
    """The columns of a conversation that depend on its title, with their values."""
    title = title[:TITLE_LENGTH]
    return {"title": title, "search": search_vector(owner_id, title)}


def _change(conversations: Any, conversation_id: UUID, **values: Any) -> None:
    if not conversations.filter(pk=conversation_id).update(**values):
        raise Conversation.DoesNotExist
