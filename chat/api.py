"""The chat doors of the REST API: whole answers and streams, in the dialect that the caller speaks."""

from dataclasses import replace
from typing import Any, cast

from django.http import HttpRequest, HttpResponseBase, JsonResponse
from rest_framework import exceptions, status
from rest_framework.request import Request
from rest_framework.views import APIView

from chatsite.accounts.principals import Principal
from chatsite.database import in_database

from . import dialects, runs
from .dialects import ChatUi, ChatUiMinimal, Dialect, OpenAI, RagChat
from .errors import INTERNAL, Refused
from .parsing import StrictJSONParser
from .requests import InvalidRequest
from .runs import Accepted
from .streams import ClosingStream, exchange_stream

KEY_LENGTH = 200
SENDABLE = ("*/*", "application/*", "application/json", "text/*")  # and the streams' own types


class ExchangeView(APIView):
    """Common to all chat doors: synchronous work in a thread, the answer on the event loop."""

    parser_classes = [StrictJSONParser]
    dialect: Dialect = RagChat()  # which also words what is refused before a body was read
    streamed = False

    def choose(self, request: Request) -> tuple[Dialect, bool]:
        """The dialect of this request, and whether it wants a stream. Raises InvalidRequest."""
        return self.dialect, self.streamed

    async def post(self, request: HttpRequest) -> HttpResponseBase:
        begun = await in_database(self._begin, request)
        if isinstance(begun, HttpResponseBase):
            return begun
        dialect, streamed, accepted = begun
        runs.start(accepted)
        if streamed:
            stream = exchange_stream(accepted.principal, accepted.id, dialect)
            return ClosingStream(stream, dialect.stream_type)
        try:
            whole = await runs.whole(accepted.principal, accepted.id)
        except Refused as refusal:
            return JsonResponse(dialect.error(refusal.message, refusal.code), status=refusal.status)
        code, body = dialect.whole(whole)
        return JsonResponse(body, status=code, safe=False)

    async def dispatch(  # type: ignore[override]
        self, request: HttpRequest, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        self.args, self.kwargs = args, kwargs
        if request.method == "POST":
            return await self.post(request)
        response = JsonResponse(self.dialect.error("Only POST is answered here."), status=405)
        response.headers["Allow"] = "POST"
        return response

    def _begin(self, original: HttpRequest) -> tuple[Dialect, bool, Accepted] | HttpResponseBase:
        """Authenticate, parse and store, or the refusal as a response."""
        self.headers = self.default_response_headers
        request = self.request = self.initialize_request(original)
        dialect = self.dialect
        try:
            self.initial(request)
            dialect, streamed = self.choose(request)
            _check_accepted(request, dialect)
            return dialect, streamed, self._accept(request, dialect)
        except Refused as refusal:
            return _refusal(dialect, refusal.status, refusal.message, refusal.code, refusal.retry_after)
        except InvalidRequest as error:
            return _refusal(dialect, error.status, error.message)
        except exceptions.APIException as error:
            response = _refusal(dialect, error.status_code, _words(error))
            if error.status_code == status.HTTP_401_UNAUTHORIZED:
                response.headers["WWW-Authenticate"] = "Bearer"
            return response

    def _accept(self, request: Request, dialect: Dialect) -> Accepted:
        principal = cast(Principal, request.auth)
        key = request.headers.get("Idempotency-Key") or None
        if key is not None and len(key) > KEY_LENGTH:
            raise InvalidRequest(f"The Idempotency-Key is longer than {KEY_LENGTH} characters.")
        asked = dialect.parse(request.data)
        if self.kwargs.get("alone"):
            asked = replace(asked, alone=True)
        identifier = getattr(request._request, "request_id", "")
        return runs.begin(principal, asked, idempotency_key=key, request_id=identifier)

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        # The dialect decides what is sent.
        return self.renderer_classes[0](), "application/json"


class ChatView(ExchangeView):
    """`POST /chat` and `/ask`: whole, unless `stream` in the body says otherwise."""

    def choose(self, request: Request) -> tuple[Dialect, bool]:
        dialect = dialects.choose(request.headers, request.data)
        streamed = isinstance(dialect, dialects.ChatCompletions) and dialect.streams(request.data)
        return dialect, streamed


class ChatStreamView(ExchangeView):
    """`POST /chat/stream` and `/ask/stream`: the answer as it is written."""

    def choose(self, request: Request) -> tuple[Dialect, bool]:
        return dialects.choose_streamed(request.headers, request.data), True


class ChatUiView(ExchangeView):
    """`POST /api/chat`: streamed where the path or `Accept` asks for it."""

    dialect: Dialect = ChatUi()

    def choose(self, request: Request) -> tuple[Dialect, bool]:
        suffix = self.kwargs.get("suffix")
        accepts = "text/event-stream" in request.headers.get("Accept", "")
        return self.dialect, suffix == "stream" or (suffix is None and accepts)


class MinimalChatUiView(ChatUiView):
    """`POST /api/minimal/chat`."""

    dialect: Dialect = ChatUiMinimal()


class CompletionsView(ExchangeView):
    """`POST /v1/chat/completions`, for any OpenAI client."""

    dialect: Dialect = OpenAI()

    def choose(self, request: Request) -> tuple[Dialect, bool]:
        dialect = OpenAI()
        return dialect, isinstance(request.data, dict) and dialect.streams(request.data)


def _check_accepted(request: Request, dialect: Dialect) -> None:
    accepted = request.headers.get("Accept", "*/*").lower()
    known = (*SENDABLE, dialect.stream_type, "application/x-ndjson")
    if not any(kind in accepted for kind in known):
        raise InvalidRequest(f"This site answers with application/json or {dialect.stream_type}.", status=406)


def _refusal(
    dialect: Dialect, code: int, message: str, name: str = "", retry_after: float | None = None
) -> HttpResponseBase:
    response = JsonResponse(dialect.error(message, name), status=code)
    if retry_after is not None:
        response.headers["Retry-After"] = str(int(retry_after))
    return response


def _words(error: exceptions.APIException) -> str:
    detail = error.detail
    return str(detail) if isinstance(detail, str) else INTERNAL
