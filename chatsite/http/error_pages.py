"""Error responses: a page for browsers, JSON for programs, never a traceback."""

import errno
import json
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

from django.contrib.sessions.exceptions import SessionInterrupted
from django.core.exceptions import TooManyFilesSent
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template import loader
from django.utils.cache import add_never_cache_headers
from django.utils.translation import gettext, gettext_noop

from chatsite.db.availability import is_disk_full, operational_error

from . import problem_details
from .outgoing.retry_after import SECONDS, set_retry_after


class ErrorBody(Protocol):
    def __call__(self, message: str, /, *, status: int) -> dict[str, Any]: ...


Hint = Callable[[HttpRequest], dict[str, Any] | None]

_error_bodies: dict[str, ErrorBody] = {}  # by URL prefix, see register_error_body
_missing: dict[str, tuple[str, str]] = {}  # by URL prefix, see register_missing
_hints: list[Hint] = []  # see register_hint
logger = logging.getLogger(__name__)
PROGRAM_PATHS = (
    "/chat",
    "/ask",
    "/api",
    "/v1",
    # Up to /responses: where clients of OpenAI's API look if their base URL is wrong (chat.api.base_url).
    "/completions",
    "/embeddings",
    "/models",
    "/openai",
    "/responses",
    "/chat-history",
    "/content",
    "/2026",
    "/auth_setup",
    "/config",
    "/mcp",
    "/register",  # where MCP clients try to register for OAuth after a 401
    "/.well-known/oauth-protected-resource",
)
WORDS = {
    400: gettext_noop("The request cannot be understood."),
    403: gettext_noop("This is not allowed."),
    404: gettext_noop("There is nothing here."),
    500: gettext_noop("The site could not answer. The error has been logged."),
    503: gettext_noop("The site is overloaded, or cannot reach its database. Try again in a few seconds."),
    507: gettext_noop("The server's disk is full, so nothing was saved. Tell the operator of the site."),
}
ADVICE = {
    403: gettext_noop(
        "Your account is not allowed to do this. If you need it, ask an administrator of the site."
    ),
    404: gettext_noop("The address is wrong, the page was deleted, or you are not allowed to see it."),
}
DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
SESSION_ENDED = gettext_noop("The session of this cookie has ended. Sign in again.")
FOREIGN = gettext_noop("Pages of other sites cannot use this site without a key or a token.")
MANY_GUESTS = gettext_noop(
    "Too many people without an account arrived within a minute. Try again in a moment, or sign in."
)
MANY_FILES = gettext_noop("At most 100 files can be sent at once. Nothing was saved.")
CSRF = gettext_noop(
    "The page was open for too long, or cookies are off. Go back, reload the page, and try again."
)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if isinstance(exception, SessionInterrupted):
        return _response(request, 403, SESSION_ENDED)
    if isinstance(exception, TooManyFilesSent):
        return _response(request, 400, MANY_FILES)
    return _response(request, 400)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _response(request, 403)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    if wants_json(request):
        for hint in _hints:
            if found := hint(request):
                return JsonResponse(found, status=404)
    return _response(request, 404)


def server_error(request: HttpRequest) -> HttpResponse:
    """507 if a disk is full, 503 if the database is down or overloaded, otherwise 500.

    After a 507 or 503 the caller may try again.
    """
    error = sys.exc_info()[1]
    full = isinstance(error, OSError) and error.errno in DISK_FULL
    if error is not None and operational_error(error):
        full = is_disk_full(error)
    elif not full:
        return _response(request, 500)
    status = 507 if full else 503
    response = _response(request, status)
    set_retry_after(response, SECONDS[status])
    return response


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    return _response(request, 403, CSRF)


def guest_refused(request: HttpRequest, status: int, retry_after: float = 0) -> HttpResponse:
    """The response to an anonymous caller who is not admitted as a guest."""
    response = _response(request, status, FOREIGN if status == 403 else MANY_GUESTS)
    if retry_after:
        set_retry_after(response, retry_after)
    return response


def overloaded(request: HttpRequest) -> HttpResponse:
    """The response while the site is overloaded; the caller may try again in a moment."""
    response = _response(request, 503)
    set_retry_after(response, SECONDS[503])
    return response


def register_error_body(start: str, build: ErrorBody) -> None:
    """Use `build(words, status=…)` for error bodies of URLs at or below `start`.

    If several registered URLs match, the longest one decides.
    """
    _error_bodies[start] = build


def register_missing(start: str, words: str, advice: str) -> None:
    """Show `words` and `advice` instead of the usual texts if a page at or below `start` is missing."""
    _missing[start] = (words, advice)


def register_hint(hint: Hint) -> None:
    """Let `hint(request)` return the JSON body for a missing URL, or None for the usual one."""
    _hints.append(hint)


def body(path: str, status: int, words: str) -> tuple[bytes, str]:
    """The error body for programs, in the format of this URL, and its media type."""
    for start in sorted(_error_bodies, key=len, reverse=True):
        if _is_below(path, start):
            build = _error_bodies[start]
            return json.dumps(build(words, status=status)).encode(), "application/json"
    if _is_below(path, "/api"):
        return json.dumps(problem_details.body(status, words)).encode(), problem_details.MEDIA_TYPE
    return json.dumps({"error": words}).encode(), "application/json"


def messages(
    path: str, status: int, words: str, headers: Sequence[tuple[bytes, bytes]] = ()
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The ASGI messages of an error response for programs: the start and the body."""
    content, media_type = body(path, status, words)
    described = [
        (b"content-type", media_type.encode()),
        (b"content-length", str(len(content)).encode()),
        (b"x-content-type-options", b"nosniff"),
        *headers,
    ]
    start = {"type": "http.response.start", "status": status, "headers": described}
    return start, {"type": "http.response.body", "body": content}


def _is_below(path: str, start: str) -> bool:
    return path == start or path.startswith(f"{start}/")


def is_for_programs(path: str) -> bool:
    return any(_is_below(path, start) for start in PROGRAM_PATHS)


def wants_json(request: HttpRequest) -> bool:
    """Whether to respond with JSON.

    API paths respond with JSON unless HTML is requested, other paths only if JSON is preferred.
    """
    if is_for_programs(request.path):
        return "text/html" not in request.headers.get("Accept", "")
    return request.get_preferred_type(["text/html", "application/json"]) == "application/json"


def _response(request: HttpRequest, status: int, words: str = "") -> HttpResponse:
    advice = "" if words else ADVICE.get(status, "")
    words = words or WORDS[status]
    if status == 404:
        known = (message for start, message in _missing.items() if _is_below(request.path, start))
        words, advice = next(known, (words, advice))
    words = gettext(words)
    shown = {"status": status, "words": words, "advice": gettext(advice) if advice else ""}
    if wants_json(request):
        content, media_type = body(request.path, status, words)
        return HttpResponse(content, status=status, content_type=media_type)
    # Render without the request, so that no context processor runs: one might fail here.
    page = ErrorPage(loader.render_to_string(f"{status}.html", shown), status=status)
    page.shown = shown
    return page


class ErrorPage(HttpResponse):
    """An error page for browsers; `shown` contains its texts."""

    shown: Mapping[str, Any] = MappingProxyType({})


def in_portal(request: HttpRequest, page: ErrorPage) -> HttpResponse:
    """The page with the portal's sidebar; unchanged if nobody is signed in or rendering fails."""
    try:
        if not request.user.is_authenticated:
            return page
        # The page is the same for every URL, so that it does not reveal which pages exist. Messages are kept
        # for the next page.
        shown = {**page.shown, "here": "/", "messages": ()}
        content = loader.render_to_string("portal_error.html", shown, request=request)
    except Exception:
        logger.exception("The error page of the portal failed.")
        return page
    response = HttpResponse(content, status=page.status_code)
    add_never_cache_headers(response)
    return response
