"""Beginning an answer: all that can be refused is refused here, and what is accepted is stored."""

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from uuid import UUID, uuid4

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Subquery
from django.utils import timezone

from chat.allowances import Allowance, allowance_of
from chat.errors import Refused
from chat.llm.side_texts import title_of
from chat.models import Agent, Run
from chat.requests import ChatRequest, InvalidRequest, Options, Turn
from chatsite.accounts.models import User
from chatsite.accounts.principals import Principal
from chatsite.database import tried_twice
from history import recording
from history.models import Conversation, Message

from . import admission, carriers, endings

EARLIER_MESSAGES = 12
SET_PROMPT = "chat.set_prompt"


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


@tried_twice
def begin(
    principal: Principal,
    request: ChatRequest,
    *,
    idempotency_key: str | None = None,
    request_id: str = "",
) -> Accepted:
    """Store the question and a queued answer, in one transaction.

    The same key with the same request gives the same run, whatever became of it. Raises Refused, or
    InvalidRequest for options that this site or this caller does not have.
    """
    _check_text(request.question)
    _check_options(principal, request.options)
    digest = _digest(request)
    try:
        with transaction.atomic():
            usage = admission.take_turn(principal)
            earlier = _by_key(principal, idempotency_key)
            if earlier is None:
                allowance = admission.admit(principal, usage)
                conversation = _conversation(principal, request)
                question = recording.append(
                    conversation, Message.Role.USER, request.question, request_id=request_id
                )
                run = _store(principal, request, question, digest, idempotency_key, request_id)
                return _accepted(principal, request, run, allowance, new=True)
    except IntegrityError:
        # Somebody else used the key between our look and our write: theirs is committed now.
        earlier = _by_key(principal, idempotency_key)
        if earlier is None:
            raise Refused("generation_in_progress") from None
    if earlier.body_digest != digest:
        raise Refused("idempotency_mismatch")
    return _accepted(principal, request, earlier, allowance_of(principal), new=False)


@tried_twice
def again(principal: Principal, answer_id: UUID, *, request_id: str = "") -> Accepted:
    """Answer the question of an earlier answer once more; what had arrived is kept. Raises Refused."""
    with transaction.atomic():
        usage = admission.take_turn(principal)
        exchanges = (
            Message.objects.owned_by(principal)
            .filter(pk=answer_id, role=Message.Role.ASSISTANT)
            .values("exchange")
        )
        earlier = Run.objects.filter(pk__in=exchanges).select_related("question").first()
        if earlier is None:
            raise Refused("not_found")
        question = earlier.question
        conversation = _conversation(principal, ChatRequest(question.content, earlier.conversation_id))
        newest = conversation.messages.filter(role=Message.Role.USER).latest("position")
        if question.pk != newest.pk:
            question = recording.append(
                conversation, Message.Role.USER, question.content, request_id=request_id
            )
        request = ChatRequest(question.content, conversation.pk)
        allowance = admission.admit(principal, usage)
        run = _store(principal, request, question, _digest(request), None, request_id)
        return _accepted(principal, request, run, allowance, new=True)


@tried_twice
def request_stop(principal: Principal, run_id: UUID) -> None:
    """Ask for the end of one answer, heard at once, and with the next flush at the latest. Raises Refused."""
    with transaction.atomic():
        if not Run.objects.owned_by(principal).filter(pk=run_id).exists():
            raise Refused("not_found")
        if Run.objects.unfinished().filter(pk=run_id).update(stop_requested=True):
            carriers.notify(carriers.messages("stop", [run_id]))


def earlier_turns(accepted: Accepted) -> tuple[Turn, ...]:
    """What was said before this question: the stored history, or the caller's where nothing is stored."""
    if accepted.request.alone:
        return ()
    position = Message.objects.filter(pk=accepted.question_id).values("position")
    rows = Message.objects.filter(
        conversation_id=accepted.conversation_id, position__lt=Subquery(position)
    ).exclude(state__in=Message.UNFINISHED)
    said = rows.order_by("-position").values_list("role", "content")[:EARLIER_MESSAGES]
    turns: list[Turn] = []
    for role, content in said:
        if content:
            turns.append(Turn("user" if role == Message.Role.USER else "assistant", content))
    return tuple(reversed(turns)) or accepted.request.earlier[-EARLIER_MESSAGES:]


def _check_text(text: str) -> None:
    if not text.strip():
        raise Refused("message_empty")
    if len(text) > settings.MESSAGE_MAX_CHARACTERS:
        raise Refused("message_too_long")
    if "\x00" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise Refused("message_not_text")


def _check_options(principal: Principal, options: Options) -> None:
    """What depends on the site's model and on who asks. Raises InvalidRequest."""
    if options.pages and not settings.CHAT_MODEL_READS_IMAGES:
        raise InvalidRequest(
            "“use_gpt4v” needs a model that reads images; the one of this site reads text only.", "use_gpt4v"
        )
    if options.prompt_template and not User.objects.get(pk=principal.user_id).has_perm(SET_PROMPT):
        raise InvalidRequest(
            "“prompt_template” is only for those who may set the prompt.", "prompt_template", status=403
        )


def _digest(request: ChatRequest) -> str:
    images = [[image.media_type, hashlib.sha256(image.data).hexdigest()] for image in request.images]
    values = asdict(replace(request, images=())) | {
        "conversation_id": str(request.conversation_id or ""),
        "images": images,
    }
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _by_key(principal: Principal, key: str | None) -> Run | None:
    if key is None:
        return None
    return (
        Run.objects.filter(owner_id=principal.user_id, idempotency_key=key).select_related("answer").first()
    )


def _conversation(principal: Principal, request: ChatRequest) -> Conversation:
    """The conversation, locked and free for the next question. Raises Refused."""
    if request.conversation_id is None:
        mode = Conversation.Mode.MULTI_AGENT if request.team else Conversation.Mode.STANDARD
        title = title_of(request.question)
        return recording.open_conversation(principal, mode, title=title, listed=request.listed)
    try:
        conversation = recording.lock_conversation(principal, request.conversation_id)
    except Conversation.DoesNotExist:
        raise Refused("not_found") from None
    endings.close_expired(conversation=conversation)
    if conversation.runs.unfinished().exists():
        raise Refused("generation_in_progress")
    if not conversation.title:
        recording.set_title(conversation.pk, title_of(request.question))
    return conversation


def _store(
    principal: Principal,
    request: ChatRequest,
    question: Message,
    digest: str,
    key: str | None,
    request_id: str,
) -> Run:
    run_id = uuid4()
    answer = recording.append(
        question.conversation,
        Message.Role.ASSISTANT,
        state=Message.State.QUEUED,
        exchange=run_id,
        agent_name=_first_speaker(question.conversation, request),
        request_id=request_id,
    )
    return Run.objects.create(
        id=run_id,
        owner_id=principal.user_id,
        conversation=question.conversation,
        question=question,
        answer=answer,
        options=asdict(request.options),
        idempotency_key=key,
        body_digest=digest,
        lease_until=timezone.now() + timedelta(seconds=settings.LEASE_SECONDS),
    )


def _by_team(conversation: Conversation, request: ChatRequest) -> bool:
    """Whether the agents answer: always in a conversation of theirs, elsewhere where they are asked for."""
    return request.team or conversation.mode == Conversation.Mode.MULTI_AGENT


def _first_speaker(conversation: Conversation, request: ChatRequest) -> str:
    """Known before it speaks, so that the page shows whose answer is awaited."""
    if not _by_team(conversation, request):
        return ""
    return Agent.objects.team().values_list("name", flat=True).first() or ""


def _accepted(
    principal: Principal, request: ChatRequest, run: Run, allowance: Allowance | None, *, new: bool
) -> Accepted:
    return Accepted(
        id=run.pk,
        principal=principal,
        request=replace(request, conversation_id=run.conversation_id),
        conversation_id=run.conversation_id,
        question_id=run.question_id,
        answer_id=run.answer_id,
        request_id=run.answer.request_id,
        created_at=recording.timestamp(run.answer.created_at),
        team=_by_team(run.conversation, request),
        allowance=allowance,
        new=new,
    )
