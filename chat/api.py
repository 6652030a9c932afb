"""The chat doors of the REST API: whole answers and streams, in the dialect that the caller speaks."""

from typing import Any, cast

import jiter
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from rest_framework import exceptions, parsers, status
from rest_framework.request import Request
from rest_framework.views import APIView

from chatsite.accounts.principals import Principal
from chatsite.database import in_database

from . import dialects, runs
from .dialects import Dialect
from .errors import INTERNAL, Refused
from .requests import InvalidRequest
from .runs import Accepted
from .streams import ClosingStream, exchange_stream

KEY_LENGTH = 200


class StrictJSONParser(parsers.BaseParser):
    """JSON with bounds: no NaN, no depth that exhausts the stack, no lone surrogates."""

    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        try:
            return jiter.from_json(stream.read(), allow_inf_nan=False)
        except (ValueError, RecursionError):
            raise exceptions.ParseError("The body is not valid JSON.") from None


class ExchangeView(APIView):
    """Common to all chat doors: synchronous work in a thread, the answer on the event loop."""

    parser_classes = [StrictJSONParser]
    streams = False

    async def post(self, request: HttpRequest) -> HttpResponseBase:
        begun = await in_database(self._begin, request)
        if isinstance(begun, HttpResponseBase):
            return begun
        dialect, accepted = begun
        runs.start(accepted)
        if self.streams:
            return ClosingStream(
                exchange_stream(accepted.principal, accepted.id, dialect), dialect.stream_type
            )
        try:
            whole = await runs.whole(accepted.principal, accepted.id)
        except Refused as refusal:
            return JsonResponse(dialect.error(refusal.message), status=refusal.status)
        code, body = dialect.whole(whole)
        return JsonResponse(body, status=code)

    async def dispatch(  # type: ignore[override]
        self, request: HttpRequest, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        self.args, self.kwargs = args, kwargs
        if request.method == "POST":
            return await self.post(request)
        response = JsonResponse({"error": "Only POST is answered here."}, status=405)
        response.headers["Allow"] = "POST"
        return response

    def _begin(self, original: HttpRequest) -> tuple[Dialect, Accepted] | HttpResponseBase:
        """Authenticate, parse and store, or the refusal as a response."""
        self.headers = self.default_response_headers
        request = self.request = self.initialize_request(original)
        request.accepted_renderer, request.accepted_media_type = (
            self.renderer_classes[0](),
            "application/json",
        )
        try:
            self.initial(request)
            dialect = dialects.choose(request.headers, request.data)
            return dialect, self._accept(request, dialect)
        except Refused as refusal:
            return self._refusal(refusal.status, refusal.message, refusal.retry_after)
        except InvalidRequest as error:
            return self._refusal(error.status, error.message)
        except exceptions.APIException as error:
            response = self._refusal(error.status_code, _words(error), getattr(error, "wait", None))
            if error.status_code == status.HTTP_401_UNAUTHORIZED:
                response.headers["WWW-Authenticate"] = "Bearer"
            return response

    def _accept(self, request: Request, dialect: Dialect) -> Accepted:
        principal = cast(Principal, request.auth)
        key = request.headers.get("Idempotency-Key") or None
        if key is not None and len(key) > KEY_LENGTH:
            raise InvalidRequest(f"The Idempotency-Key is longer than {KEY_LENGTH} characters.")
        return runs.begin(
            principal,
            dialect.parse(request.data),
            idempotency_key=key,
            request_id=getattr(request._request, "request_id", ""),
        )

    def _refusal(self, code: int, message: str, retry_after: float | None = None) -> HttpResponseBase:
        response = JsonResponse({"error": message}, status=code)
        if retry_after is not None:
            response.headers["Retry-After"] = str(int(retry_after))
        return response

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        # The dialect decides what is sent; a client of these protocols may ask for anything.
        return self.renderer_classes[0](), "application/json"


class ChatView(ExchangeView):
    """`POST /chat`: the whole answer."""


class ChatStreamView(ExchangeView):
    """`POST /chat/stream`: the answer as it is written."""

    streams = True


def _words(error: exceptions.APIException) -> str:
    detail = error.detail
    return str(detail) if isinstance(detail, str) else INTERNAL
