"""A refused or failed request gets a page in a browser, `{"error": …}` in a program, never a traceback."""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template import loader

PROGRAM_PATHS = ("/chat", "/ask", "/api", "/v1", "/chat-history", "/content")
WORDS = {
    400: "The request cannot be understood.",
    403: "This is not allowed.",
    404: "There is nothing here.",
    500: "The site could not answer. The error has been logged.",
}
CSRF = "The page was open for too long, or cookies are off. Go back, reload the page, and try again."


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _response(request, 400)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _response(request, 403)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _response(request, 404)


def server_error(request: HttpRequest) -> HttpResponse:
    return _response(request, 500)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    return _response(request, 403, CSRF)


def wants_json(request: HttpRequest) -> bool:
    """On paths for programs JSON, unless the caller names HTML; elsewhere what the caller prefers."""
    if any(request.path == path or request.path.startswith(f"{path}/") for path in PROGRAM_PATHS):
        return "text/html" not in request.headers.get("Accept", "")
    return request.get_preferred_type(["text/html", "application/json"]) == "application/json"


def _response(request: HttpRequest, status: int, words: str = "") -> HttpResponse:
    words = words or WORDS[status]
    if wants_json(request):
        return JsonResponse({"error": words}, status=status)
    # Without the request: no context processor runs, so no failure there can hide this page.
    page = loader.render_to_string(f"{status}.html", {"status": status, "words": words})
    return HttpResponse(page, status=status)
