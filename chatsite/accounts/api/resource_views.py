"""The base of REST views with serializers.

They use JSON in both directions, and return refusals as problem details.
"""

from typing import Any, cast
from uuid import UUID

from django.http import Http404
from django.utils.decorators import method_decorator
from django.views.decorators.cache import cache_control
from rest_framework import generics
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.request import Request
from rest_framework.response import Response

from chatsite.accounts.principal import Principal
from chatsite.http.json_parser import StrictJSONParser
from chatsite.http.problem_details import MEDIA_TYPE, exception_handler


class JSONNegotiation(DefaultContentNegotiation):
    """Always JSON, regardless of `Accept`."""

    def select_renderer(self, request: Any, renderers: Any, format_suffix: str | None = None) -> Any:
        return renderers[0], renderers[0].media_type


@method_decorator(cache_control(private=True, no_store=True), name="dispatch")
class ResourceView(generics.GenericAPIView[Any]):
    """A view that acts with its caller's rights. Subclasses set `api_tag` and `required_scopes`."""

    request: Request
    parser_classes = [StrictJSONParser]
    content_negotiation_class = JSONNegotiation
    not_found: tuple[type[Exception], ...] = ()  # exceptions that become 404
    api_error, api_error_type = "Problem", MEDIA_TYPE  # for the API description

    @property
    def principal(self) -> Principal:
        return cast(Principal, self.request.auth)

    def get_exception_handler(self) -> Any:
        return exception_handler

    def handle_exception(self, exc: Exception) -> Response:
        return super().handle_exception(Http404() if isinstance(exc, self.not_found) else exc)


def id_of(text: str) -> UUID:
    """The id in a URL. Raises Http404 if it is malformed."""
    try:
        return UUID(text)
    except ValueError:
        raise Http404 from None
