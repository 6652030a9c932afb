"""Base class of the API views: authentication, and refusals in each protocol's format."""

import logging
from collections.abc import Callable, Collection
from typing import Any, ClassVar, TypeVar

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.utils.translation import gettext
from rest_framework import exceptions, status
from rest_framework.request import Request
from rest_framework.views import APIView

from chat.errors import (
    INTERNAL,
    Refused,
    database_away,
    storage_full,
)
from chat.limits import Allowance
from chat.protocols import (
    ErrorFormat,
    RagChat,
)
from chat.requests import InvalidRequest
from chatsite.accounts.api_keys import Scope
from chatsite.db.availability import is_disk_full
from chatsite.db.threads import in_database_within_budget
from chatsite.http.json_parser import StrictJSONParser
from chatsite.http.outgoing.retry_after import set_retry_after

T = TypeVar("T")

logger = logging.getLogger(__name__)

RETRY_AFTER_SECONDS = 10  # default Retry-After
RETRYABLE = (
    status.HTTP_429_TOO_MANY_REQUESTS,
    status.HTTP_502_BAD_GATEWAY,
    status.HTTP_503_SERVICE_UNAVAILABLE,
    status.HTTP_504_GATEWAY_TIMEOUT,
    status.HTTP_507_INSUFFICIENT_STORAGE,
)


class ProtocolView(APIView):
    """A view of a published protocol: parses in a database thread, responds on the event loop."""

    guests_welcome = True
    required_scopes: tuple[Scope, ...] = (Scope.CHAT,)
    schema = None  # described in chatsite/openapi
    parser_classes = [StrictJSONParser]
    methods: ClassVar[tuple[str, ...]] = ("POST",)  # allowed HTTP methods
    protocol: ErrorFormat = RagChat()  # the format of refusals until the body shows which protocol is used

    async def dispatch(  # type: ignore[override]
        self, request: HttpRequest, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        self.args, self.kwargs = args, kwargs
        if request.method in self.methods:
            response: HttpResponseBase = await getattr(self, request.method.lower())(request, **kwargs)
            return response
        return self.method_not_allowed()

    def method_not_allowed(self) -> JsonResponse:
        words = f"This URL accepts only {' and '.join(self.methods)}."
        response = json_response(self.protocol.error(words, status=405), 405)
        response.headers["Allow"] = ", ".join(self.methods)
        return response

    async def authenticate(self, original: HttpRequest, act: Callable[[Request], T]) -> T | HttpResponseBase:
        """Call `act` with the authenticated request; returns its result, or a refusal."""
        try:
            return await in_database_within_budget(self._authenticated, original, act)
        except (OperationalError, InterfaceError) as error:
            logger.warning("The database was unavailable for a request", exc_info=True)
            return refused(self.protocol, storage_full() if is_disk_full(error) else database_away())

    def _authenticated(self, original: HttpRequest, act: Callable[[Request], T]) -> T | HttpResponseBase:
        self.headers = self.default_response_headers
        request = self.request = self.initialize_request(original)
        try:
            self.initial(request)
            return act(request)
        except Refused as refusal:
            return refused(self.protocol, refusal)
        except InvalidRequest as error:
            # Messages that name a member are for programs; they have no translation and stay as they are.
            body = self.protocol.error(gettext(error.message), status=error.status, member=error.member)
            return json_response(body, error.status)
        except exceptions.APIException as error:
            code = error.status_code
            response = json_response(
                self.refusal_protocol(request).error(self._words(error), status=code), code
            )
            if code == status.HTTP_401_UNAUTHORIZED:
                response.headers["WWW-Authenticate"] = "Bearer"
            return response

    def refusal_protocol(self, request: Request) -> ErrorFormat:
        """The protocol whose format a refusal uses."""
        return self.protocol

    def _words(self, error: exceptions.APIException) -> str:
        if isinstance(error, exceptions.UnsupportedMediaType):
            taken = " or ".join(parser.media_type for parser in self.parser_classes)
            return f"Send the question as {taken}."
        return str(error.detail) if isinstance(error.detail, str) else INTERNAL

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        # The view chooses the media type.
        return self.renderer_classes[0](), "application/json"


def check_accepted(request: Request, sendable: Collection[str]) -> None:
    """Raise InvalidRequest if the caller accepts none of these media types."""
    wanted = [kind for kind in request.headers.get("Accept", "").lower().split(",") if kind.strip()]
    kinds: set[str] = set()
    for kind in wanted:
        media_type, *parameters = kind.split(";")
        pairs = (parameter.strip().partition("=") for parameter in parameters)
        # A quality of zero means that the type is not accepted.
        if not any(name == "q" and value.strip("0.") == "" for name, _, value in pairs):
            kinds.add(media_type.strip())
    if wanted and not kinds & set(sendable):
        sendable_kinds = " or ".join(list(sendable)[-2:])
        raise InvalidRequest(f"This site answers with {sendable_kinds}.", status=406)


def refused(protocol: ErrorFormat, refusal: Refused) -> JsonResponse:
    """The response for a refusal, in a protocol's format."""
    body = protocol.error(gettext(refusal.message), refusal.code, status=refusal.status)
    response = json_response(body, refusal.status, refusal.retry_after)
    if refusal.code == "quota_exceeded":
        response.headers["RateLimit"] = f'"day";r=0;t={refusal.retry_after}'
    return response


def limit_headers(allowance: Allowance) -> dict[str, str]:
    """The day's remaining messages, as header fields of the IETF draft on rate limits."""
    return {
        "RateLimit-Policy": f'"day";q={allowance.messages};w=86400',
        "RateLimit": f'"day";r={allowance.left};t={allowance.seconds}',
    }


def json_response(body: Any, code: int, retry_after: float | None = None) -> JsonResponse:
    """A complete JSON response; has Retry-After if the request may be repeated."""
    response = JsonResponse(body, status=code, safe=False)
    if code in RETRYABLE or retry_after is not None:
        set_retry_after(response, retry_after or RETRY_AFTER_SECONDS)
    return response
