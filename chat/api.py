"""The chat doors of the REST API: whole answers and streams, in the dialect that the caller speaks."""

from dataclasses import replace
from typing import Any, cast

from django.http import HttpRequest, HttpResponseBase, JsonResponse
from rest_framework import exceptions, status
from rest_framework.request import Request
from rest_framework.views import APIView

from chatsite.accounts.principals import Principal
from chatsite.database import in_database
from chatsite.parsing import StrictJSONParser

from . import dialects, runs
from .dialects import ChatUi, ChatUiMinimal, Dialect, OpenAI, RagChat, TeamChatUi, TeamChatUiMinimal
from .errors import INTERNAL, Refused
from .parsing import AttachmentParser
from .requests import InvalidRequest
from .runs import Accepted
from .streams import ClosingStream, exchange_stream

KEY_LENGTH = 200
# What every answer may be, beside the stream's own type; a client that streams often asks for plain JSON.
SENDABLE = frozenset({"*/*", "application/*", "text/*", "application/json", "application/x-ndjson"})
RETRY_AFTER_SECONDS = 10  # where nobody knows better


class ExchangeView(APIView):
    """Common to all chat doors: synchronous work in a thread, the answer on the event loop."""

    guests_welcome = True
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
            return _refused(dialect, refusal)
        code, body = dialect.whole(whole)
        return _response(body, code)

    async def dispatch(  # type: ignore[override]
        self, request: HttpRequest, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        self.args, self.kwargs = args, kwargs
        if request.method == "POST":
            return await self.post(request)
        response = _response(self.dialect.error("Only POST is answered here.", status=405), 405)
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
            return _refused(dialect, refusal)
        except InvalidRequest as error:
            body = dialect.error(error.message, status=error.status, member=error.member)
            return _response(body, error.status)
        except exceptions.APIException as error:
            code = error.status_code
            response = _response(dialect.error(self._words(error), status=code), code)
            if code == status.HTTP_401_UNAUTHORIZED:
                response.headers["WWW-Authenticate"] = "Bearer"
            return response

    def _words(self, error: exceptions.APIException) -> str:
        if isinstance(error, exceptions.UnsupportedMediaType):
            taken = " or ".join(parser.media_type for parser in self.parser_classes)
            return f"A question comes as {taken}."
        return str(error.detail) if isinstance(error.detail, str) else INTERNAL

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

    parser_classes = [StrictJSONParser, AttachmentParser]

    def choose(self, request: Request) -> tuple[Dialect, bool]:
        dialect = dialects.choose(request.headers, request.data)
        streamed = isinstance(dialect, dialects.ChatCompletions) and dialect.streams(request.data)
        return dialect, streamed


class ChatStreamView(ExchangeView):
    """`POST /chat/stream` and `/ask/stream`: the answer as it is written."""

    parser_classes = [StrictJSONParser, AttachmentParser]

    def choose(self, request: Request) -> tuple[Dialect, bool]:
        return dialects.choose_streamed(request.headers, request.data), True


class ChatUiView(ExchangeView):
    """`POST /api/chat`: streamed where the path or `Accept` asks for it."""

    dialect: Dialect = ChatUi()

    def choose(self, request: Request) -> tuple[Dialect, bool]:
        suffix = self.kwargs.get("suffix")
        accepts = "text/event-stream" in request.headers.get("Accept", "").lower()
        return self.dialect, suffix == "stream" or (suffix is None and accepts)


class MinimalChatUiView(ChatUiView):
    """`POST /api/minimal/chat`."""

    dialect: Dialect = ChatUiMinimal()


class TeamChatUiView(ChatUiView):
    """`POST /api/multi-agent-chat`."""

    dialect: Dialect = TeamChatUi()


class TeamMinimalChatUiView(ChatUiView):
    """`POST /api/minimal/multi-agent-chat`."""

    dialect: Dialect = TeamChatUiMinimal()


class CompletionsView(ExchangeView):
    """`POST /v1/chat/completions`, for any OpenAI client."""

    dialect: Dialect = OpenAI()

    def choose(self, request: Request) -> tuple[Dialect, bool]:
        dialect = OpenAI.of(request.data)
        return dialect, dialect.streams(request.data)


def _check_accepted(request: Request, dialect: Dialect) -> None:
    wanted = [
        kind.split(";") for kind in request.headers.get("Accept", "").lower().split(",") if kind.strip()
    ]
    kinds = {kind.strip() for kind, *rest in wanted if not any(_is_refusal(item) for item in rest)}
    if wanted and not kinds & (SENDABLE | {dialect.stream_type}):
        raise InvalidRequest(f"This site answers with application/json or {dialect.stream_type}.", status=406)


def _is_refusal(parameter: str) -> bool:
    """Whether a parameter of a media type says that it is not wanted: a quality of zero."""
    name, _, value = parameter.strip().partition("=")
    return name == "q" and value.strip("0.") == ""


def _refused(dialect: Dialect, refusal: Refused) -> JsonResponse:
    body = dialect.error(refusal.message, refusal.code, status=refusal.status)
    return _response(body, refusal.status, refusal.retry_after)


def _response(body: Any, code: int, retry_after: float | None = None) -> JsonResponse:
    response = JsonResponse(body, status=code, safe=False)
    if code == status.HTTP_429_TOO_MANY_REQUESTS or retry_after is not None:
        response.headers["Retry-After"] = str(int(retry_after or RETRY_AFTER_SECONDS))
    return response
