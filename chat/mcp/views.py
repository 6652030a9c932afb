"""`POST /mcp`: one JSON-RPC message per request, without sessions.

The answer to a question may be streamed.
"""

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from http import HTTPStatus
from typing import Any, TypeVar, cast

from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from rest_framework.exceptions import APIException, ParseError, PermissionDenied
from rest_framework.request import Request

from chat import errors, runs
from chat.api.api_view import json_response
from chat.api.starting_view import StartingView
from chat.api.streaming_responses import ClosingStream, KeepAliveTimer
from chat.engine import AcceptedRun
from chat.engine.searching import as_source
from chat.errors import Refused
from chat.events import Failed, Json, RunResult
from chat.limits import ConnectionSlot
from chat.protocols import ErrorFormat, mcp, mcp_tools
from chat.protocols.framing import COMMENT, EVENT_STREAM, server_sent_event
from chat.protocols.mcp import Call, McpError
from chat.protocols.request_body import session
from chat.requests import InvalidRequest, Options, RunRequest
from chatsite.accounts.api.authentication import BearerAuthentication, SessionAuthentication
from chatsite.accounts.api.permissions import demand_scope
from chatsite.accounts.api_keys import Scope
from chatsite.accounts.principal import Principal
from chatsite.db.threads import request_may_wait
from chatsite.dependency_internals import django_request
from chatsite.http.api_description import VERSION
from chatsite.http.error_pages import FOREIGN
from chatsite.http.origins import comes_from_elsewhere
from ingestion.search import retrieval

from . import document_tools
from .resource_metadata import challenge

T = TypeVar("T")

logger = logging.getLogger(__name__)

NOT_FOUND = "There is no such document or passage, or it has changed since. Search again."
PAGE_SIZE = 100  # resources per page


# The scope that an API key needs for each tool. The methods in RESOURCE_METHODS need DOCUMENTS_READ; other
# methods return no personal data and need no scope.
TOOL_SCOPES = {
    "search": Scope.SEARCH,
    "fetch": Scope.DOCUMENTS_READ,
    "list_sources": Scope.DOCUMENTS_READ,
    "ask": Scope.CHAT,
}
RESOURCE_METHODS = frozenset({"resources/list", "resources/templates/list", "resources/read"})


class McpBearer(BearerAuthentication):
    """API keys and ID tokens as elsewhere, and access tokens issued for this server."""

    def resource(self) -> str:
        return settings.MCP_AUDIENCE


class GuestSession(SessionAuthentication):
    """The portal's session. Guests need no CSRF token: see :meth:`McpView.post`."""

    def enforce_csrf(self, request: Request) -> None:
        if not getattr(django_request(request).user, "is_guest", False):
            super().enforce_csrf(request)


class McpView(StartingView):
    """Each message is authorized separately, so that a revocation takes effect at once."""

    required_scopes = ()  # depends on the method and the tool
    protocol: ErrorFormat = mcp.Refusals()
    authentication_classes = [McpBearer, GuestSession]

    async def dispatch(  # type: ignore[override]
        self, request: HttpRequest, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        """Refuse a GET without valid credentials with 401 instead of 405.

        After a refused POST, clients try a GET, as in the older HTTP+SSE transport, and many show only the
        response to that GET. A 405 would hide that the key is not valid.
        """
        if request.method == "GET":
            return await self.authenticate(request, lambda _: self.method_not_allowed())
        return await super().dispatch(request, *args, **kwargs)

    async def authenticate(self, original: HttpRequest, act: Callable[[Request], T]) -> T | HttpResponseBase:
        answer = await super().authenticate(original, act)
        if isinstance(answer, HttpResponseBase) and answer.status_code == HTTPStatus.UNAUTHORIZED:
            answer.headers["WWW-Authenticate"] = challenge(original)
        return answer

    async def post(self, request: HttpRequest) -> HttpResponseBase:
        # Pages of other sites cannot send JSON without a preflight, nor hide their Origin. ALLOWED_HOSTS
        # stops pages that resolve their own host name to this server (DNS rebinding).
        if comes_from_elsewhere(request):
            return json_response(self.protocol.error(FOREIGN, status=403), 403)
        started = await self.start(request, self._answer)
        if isinstance(started, HttpResponseBase):
            return started
        call, run = started
        slot = self.take_slot()
        if EVENT_STREAM in request.headers.get("Accept", "").lower():
            return ClosingStream(self._stream(call, run, slot), EVENT_STREAM, slot)
        with slot:
            return self._result(call, await self._wait_for_result(run))

    def refusal_protocol(self, request: Request) -> ErrorFormat:
        """Refusals with the id of the message, because some clients ignore refusals without it."""
        try:
            return mcp.Refusals(mcp.id_of(request.data))
        except APIException:
            return self.protocol

    def _answer(self, request: Request) -> tuple[Call, AcceptedRun] | HttpResponseBase:
        """The response to a message, or the run that will provide it."""
        handshake = mcp.is_handshake(request.headers, {})
        body = None
        try:
            body = request.data
            handshake = mcp.is_handshake(request.headers, body)
            call = mcp.read(request.headers, body)
            if call is None:
                return HttpResponse(status=202)
            if call.method == "tools/call":
                return self._called(request, call)
            return self._result(call, self._listed(request, call))
        except ParseError:
            refusal = McpError(mcp.PARSE_ERROR, "The body is not valid JSON.")
        except PermissionDenied as error:
            refused = McpError(mcp.INVALID_REQUEST, str(error.detail))
            return json_response(mcp.error(mcp.id_of(body), refused), error.status_code)
        except McpError as error:
            refusal = error
        return json_response(mcp.error(mcp.id_of(body), refusal), mcp.status(refusal, handshake=handshake))

    def _listed(self, request: Request, call: Call) -> Json:
        """The result of any method except `tools/call`. Raises McpError."""
        principal, absolute = cast(Principal, request.auth), request.build_absolute_uri
        if call.method in RESOURCE_METHODS:
            demand_scope(principal, Scope.DOCUMENTS_READ)
        match call.method:
            case "initialize":
                return mcp.initialized(call, self._site())
            case "server/discover":
                return mcp.discovered()
            case "tools/list":
                return mcp_tools.tools(
                    name for name, scope in TOOL_SCOPES.items() if principal.has_scope(scope)
                )
            case "resources/list":
                try:
                    found = document_tools.list_documents(
                        principal, absolute, cursor=call.cursor, limit=PAGE_SIZE
                    )
                except InvalidRequest as error:
                    raise McpError(mcp.INVALID_PARAMS, error.message) from None
                return mcp_tools.resources(*found)
            case "resources/templates/list":
                return mcp_tools.templates()
            case "resources/read":
                wanted = call.uri
                found_extract = (
                    document_tools.extract(principal, wanted.removeprefix(mcp_tools.DOCUMENT), absolute)
                    if wanted.startswith(mcp_tools.DOCUMENT)
                    else None
                )
                if found_extract is None:
                    raise mcp.resource_not_found(call)
                return mcp_tools.resource(wanted, found_extract)
        return {}  # for ping

    def _called(self, request: Request, call: Call) -> tuple[Call, AcceptedRun] | HttpResponseBase:
        """The result of a tool, or the run that will provide it.

        Wrong arguments and `Refused` lead to an error result, which the calling model can read.
        """
        principal = cast(Principal, request.auth)
        if call.tool not in mcp_tools.TOOLS:
            raise McpError(mcp.INVALID_PARAMS, f"There is no tool “{call.tool[:100]}”.")
        demand_scope(principal, TOOL_SCOPES[call.tool])
        try:
            if call.tool == "ask":
                return call, self._accept(request, mcp_tools.ask_arguments(call.arguments))
            return self._result(call, self._looked_up(request, principal, call))
        except InvalidRequest as error:
            return self._result(call, mcp_tools.tool_failure(error.message))
        except Refused as refusal:
            return self._result(
                call, mcp_tools.tool_failure(_with_wait(refusal.message, refusal.retry_after))
            )

    def _looked_up(self, request: Request, principal: Principal, call: Call) -> Json:
        """The result of a tool that needs no language model. Raises InvalidRequest."""
        absolute = request.build_absolute_uri
        if call.tool == "search":
            asked = mcp_tools.search_arguments(call.arguments)
            request_may_wait()  # the request may wait for an embedding server
            found = retrieval.search(
                principal, asked.query, top=asked.limit, include_category=asked.category, scope=asked.scope
            )
            sources = [as_source(rank, passage) for rank, passage in enumerate(found.passages, start=1)]
            return mcp_tools.hits((source, absolute(source.address)) for source in sources)
        if call.tool == "list_sources":
            wanted = mcp_tools.list_arguments(call.arguments)
            return mcp_tools.listed(
                *document_tools.list_documents(
                    principal, absolute, words=wanted.words, cursor=wanted.cursor, limit=wanted.limit
                )
            )
        extract = document_tools.extract(principal, mcp_tools.fetch_arguments(call.arguments), absolute)
        return mcp_tools.fetched(extract) if extract else mcp_tools.tool_failure(NOT_FOUND)

    def _accept(self, request: Request, asked: mcp_tools.AskArguments) -> AcceptedRun:
        wanted = RunRequest(
            question=asked.question,
            conversation_id=session(asked.conversation or None, "conversation_id"),
            options=Options(include_category=asked.category, scope=asked.scope),
        )

        self._absolute = request.build_absolute_uri
        return self.begin(request, wanted)

    async def _stream(
        self, call: Call, run: AcceptedRun, slot: ConnectionSlot
    ) -> AsyncGenerator[bytes, None]:
        """Stream progress, if requested, and the result."""
        token = call.progress_token
        progress = None if token is None else mcp.Progress(token)
        keep_alive = KeepAliveTimer()
        result = RunResult()
        failure = ""
        with slot:
            try:
                async with aclosing(runs.watch(run.principal, run.run_id)) as parts:
                    async for part in parts:
                        if not part and keep_alive.is_due():
                            yield COMMENT
                        for _, event in part:
                            result.add(event)
                            if progress and (message := progress.of(event)):
                                keep_alive.reset()
                                yield server_sent_event(message)
            except Refused as refusal:
                failure = _with_wait(refusal.message, refusal.retry_after)
            except (OperationalError, InterfaceError):
                logger.warning("The database was unavailable while an answer was followed", exc_info=True)
                failure = errors.DATABASE_AWAY
            members = mcp_tools.tool_failure(failure) if failure else self._answer_result(result)
            yield server_sent_event(mcp.result(call, self._site(), members))

    async def _wait_for_result(self, run: AcceptedRun) -> Json:
        try:
            return self._answer_result(await runs.wait_for_result(run.principal, run.run_id))
        except Refused as refusal:
            return mcp_tools.tool_failure(_with_wait(refusal.message, refusal.retry_after))

    def _answer_result(self, result: RunResult) -> Json:
        """The answer to a question as a tool result, or the reason why there is none."""
        if isinstance(result.end, Failed):
            return mcp_tools.tool_failure(_with_wait(errors.words(result.end.code), result.end.retry_after))
        sources = [
            source for message in result.messages if message.context for source in message.context.sources
        ]
        return mcp_tools.answered(
            result, {source.address: self._absolute(source.address) for source in sources}
        )

    def _result(self, call: Call, members: Json) -> HttpResponseBase:
        return json_response(mcp.result(call, self._site(), members), 200)

    def _site(self) -> mcp.Site:
        return mcp.Site(settings.SITE_NAME, VERSION)


def _with_wait(words: str, retry_after: float | None) -> str:
    return f"{words} Try again in {retry_after:g} seconds." if retry_after else words
