"""Accepts requests: checks limits, and stores a question with its queued answer."""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext, ngettext

from chat import limits, site_texts
from chat.engine import AcceptedRun, Speaker
from chat.errors import Refused, storage_full
from chat.events import members
from chat.limits import (
    SQL as LIMITS_SQL,
)
from chat.limits import (
    Allowance,
    allowance_of,
    with_one_more,
)
from chat.llm import configured_model
from chat.llm.side_texts import title_of
from chat.models import Agent, Run
from chat.requests import InvalidRequest, RunRequest
from chatsite.accounts.guest_limits import count_question
from chatsite.accounts.models import User
from chatsite.accounts.principal import Principal
from chatsite.db.availability import breaker
from chatsite.db.sql_files import Rows, rows, rows_of_each, statement
from chatsite.db.threads import reading_as, retry_on_deadlock
from chatsite.normal_form import normal_form
from history import projects, recording
from history.branches import START, Branches, question_of
from history.models import Conversation, Message, Project
from ingestion.search.scopes import searched_parameters

from . import finish, notifications
from .active import run_slots
from .idempotency import digest_of, run_of_key, was_never_executed


def team() -> tuple[Speaker, ...]:
    """The active agents in their order."""
    return tuple(
        Speaker(row.name, row.description, row.instructions, row.may_search, row.model)
        for row in Agent.objects.team()
    )


def team_size() -> int:
    """The number of active agents; 0 if the model does not work in a team."""
    return Agent.objects.team().count() if configured_model().works_in_team else 0


SQL = Path(__file__).parent / "sql"
# Whether there are verified answers. Most sites have none, and need not compare questions with them.
ANY_VERIFIED = 'SELECT EXISTS (SELECT FROM chat_verifiedanswer WHERE active) AS "any"'
NOT_TEXT = re.compile("[\x00\ud800-\udfff]")  # NUL and surrogates, which cannot be stored
BUSY_SECONDS = 2  # Retry-After if this process is at capacity
RUNNING_SECONDS = 5  # Retry-After if the caller has too many runs
RETRY_SECONDS = 300  # for how long after the start of a failed run the same request counts as its repetition


@dataclass(frozen=True, slots=True)
class Counts:
    """The caller's counts, to compare with limits, and a failed run to repeat.

    `messages` is the number of messages sent today; its row stays locked until the transaction ends. `waits`
    has the seconds until each question of the last minute no longer counts, oldest question first.
    """

    messages: int
    message_limit: int | None
    running: int
    waits: Sequence[float]
    failed: UUID | None


def counted(principal: Principal, digest: str = "") -> Counts:
    """The counts of the caller.

    `failed` is the caller's last run of the same request, if it began within the last RETRY_SECONDS, has no
    idempotency key, and is followed only by answers that failed before the first word. All conditions are in
    failed_before_a_word.sql.
    """
    texts = [
        statement("take_turn", LIMITS_SQL),
        statement("asked", LIMITS_SQL),
        statement("failed_before_a_word", SQL),
    ]
    parameters = {
        "owner": principal.user_id,
        "today": limits.today(),
        "digest": digest,
        "seconds": RETRY_SECONDS,
    }
    (turn,), (asked,), failed = rows_of_each(texts, parameters)
    return Counts(
        messages=turn["messages"],
        message_limit=asked["message_limit"],
        running=asked["running"],
        waits=asked["waits"],
        failed=failed[0]["id"] if failed else None,
    )


def admit(principal: Principal, counts: Counts) -> Allowance | None:
    """Check the limits; returns the allowance after this message.

    Raises Refused with Retry-After.
    """
    if maintenance := site_texts.maintenance_for(principal.user_id):
        words, seconds = maintenance
        raise Refused("maintenance", seconds, words)
    if run_slots.at_capacity:
        raise Refused("busy", BUSY_SECONDS)
    if breaker.is_full:  # the question might still be stored, but its answer could not
        raise storage_full()
    if counts.running >= settings.USER_CONCURRENT_ANSWERS:
        words = ngettext(
            "%(count)s of your questions is being answered. Wait for the answer, or stop it.",
            "%(count)s of your questions are being answered. Wait for an answer, or stop one.",
            counts.running,
        )
        raise Refused("rate_limited", RUNNING_SECONDS, words % {"count": counts.running})
    most = settings.USER_QUESTIONS_PER_MINUTE
    if len(counts.waits) >= most:
        words = ngettext(
            "You have asked %(count)s question within a minute. Wait a moment, and ask again.",
            "You have asked %(count)s questions within a minute. Wait a moment, and ask again.",
            len(counts.waits),
        )
        wait = int(counts.waits[len(counts.waits) - most]) + 1
        raise Refused("rate_limited", wait, words % {"count": len(counts.waits)})
    allowance = with_one_more(counts.message_limit, counts.messages)
    # Check this last, because it locks the counts of the guest's address and of all guests until the question
    # is stored.
    if principal.method == "guest" and (pause := count_question(principal.user_id)):
        words = gettext(
            "Many questions were asked without an account within a minute. Wait a moment, or sign in."
        )
        raise Refused("rate_limited", math.ceil(pause), words)
    return allowance


def lock_for_question(principal: Principal, conversation_id: UUID) -> Conversation:
    """Lock a conversation for the next question.

    Raises Refused, for instance while its last question is being answered.
    """
    try:
        conversation = recording.lock_conversation(principal, conversation_id)
    except Conversation.DoesNotExist:
        raise Refused("not_found") from None
    finish.close_expired(conversation=conversation)
    if conversation.runs.unfinished().exists():
        raise Refused("generation_in_progress")
    return conversation


def _store_turn(
    principal: Principal,
    request: RunRequest,
    request_id: str,
    allowance: Allowance | None,
    digest: str,
    key: str | None,
) -> AcceptedRun:
    """Store the question with a queued answer and its run. Raises Refused."""
    known = lock_for_question(principal, request.conversation_id) if request.conversation_id else None
    title = title_of(request.question)
    if request.copies_to:
        try:
            known = recording.copy_branch(principal, UUID(request.copies_to), title)
        except Message.DoesNotExist:  # deleted since the request was checked
            raise Refused("answer_not_found") from None
    mode = Conversation.Mode.MULTI_AGENT if request.team else Conversation.Mode.STANDARD
    conversation_id = known.pk if known else uuid4()
    begins_anew = False
    if known:
        begins_anew = _go_to_branch(known, request)
        if not known.title:
            recording.set_title(principal.user_id, known.pk, title)
        request = _scoped(request, known)
    elif request.project_id:
        try:
            request = _scoped(request, projects.lock(principal, request.project_id))
        except Project.DoesNotExist:
            raise Refused("not_found") from None
    run = AcceptedRun(
        principal=principal,
        run_id=uuid4(),
        conversation_id=conversation_id,
        question_id=uuid4(),
        answer_id=uuid4(),
        request_id=request_id,
        created_at=timezone.now(),
        request=replace(request, conversation_id=conversation_id),
        by_team=_by_team(known.mode if known else mode, request),
        allowance=allowance,
    )
    turn = recording.turn_values(
        run,
        request.question,
        agent_name=_first_speaker() if run.by_team else "",
        scope=request.options.scope,
        opens=None if known else recording.NewConversation(title, mode, request.listed, request.project_id),
    )
    stored, (messages,) = _store_run(run, digest, key, [recording.BEGIN_TURN], turn)
    is_first = min(row["position"] for row in messages) == 0
    begins = is_first or begins_anew or bool(request.copies_to)
    is_untitled = begins and not (known and known.title_by_owner)
    return replace(stored, is_first=is_first, is_untitled=is_untitled)


def _go_to_branch(conversation: Conversation, request: RunRequest) -> bool:
    """Choose the branch in which the question is asked.

    Returns whether the request replaces the conversation's first question. Raises Refused if the question to
    replace does not exist.
    """
    if request.instead_of is not None:
        asked = conversation.messages.filter(role=Message.Role.USER, position=request.instead_of)
        if not asked.exists():
            raise Refused("not_found")
        place = Branches(conversation.pk).before(request.instead_of)
        recording.go_back(conversation, place)
        return place == START
    if request.seen is not None:
        with suppress(Message.DoesNotExist):
            recording.choose_branch(conversation, request.seen)
    return False


def _answer_again(
    principal: Principal,
    request: RunRequest,
    conversation: Conversation,
    question: Message,
    request_id: str,
    allowance: Allowance | None,
) -> AcceptedRun:
    """Store another queued answer to a stored question, as an additional version."""
    run_id = uuid4()
    recording.go_back(conversation, question.position)
    by_team = _by_team(conversation.mode, request)
    answer = recording.append(
        conversation,
        Message.Role.ASSISTANT,
        state=Message.State.QUEUED,
        run_id=run_id,
        agent_name=_first_speaker() if by_team else "",
        request_id=request_id,
    )
    return AcceptedRun(
        principal=principal,
        run_id=run_id,
        conversation_id=conversation.pk,
        question_id=question.pk,
        answer_id=answer.pk,
        request_id=request_id,
        created_at=answer.created_at,
        request=request,
        by_team=by_team,
        allowance=allowance,
        is_untitled=question.position == 0 and not conversation.title_by_owner,
    )


def _store_run(
    run: AcceptedRun,
    digest: str,
    key: str | None,
    before: Sequence[str] = (),
    values: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[AcceptedRun, list[Rows]]:
    """Store the run with its lease, and count it as a message of its owner.

    The returned run also has what the engine needs, such as the number of readable documents. All statements
    are sent to PostgreSQL in one message, which also commits the caller's transaction. The statements
    `before` come first, with `values` as additional parameters; their rows are returned together with the
    run.
    """
    options = members(run.request.options)
    if run.request.echo:
        options["echo"] = dict(run.request.echo)
    parameters = {
        "id": run.run_id,
        "owner": run.principal.user_id,
        "conversation": run.conversation_id,
        "question": run.question_id,
        "answer": run.answer_id,
        "options": json.dumps(options),
        "key": key,
        "digest": digest,
        "lease": settings.LEASE_SECONDS,
        **searched_parameters(run.principal),
    }
    texts = [
        statement("store_run", SQL),
        statement("count_searched"),
        statement("owner_instructions", SQL),
        ANY_VERIFIED,
        statement("attached_before", SQL),
    ]
    with reading_as(run.principal.user_id):
        *earlier, _, counted, wished, verified, attached = rows_of_each(
            [*before, *texts], {**values, **parameters}, commits=True
        )
    # Only for questions asked in the portal: programs specify the form of an answer in each request.
    owner_instructions = wished[0]["wish"] if run.principal.method == "session" else ""
    stored = replace(
        run,
        readable=counted[0]["count"],
        attached=tuple(row["scope"] for row in attached),
        owner_instructions=owner_instructions,
        may_be_verified=verified[0]["any"],
    )
    return stored, earlier


def _scoped(request: RunRequest, place: Conversation | Project) -> RunRequest:
    """Fill in a missing scope: that of the conversation, or of a new conversation's project."""
    scope = request.options.scope or place.scope
    return replace(request, options=replace(request.options, scope=scope))


def _by_team(mode: str, request: RunRequest) -> bool:
    """Whether the team of agents answers.

    It does in multi-agent conversations, or if the request asks for it, provided that the model supports
    teams.
    """
    is_asked = request.team or mode == Conversation.Mode.MULTI_AGENT
    return is_asked and configured_model().works_in_team


def _first_speaker() -> str:
    """The name of the first agent, which the page shows while it waits."""
    return Agent.objects.team().values_list("name", flat=True).first() or ""


def _repeated(principal: Principal, request: RunRequest, run: Run) -> AcceptedRun:
    """The run of an earlier request with the same idempotency key, as an AcceptedRun."""
    return AcceptedRun(
        principal=principal,
        run_id=run.pk,
        conversation_id=run.conversation_id,
        question_id=run.question_id,
        answer_id=run.answer_id,
        request_id=run.answer.request_id,
        created_at=run.answer.created_at,
        request=replace(request, conversation_id=run.conversation_id),
        by_team=_by_team(run.conversation.mode, request),
        allowance=allowance_of(principal),
        is_new=False,
    )


SET_PROMPT = "chat.set_prompt"


@retry_on_deadlock
def begin(
    principal: Principal,
    request: RunRequest,
    *,
    idempotency_key: str | None = None,
    request_id: str = "",
    reserve: Callable[[bool], None] | None = None,
) -> AcceptedRun:
    """Store the question and a queued answer in one transaction.

    `reserve` takes the connection slot in which the caller waits for the answer, and may raise Refused. Its
    argument says whether the request repeats an idempotency key, and so joins the run of an earlier request.

    A request that repeats an idempotency key gets the same run, whatever its state; only a run that no
    process executed is replaced with a new one. If a request without a key repeats an earlier one whose
    answer failed before the first word (see `counted`), the stored question gets a new answer: clients repeat
    a POST that got a 502. Raises Refused, or InvalidRequest for options that are not available.
    """
    _check(principal, request)
    digest = digest_of(request)
    try:
        with transaction.atomic():
            counts = counted(principal, digest)
            earlier = run_of_key(principal, idempotency_key)
            failed = None
            if earlier and earlier.body_digest == digest and was_never_executed(earlier):
                failed, earlier = earlier, None
                Run.objects.filter(pk=failed.pk).update(idempotency_key=None)
                if timezone.localdate(failed.created_at) == limits.today() and counts.messages:
                    rows(
                        "take_back_message", {"owner": principal.user_id, "today": limits.today()}, LIMITS_SQL
                    )
                    counts = replace(counts, messages=counts.messages - 1)
            if reserve:
                reserve(earlier is not None)
            if earlier is None:
                allowance = admit(principal, counts)
                if counts.failed and not idempotency_key:
                    failed = Run.objects.select_related("question").filter(pk=counts.failed).first()
                if failed is None:
                    return _store_turn(principal, request, request_id, allowance, digest, idempotency_key)
                conversation = lock_for_question(principal, failed.conversation_id)
                same = replace(_scoped(request, conversation), conversation_id=conversation.pk)
                run = _answer_again(principal, same, conversation, failed.question, request_id, allowance)
                return _store_run(run, digest, idempotency_key)[0]
    except IntegrityError:
        # Normally, another request has used the key since the query above, and has been committed.
        earlier = run_of_key(principal, idempotency_key)
        if earlier is None:
            raise Refused("generation_in_progress") from None
    if earlier.body_digest != digest:
        raise Refused("idempotency_mismatch")
    if earlier.conversation.deleted_at:
        raise Refused("answer_not_found")
    return _repeated(principal, request, earlier)


@retry_on_deadlock
def again(
    principal: Principal,
    answer_id: UUID,
    *,
    continues: bool = False,
    scope: str = "",
    request_id: str = "",
) -> AcceptedRun:
    """Answer the question of an earlier answer again, in a separate branch. Raises Refused.

    With `continues`, the new answer begins with the text of the earlier one, which was cut short. A `scope`
    replaces the scope of the conversation.
    """
    with transaction.atomic():
        counts = counted(principal)
        question = _question_of(principal, answer_id)
        conversation = lock_for_question(principal, question.conversation_id)
        if continues and not Message.objects.get(pk=answer_id).can_continue:
            raise Refused("answer_not_found")
        if scope:
            recording.set_scope(conversation, scope)
        continued_id = str(answer_id) if continues else ""
        request = RunRequest(question.content, conversation.pk, continues=continued_id)
        request = _scoped(request, conversation)
        allowance = admit(principal, counts)
        run = _answer_again(principal, request, conversation, question, request_id, allowance)
        return _store_run(run, digest_of(request), None)[0]


def _question_of(principal: Principal, answer_id: UUID) -> Message:
    """The question of an answer; for one copied from a shared conversation, the question before it."""
    answers = Message.objects.owned_by(principal).filter(role=Message.Role.ASSISTANT, pk=answer_id)
    answer = answers.first()
    if answer is None:
        raise Refused("answer_not_found")
    runs = Run.objects.filter(pk__in=answers.values("run_id")).select_related("question")
    if run := runs.first():
        return run.question
    question = None
    if answer.client_id is None and not answer.imported:
        question = question_of(answer)
    if question is None:
        raise Refused("answer_not_found")
    return question


@retry_on_deadlock
def choose_branch(principal: Principal, conversation_id: UUID, position: int) -> None:
    """Switch to another version of a question or an answer.

    Raises Refused, for instance during an answer.
    """
    with transaction.atomic():
        try:
            recording.choose_branch(lock_for_question(principal, conversation_id), position)
        except Message.DoesNotExist:
            raise Refused("not_found") from None


@retry_on_deadlock
def request_stop(principal: Principal, run_id: UUID) -> None:
    """Request the end of a run; its process sees that when it next writes to the journal, at the latest.

    Raises Refused.
    """
    with transaction.atomic():
        if not Run.objects.owned_by(principal).filter(pk=run_id).exists():
            raise Refused("answer_not_found")
        if Run.objects.unfinished().filter(pk=run_id).update(stop_requested=True):
            notifications.publish_on_commit(notifications.messages("stop", [run_id]))


def _check(principal: Principal, request: RunRequest) -> None:
    """Check the question, and options that depend on the model or the caller.

    Raises Refused or InvalidRequest.
    """
    text, options = request.question, request.options
    if not text.strip():
        raise Refused("message_empty")
    # Also limit the normal form (NFKC), which search uses: it can be many times as long as the text.
    if max(len(text), len(normal_form("NFKC", text)) // 2) > settings.MESSAGE_MAX_CHARACTERS:
        raise Refused("message_too_long")
    if NOT_TEXT.search(text):
        raise Refused("message_not_text")
    if options.pages and not settings.CHAT_MODEL_READS_IMAGES:
        raise InvalidRequest(
            "“use_gpt4v” and “use_multimodal_answering” need a model that reads images; "
            "this site's model reads text only.",
            "use_gpt4v",
        )
    if options.prompt_template and not User.objects.get(pk=principal.user_id).has_perm(SET_PROMPT):
        raise InvalidRequest(
            "“prompt_template” needs the permission to set the prompt.", "prompt_template", status=403
        )
