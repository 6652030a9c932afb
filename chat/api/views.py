"""The chat views of the REST API: complete answers and streams, in the protocol of the caller."""

from dataclasses import replace
from typing import Any, cast
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from chat import (
    protocols,
    runs,
)
from chat.engine import AcceptedRun
from chat.errors import Refused
from chat.events import Failed
from chat.protocols import (
    AiChatProtocol,
    ChatProtocol,
    ChatUi,
    ChatUiMessages,
    ChatUiMinimal,
    RagChat,
    TeamChatUi,
    TeamChatUiMessages,
    TeamChatUiMinimal,
)
from chat.requests import (
    InvalidRequest,
    RunRequest,
)
from chatsite.accounts.principal import Principal
from chatsite.dependency_internals import mark_logged
from chatsite.http.json_parser import StrictJSONParser

from .api_view import (
    check_accepted,
    json_response,
    limit_headers,
    refused,
)
from .parsers import AttachmentParser
from .starting_view import StartingView
from .streaming_responses import (
    ClosingStream,
    run_stream,
)

KEY_LENGTH = 200
# Media types of `Accept` that are allowed beside the stream's own type: even clients that stream often ask
# for plain JSON.
ACCEPTABLE = ("*/*", "application/*", "text/*", "application/x-ndjson", "application/json")
StartedRun = tuple[bool, AcceptedRun]  # whether a stream is wanted, and the run


class RunView(StartingView):
    """Base of views that answer a question."""

    protocol: ChatProtocol = RagChat()
    streamed = False

    def choose(self, request: Request) -> tuple[ChatProtocol, bool]:
        """The protocol of this request, and whether it wants a stream. Raises InvalidRequest."""
        return self.protocol, self.streamed

    async def post(self, request: HttpRequest, **kwargs: str) -> HttpResponseBase:
        started = await self.start(request, self._start_run)
        if isinstance(started, HttpResponseBase):
            return started
        streamed, run = started
        response = mark_run(await self._answer(run, streamed=streamed), run.run_id, run.answer_id)
        if run.allowance:
            for name, value in limit_headers(run.allowance).items():
                response.headers[name] = value
        return response

    def refusal_protocol(self, request: Request) -> ChatProtocol:
        """The protocol of the request if its body can be read, otherwise that of the URL."""
        try:
            return self.choose(request)[0]
        except (InvalidRequest, APIException):
            return self.protocol

    async def _answer(self, run: AcceptedRun, *, streamed: bool) -> HttpResponseBase:
        slot = self.take_slot()
        if streamed:
            stream = run_stream(run.principal, run.run_id, self.protocol, slot)
            return ClosingStream(stream, self.protocol.stream_type, slot)
        try:
            with slot:
                result = await runs.wait_for_result(run.principal, run.run_id)
        except Refused as refusal:
            return refused(self.protocol, refusal)
        code, body = self.protocol.full_response(result)
        failed = result.end if isinstance(result.end, Failed) and code >= 400 else None
        response = json_response(body, code, failed.retry_after if failed else None)
        if failed:
            mark_logged(response)
        return response

    def _start_run(self, request: Request) -> StartedRun:
        self.protocol, streamed = self.choose(request)
        check_accepted(request, (*ACCEPTABLE, self.protocol.stream_type))
        return streamed, self._accept(request)

    def read(self, principal: Principal, body: Any) -> RunRequest:
        """The question in a body. Raises InvalidRequest."""
        return self.protocol.parse(body)

    def _accept(self, request: Request) -> AcceptedRun:
        principal = cast(Principal, request.auth)
        key = request.headers.get("Idempotency-Key") or None
        if key is not None and len(key) > KEY_LENGTH:
            raise InvalidRequest(f"The Idempotency-Key is longer than {KEY_LENGTH} characters.")
        asked = self.read(principal, request.data)
        if self.kwargs.get("alone"):
            asked = replace(asked, alone=True)
        return self.begin(request, asked, key)


class ChatView(RunView):
    """`POST /chat` and `/ask`: a complete answer, or a stream if `stream` is true in the body."""

    parser_classes = [StrictJSONParser, AttachmentParser]

    def choose(self, request: Request) -> tuple[ChatProtocol, bool]:
        version = settings.RAG_CHAT_VERSION
        self.protocol = protocol = protocols.choose(request.headers, request.data, version)
        streamed = isinstance(protocol, protocols.ChatCompletions) and protocol.streams(request.data)
        return protocol, streamed


class ChatStreamView(RunView):
    """`POST /chat/stream` and `/ask/stream`: always a stream."""

    parser_classes = [StrictJSONParser, AttachmentParser]

    def choose(self, request: Request) -> tuple[ChatProtocol, bool]:
        return protocols.choose_streamed(request.headers, request.data, settings.RAG_CHAT_VERSION), True


class RagChat2026View(RunView):
    """`POST /2026/chat`, `/2026/ask` and their `/stream` URLs, whatever version is configured."""

    def choose(self, request: Request) -> tuple[ChatProtocol, bool]:
        return protocols.rag_chat(request.data, "2026"), self.kwargs.get("streamed", False)


class ChatUiView(RunView):
    """The Chat UI's URLs; the suffix, or else `Accept`, decides whether to stream."""

    protocol: ChatProtocol = ChatUi()

    def choose(self, request: Request) -> tuple[ChatProtocol, bool]:
        suffix = self.kwargs.get("suffix")
        accepts = "text/event-stream" in request.headers.get("Accept", "").lower()
        return self.protocol, suffix == "stream" or (suffix is None and accepts)


class StandardChatUiView(ChatUiView):
    """`POST /api/chat`, the URL in the README of the AI Chat Protocol's client."""

    parser_classes = [StrictJSONParser, AttachmentParser]

    def choose(self, request: Request) -> tuple[ChatProtocol, bool]:
        protocol, streamed = super().choose(request)
        if protocols.is_ai_chat_protocol(request.headers, request.data, streamed=streamed):
            protocol = AiChatProtocol()
        elif not streamed:
            protocol = protocols.chat_ui(request.headers, request.data)
        return protocol, streamed


class MinimalChatUiView(ChatUiView):
    """`POST /api/minimal/chat`."""

    protocol: ChatProtocol = ChatUiMinimal()


class TeamChatUiView(ChatUiView):
    """`POST /api/multi-agent-chat`."""

    protocol: ChatProtocol = TeamChatUi()


class TeamMinimalChatUiView(ChatUiView):
    """`POST /api/minimal/multi-agent-chat`."""

    protocol: ChatProtocol = TeamChatUiMinimal()


class MessagesChatUiView(RunView):
    """`POST /api/messages/chat`, never a stream."""

    protocol: ChatProtocol = ChatUiMessages()


class TeamMessagesChatUiView(RunView):
    """`POST /api/messages/multi-agent-chat`, never a stream."""

    protocol: ChatProtocol = TeamChatUiMessages()


def mark_run(response: HttpResponseBase, run_id: UUID, answer_id: UUID) -> HttpResponseBase:
    """Add headers with the ids for resuming and stopping the run, and for rating the answer."""
    response.headers["Chat-Run"] = str(run_id)
    response.headers["Chat-Message"] = str(answer_id)
    return response
