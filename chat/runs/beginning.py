"""Beginning an answer: all that can be refused is refused here, and what is accepted is stored."""

import hashlib
import json
from dataclasses import asdict, replace
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Subquery
from django.utils import timezone

from chat.allowances import used_today
from chat.errors import Refused
from chat.models import Run
from chat.requests import ChatRequest, Generation, InvalidRequest, Options, Turn
from chatsite.accounts.models import User
from chatsite.accounts.principals import Principal
from chatsite.database import tried_twice
from history import recording
from history.citing import without
from history.models import Message
from history.withheld import withheld_labels

from . import admission, carriers
from .storing import Accepted, answered_again, free, repeated, store_run, stored

EARLIER_MESSAGES = 12
RETRY_SECONDS = 300  # within which the same request after a failure is its repetition
SET_PROMPT = "chat.set_prompt"


@tried_twice
def begin(
    principal: Principal,
    request: ChatRequest,
    *,
    idempotency_key: str | None = None,
    request_id: str = "",
) -> Accepted:
    """Store the question and a queued answer, in one transaction.

    The same key with the same request gives the same run, whatever became of it. Without a key, the same
    request after an answer that failed before its first word is the same question, answered again: clients
    repeat a POST that got a 502. Raises Refused, or InvalidRequest for options that this site or this caller
    does not have.
    """
    _check_text(request.question)
    _check_options(principal, request.options)
    digest = _digest(request)
    try:
        with transaction.atomic():
            used = used_today(principal)
            earlier = _by_key(principal, idempotency_key)
            if earlier is None:
                allowance = admission.admit(principal, used)
                failed = None if idempotency_key else _failed_before_a_word(principal, digest)
                if failed is None:
                    accepted = stored(principal, request, request_id, allowance)
                else:
                    conversation = free(principal, failed.conversation_id)
                    same = replace(request, conversation_id=conversation.pk)
                    accepted = answered_again(
                        principal, same, conversation, failed.question, request_id, allowance
                    )
                store_run(accepted, digest, idempotency_key)
                return accepted
    except IntegrityError:
        # Somebody else used the key between our look and our write: theirs is committed now.
        earlier = _by_key(principal, idempotency_key)
        if earlier is None:
            raise Refused("generation_in_progress") from None
    if earlier.body_digest != digest:
        raise Refused("idempotency_mismatch")
    return repeated(principal, request, earlier)


@tried_twice
def again(principal: Principal, answer_id: UUID, *, request_id: str = "") -> Accepted:
    """Answer the question of an earlier answer once more; what had arrived is kept. Raises Refused."""
    with transaction.atomic():
        used = used_today(principal)
        exchanges = (
            Message.objects.owned_by(principal)
            .filter(pk=answer_id, role=Message.Role.ASSISTANT)
            .values("exchange")
        )
        earlier = Run.objects.filter(pk__in=exchanges).select_related("question").first()
        if earlier is None:
            raise Refused("answer_not_found")
        question = earlier.question
        conversation = free(principal, earlier.conversation_id)
        newest = conversation.messages.filter(role=Message.Role.USER).latest("position")
        if question.pk != newest.pk:
            question = recording.append(
                conversation, Message.Role.USER, question.content, request_id=request_id
            )
        request = ChatRequest(question.content, conversation.pk)
        allowance = admission.admit(principal, used)
        accepted = answered_again(principal, request, conversation, question, request_id, allowance)
        store_run(accepted, _digest(request), None)
        return accepted


@tried_twice
def request_stop(principal: Principal, run_id: UUID) -> None:
    """Ask for the end of one answer, heard at once, and with the next flush at the latest. Raises Refused."""
    with transaction.atomic():
        if not Run.objects.owned_by(principal).filter(pk=run_id).exists():
            raise Refused("answer_not_found")
        if Run.objects.unfinished().filter(pk=run_id).update(stop_requested=True):
            carriers.publish_on_commit(carriers.messages("stop", [run_id]))


def told_turns(accepted: Accepted) -> tuple[Turn, ...]:
    """What was said before this question, as the caller tells it."""
    return () if accepted.request.alone else accepted.request.earlier[-EARLIER_MESSAGES:]


def earlier_turns(accepted: Accepted) -> tuple[Turn, ...]:
    """The same: the stored history, or the caller's where nothing is stored."""
    if accepted.request.alone:
        return ()
    position = Message.objects.filter(pk=accepted.question_id).values("position")
    rows = Message.objects.filter(
        conversation_id=accepted.conversation_id, position__lt=Subquery(position)
    ).exclude(state__in=Message.UNFINISHED)
    said = rows.order_by("-position").values_list("role", "content")[:EARLIER_MESSAGES]
    gone: frozenset[str] | None = None
    turns: list[Turn] = []
    for role, content in said:
        text = content
        if role == Message.Role.ASSISTANT and "[" in text:
            if gone is None:
                gone = withheld_labels(accepted.principal, accepted.conversation_id)
            text = without(text, gone)
        if text:
            turns.append(Turn("user" if role == Message.Role.USER else "assistant", text))
    return tuple(reversed(turns)) or told_turns(accepted)


def _failed_before_a_word(principal: Principal, digest: str) -> Run | None:
    """Return the caller's last run of the same request, if it just failed and nothing was said since."""
    since = timezone.now() - timedelta(seconds=RETRY_SECONDS)
    runs = Run.objects.owned_by(principal).filter(
        created_at__gt=since, body_digest=digest, conversation__listed=True
    )
    run = runs.select_related("question").order_by("-created_at").first()
    if run is None or run.finished_at is None or run.idempotency_key is not None:
        return None
    later = Message.objects.filter(
        conversation_id=run.conversation_id, position__gt=run.question.position
    ).exclude(role=Message.Role.ASSISTANT, state=Message.State.FAILED, content="")
    return None if later.exists() else run


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
            "“use_gpt4v” and “use_multimodal_answering” need a model that reads images; "
            "the one of this site reads text only.",
            "use_gpt4v",
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
    # Left out where they say nothing, so that the digest is that of versions that did not know them.
    for name, nothing in (("wish", ""), ("generation", Generation()), ("echo", {})):
        if getattr(request, name) == nothing:
            del values[name]
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _by_key(principal: Principal, key: str | None) -> Run | None:
    if key is None:
        return None
    return (
        Run.objects.filter(owner_id=principal.user_id, idempotency_key=key).select_related("answer").first()
    )
