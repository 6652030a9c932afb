"""Storing a question, its queued answer and the run that writes it, in the caller's transaction."""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from uuid import UUID, uuid4

from django.conf import settings
from django.utils import timezone

from chat.allowances import Allowance, allowance_of
from chat.errors import Refused
from chat.llm.side_texts import title_of
from chat.models import Agent, Run
from chat.requests import ChatRequest
from chatsite.accounts.principals import Principal
from history import recording
from history.models import Conversation, Message
from history.recording import Opening
from ingestion.statements import rows

from . import endings

SQL = Path(__file__).parent / "sql"


@dataclass(frozen=True, slots=True)
class Accepted:
    """A stored question and its queued answer. `new` is False for the repetition of an earlier request."""

    id: UUID
    principal: Principal
    request: ChatRequest
    conversation_id: UUID
    question_id: UUID
    answer_id: UUID
    request_id: str
    created_at: str
    team: bool  # whether the agents answer
    allowance: Allowance | None  # what is left of the owner's messages of the day
    new: bool
    first: bool = False  # whether nothing was said before in the conversation
    untitled: bool = (
        False  # whether a title is looked for: a first question's, unless the owner has chosen one
    )


def free(principal: Principal, conversation_id: UUID) -> Conversation:
    """The conversation, locked and free for the next question. Raises Refused."""
    try:
        conversation = recording.lock_conversation(principal, conversation_id)
    except Conversation.DoesNotExist:
        raise Refused("not_found") from None
    endings.close_expired(conversation=conversation)
    if conversation.runs.unfinished().exists():
        raise Refused("generation_in_progress")
    return conversation


def stored(
    principal: Principal, request: ChatRequest, request_id: str, allowance: Allowance | None
) -> Accepted:
    """The question, with a queued answer to it. Raises Refused."""
    known = free(principal, request.conversation_id) if request.conversation_id else None
    title = title_of(request.question)
    if known and not known.title:
        recording.set_title(principal.user_id, known.pk, title)
    mode = Conversation.Mode.MULTI_AGENT if request.team else Conversation.Mode.STANDARD
    team = _by_team(known.mode if known else mode, request)
    opening = Opening(
        owner_id=principal.user_id,
        conversation_id=known.pk if known else uuid4(),
        question_id=uuid4(),
        answer_id=uuid4(),
        exchange=uuid4(),
        question=request.question,
        created_at=timezone.now(),
        agent_name=_first_speaker() if team else "",
        request_id=request_id,
        new=known is None,
        title=title,
        mode=mode,
        listed=request.listed,
    )
    first = recording.begin_exchange(opening) == 0
    return Accepted(
        id=opening.exchange,
        principal=principal,
        request=replace(request, conversation_id=opening.conversation_id),
        conversation_id=opening.conversation_id,
        question_id=opening.question_id,
        answer_id=opening.answer_id,
        request_id=request_id,
        created_at=recording.timestamp(opening.created_at),
        team=team,
        allowance=allowance,
        new=True,
        first=first,
        untitled=first and not (known and known.title_by_owner),
    )


def answered_again(
    principal: Principal,
    request: ChatRequest,
    conversation: Conversation,
    question: Message,
    request_id: str,
    allowance: Allowance | None,
) -> Accepted:
    """One more answer to a question that is stored."""
    run_id = uuid4()
    team = _by_team(conversation.mode, request)
    answer = recording.append(
        conversation,
        Message.Role.ASSISTANT,
        state=Message.State.QUEUED,
        exchange=run_id,
        agent_name=_first_speaker() if team else "",
        request_id=request_id,
    )
    return Accepted(
        id=run_id,
        principal=principal,
        request=request,
        conversation_id=conversation.pk,
        question_id=question.pk,
        answer_id=answer.pk,
        request_id=request_id,
        created_at=recording.timestamp(answer.created_at),
        team=team,
        allowance=allowance,
        new=True,
        untitled=question.position == 0 and not conversation.title_by_owner,
    )


def store_run(accepted: Accepted, digest: str, key: str | None) -> None:
    """The run of an accepted question; its lease begins now, and it counts as a message of its owner's."""
    options = asdict(accepted.request.options)
    if accepted.request.echo:
        options["echo"] = dict(accepted.request.echo)
    parameters = {
        "id": accepted.id,
        "owner": accepted.principal.user_id,
        "conversation": accepted.conversation_id,
        "question": accepted.question_id,
        "answer": accepted.answer_id,
        "options": json.dumps(options),
        "key": key,
        "digest": digest,
        "lease": settings.LEASE_SECONDS,
    }
    rows("store_run", parameters, SQL)


def _by_team(mode: str, request: ChatRequest) -> bool:
    """Whether the agents answer: always in a conversation of theirs, elsewhere where they are asked for."""
    return request.team or mode == Conversation.Mode.MULTI_AGENT


def _first_speaker() -> str:
    """Known before it speaks, so that the page shows whose answer is awaited."""
    return Agent.objects.team().values_list("name", flat=True).first() or ""


def repeated(principal: Principal, request: ChatRequest, run: Run) -> Accepted:
    """What an earlier request with the same key has become."""
    return Accepted(
        id=run.pk,
        principal=principal,
        request=replace(request, conversation_id=run.conversation_id),
        conversation_id=run.conversation_id,
        question_id=run.question_id,
        answer_id=run.answer_id,
        request_id=run.answer.request_id,
        created_at=recording.timestamp(run.answer.created_at),
        team=_by_team(run.conversation.mode, request),
        allowance=allowance_of(principal),
        new=False,
    )
