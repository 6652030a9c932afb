"""Errors of the REST API as problem details (RFC 9457)."""

from http import HTTPStatus
from typing import Any

from django.http import Http404
from django.utils.translation import gettext
from rest_framework import exceptions
from rest_framework.response import Response

from .outgoing.retry_after import SECONDS, set_retry_after

MEDIA_TYPE = "application/problem+json"


class ProblemDetails(exceptions.APIException):
    """An error about one member of a request."""

    status_code = HTTPStatus.BAD_REQUEST

    def __init__(self, detail: str, member: str) -> None:
        super().__init__(detail)
        self.member = member


def exception_handler(exc: Exception, context: dict[str, Any]) -> Response | None:
    """The response for an APIException or Http404 of a view; None for any other exception."""
    if isinstance(exc, Http404):
        return problem(HTTPStatus.NOT_FOUND, gettext("This does not exist, or you may not see it."))
    if not isinstance(exc, exceptions.APIException):
        return None
    errors = []
    if isinstance(exc, exceptions.ValidationError):
        errors = list(_errors(exc.detail, ""))
        detail = errors[0]["detail"] if errors else gettext("The request is not valid.")
    else:
        detail = str(exc.detail)
        if isinstance(exc, ProblemDetails):
            errors = [{"detail": detail, "pointer": f"/{exc.member}"}]
    response = problem(exc.status_code, detail, errors)
    if exc.status_code == HTTPStatus.UNAUTHORIZED:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def problem(status: int, detail: str, errors: list[dict[str, str]] | None = None) -> Response:
    """The response for an error message."""
    response = Response(body(status, detail, errors), status=status, content_type=MEDIA_TYPE)
    if status in SECONDS:
        set_retry_after(response, SECONDS[status])
    return response


def body(status: int, detail: str, errors: list[dict[str, str]] | None = None) -> dict[str, Any]:
    """The members of a problem."""
    members: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": int(status),
        "detail": detail,
    }
    return members | {"errors": errors} if errors else members


def _errors(detail: Any, pointer: str) -> Any:
    """One object for each error of a serializer, with a JSON Pointer to its member."""
    if isinstance(detail, dict):
        for name, part in detail.items():
            step = str(name).replace("~", "~0").replace("/", "~1")
            yield from _errors(part, pointer if name == "non_field_errors" else f"{pointer}/{step}")
    elif isinstance(detail, list):
        for number, part in enumerate(detail):
            yield from _errors(part, f"{pointer}/{number}" if isinstance(part, dict | list) else pointer)
    else:
        # Django REST framework's message for the body `null` cannot be translated.
        said = gettext("The request is not valid.") if str(detail) == "No data provided" else str(detail)
        yield {"detail": said, "pointer": pointer}
