"""`/v1/responses`: OpenAI's Responses API, for the caller's own runs."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast
from uuid import UUID

from django.http import HttpRequest, HttpResponseBase
from rest_framework.request import Request

from chat import (
    errors,
    runs,
)
from chat.engine import AcceptedRun
from chat.errors import Refused
from chat.limits import ConnectionSlot, connection_limiter
from chat.models import (
    JournalEntry,
    Run,
)
from chat.protocols import (
    ChatProtocol,
    Responses,
)
from chat.protocols.framing import (
    EVENT_STREAM,
    server_sent_event,
)
from chat.protocols.openai.responses import STEP, row_id
from chat.requests import (
    InvalidRequest,
    RunRequest,
)
from chat.runs.earlier_messages import stored_messages
from chatsite.accounts.principal import Principal
from chatsite.http.address_limit import release_slot
from chatsite.http.parameters import whole_number
from history import recording
from history.branches import Branches
from history.citation_text import without
from history.models import Conversation, Message
from history.withheld import withheld_labels

from .api_view import (
    ProtocolView,
    json_response,
    refused,
)
from .openai_views import check_abilities
from .streaming_responses import (
    ClosingStream,
    run_stream,
)
from .views import (
    RunView,
    mark_run,
)

CANCEL_SECONDS = 5.0  # how long to wait for the end of a cancelled response
LARGEST = 2_000_000_000_000
SHARED = (
    "This response is one of several in a conversation, which can be deleted as a whole at /chat-history."
)


class ResponsesView(RunView):
    """`POST /v1/responses`."""

    protocol: ChatProtocol = Responses()

    def choose(self, request: Request) -> tuple[ChatProtocol, bool]:
        protocol = Responses.of(request.data)
        return protocol, protocol.streams(request.data)

    def read(self, principal: Principal, body: Any) -> RunRequest:
        protocol = cast(Responses, self.protocol)
        if protocol.references:
            own = Message.objects.owned_by(principal).filter(role=Message.Role.ASSISTANT)
            rows = own.filter(pk__in=protocol.references).values_list("pk", "conversation_id", "content")
            gone = {
                conversation: withheld_labels(principal, conversation)
                for conversation in {row[1] for row in rows}
            }
            protocol.known = {pk: without(text, gone[conversation]) for pk, conversation, text in rows}
        asked = protocol.parse(body)
        check_abilities(asked, protocol)
        return _continued(principal, asked, protocol.previous) if protocol.previous else asked

    async def _answer(self, run: AcceptedRun, *, streamed: bool) -> HttpResponseBase:
        if streamed or not cast(Responses, self.protocol).background:
            return await super()._answer(run, streamed=streamed)
        self._release()
        return await _stored_response(self.protocol, run.principal, run.run_id)


class ResponseView(ProtocolView):
    """`GET` and `DELETE /v1/responses/{id}`."""

    methods = ("GET", "DELETE")
    protocol: ChatProtocol = Responses()

    async def get(self, request: HttpRequest, response_id: str) -> HttpResponseBase:
        asked = await self.authenticate(request, self._asked)
        if isinstance(asked, HttpResponseBase):
            return asked
        principal, run, after, is_gone, slot = asked
        if after is None:
            return await _stored_response(self.protocol, principal, run.pk)
        if after >= 0 and is_gone:
            return ClosingStream(_ending(principal, run, _form(run, after)), EVENT_STREAM)
        stream = run_stream(principal, run.pk, _form(run, after), slot, boundary=max(0, after) // STEP + 1)
        return mark_run(ClosingStream(stream, EVENT_STREAM, slot), run.pk, run.answer_id)

    async def delete(self, request: HttpRequest, response_id: str) -> HttpResponseBase:
        deleted = await self.authenticate(request, self._delete)
        if isinstance(deleted, HttpResponseBase):
            return deleted
        return json_response({"id": response_id, "object": "response", "deleted": True}, 200)

    def _asked(self, request: Request) -> tuple[Principal, Run, int | None, bool, ConnectionSlot]:
        """The principal, the run, the event number to stream after, a flag, and a slot.

        The number is None if no stream is requested. The flag says whether the events of the run have been
        purged.
        """
        principal = cast(Principal, request.auth)
        streamed = request.GET.get("stream", "false").lower()
        if streamed not in ("true", "false"):
            raise InvalidRequest("“stream” must be true or false.", "stream")
        after = -1  # before all events
        if text := request.GET.get("starting_after"):
            number = whole_number(text, LARGEST)
            if number is None:
                raise InvalidRequest("“starting_after” must be the number of an event.", "starting_after")
            after = number
        run = _own(principal, self.kwargs["response_id"])
        if not run.finished_at:
            runs.close_expired(run_id=run.pk)
        is_gone = bool(run.finished_at) and not JournalEntry.objects.filter(run=run).exists()
        slot = connection_limiter.reserve(principal.user_id)
        return principal, run, after if streamed == "true" else None, is_gone, slot

    def _delete(self, request: Request) -> None:
        principal = cast(Principal, request.auth)
        run = _own(principal, self.kwargs["response_id"])
        if Run.objects.filter(conversation=run.conversation_id).count() > 1:
            raise InvalidRequest(SHARED, "response_id")
        with suppress(Conversation.DoesNotExist):  # deleted meanwhile
            recording.discard(principal, run.conversation_id)


class CancelView(ProtocolView):
    """`POST /v1/responses/{id}/cancel`: stop a response and keep its text so far.

    A response that has ended is unchanged.
    """

    protocol: ChatProtocol = Responses()

    async def post(self, request: HttpRequest, response_id: str) -> HttpResponseBase:
        asked = await self.authenticate(request, self._asked)
        if isinstance(asked, HttpResponseBase):
            return asked
        principal, run = asked
        try:
            await runs.stop(principal, run.pk)
            release_slot()
            with connection_limiter.slot(principal.user_id), suppress(TimeoutError):
                async with asyncio.timeout(CANCEL_SECONDS):
                    await runs.wait_for_result(principal, run.pk)
        except Refused as refusal:
            return refused(self.protocol, refusal)
        return await _stored_response(self.protocol, principal, run.pk)

    def _asked(self, request: Request) -> tuple[Principal, Run]:
        principal = cast(Principal, request.auth)
        return principal, _own(principal, self.kwargs["response_id"])


async def _stored_response(protocol: ChatProtocol, principal: Principal, run_id: UUID) -> HttpResponseBase:
    """The current state of a response."""
    try:
        run, result = await runs.progress(principal, run_id)
    except Refused as refusal:
        return refused(protocol, refusal)
    queued = run.answer.state == Message.State.QUEUED
    return mark_run(json_response(_form(run).response(result, queued=queued), 200), run_id, run.answer_id)


async def _ending(principal: Principal, run: Run, form: Responses) -> AsyncGenerator[bytes, None]:
    """The final events of a response whose journal was purged; they contain the whole text."""
    _, result = await runs.progress(principal, run.pk)
    last = run.last_event or LARGEST // STEP
    yield b"".join(map(server_sent_event, form.encoder().ending(result, last)))


def _form(run: Run, after: int | None = None) -> Responses:
    return Responses(run.options.get("echo"), after=-1 if after is None else after)


def _own(principal: Principal, response_id: str) -> Run:
    """The caller's run of the response. Raises Refused if there is none, or `store` was false."""
    run = Run.objects.owned_by(principal).filter(pk=row_id(response_id, "resp", "response_id")).first()
    if run is None or run.options.get("echo", {}).get("store") is False:
        raise Refused("answer_not_found")
    return run


def _continued(principal: Principal, asked: RunRequest, previous: UUID) -> RunRequest:
    """The request as a continuation of the earlier response with the run `previous`.

    If that response is the last one on the chosen branch of a listed conversation, the question is added to
    the conversation, unless the request is unlisted. Otherwise it begins a new conversation, which begins
    with copies of the messages up to the response. If it is unlisted, `earlier` has these messages.
    """
    member = "previous_response_id"
    run = Run.objects.owned_by(principal).filter(pk=previous).select_related("conversation").first()
    if run is None or run.options.get("echo", {}).get("store") is False:
        raise InvalidRequest(errors.words("answer_not_found"), member, status=404)
    if asked.generation.json is not None and run.conversation.mode == Conversation.Mode.MULTI_AGENT:
        raise InvalidRequest(
            f"“{member}” names a conversation of several agents, which cannot answer in JSON.", member
        )
    messages = run.conversation.messages
    newest = messages.chosen().filter(role=Message.Role.USER).latest("position")
    last = messages.filter(run_id=run.pk).latest("position")
    if asked.listed and run.conversation.listed and run.question_id == newest.pk and last.chosen:
        return replace(asked, conversation_id=run.conversation_id, listed=True)
    if asked.listed and run.conversation.listed:
        return replace(asked, copies_to=str(last.pk))
    path = Branches(run.conversation_id).path_to(last.position)
    said = messages.filter(position__in=path).exclude(state__in=Message.UNFINISHED)
    turns = stored_messages(principal, run.conversation_id, said)
    return replace(asked, earlier=turns, listed=False)
