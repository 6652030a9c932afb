"""The description of the API (OpenAPI 3.1) at /api/schema/, and pages to browse it at /api/docs/.

It is written by hand, in chatsite/openapi: the protocols are those of published documents, and no serializer
here knows them. Tests hold it to the URLs and to what the site answers.
"""

import functools
from pathlib import Path
from typing import Any

import yaml
from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.cache import cache_control
from django.views.decorators.csrf import ensure_csrf_cookie
from django.views.decorators.http import require_safe

FOLDER = Path(__file__).resolve().parent.parent / "openapi"
VERSION = "1.0.0"
DESCRIPTION = """\
Questions about documents, answered from what the caller may read, in seven published protocols; and the
history of conversations.

Authenticate with an API key or an ID token (`Authorization: Bearer …`), or by the portal's session, whose
requests come from the site's own origin or carry the CSRF token. Where the operator lets guests in, a request
without any of them is theirs.

Every answer carries `X-Request-ID`, and an answer to a question `Chat-Run`, the id by which it is resumed and
stopped; where the day's messages are limited, `RateLimit` and `RateLimit-Policy` say what is left. A trailing
slash is accepted everywhere."""
TAGS = {
    "Questions": "RAG chat, the AI Chat Protocol, and chat completions with context.",
    "Chat UI": "The Chat UI's protocol, its multi-agent mode, and its minimal format.",
    "OpenAI": "For any client of OpenAI's API, with a base URL ending in `/v1`.",
    "Runs": "One answer: resumed after a broken connection, or stopped.",
    "History": "One's own conversations.",
    "Documents": "The files that answers cite.",
}


@functools.cache
def document() -> dict[str, Any]:
    """The whole description."""
    parts = {name: _part(name) for name in ("chat", "openai", "runs", "history", "components")}
    return {
        "openapi": "3.1.0",
        "info": {"title": settings.SITE_NAME, "version": VERSION, "description": DESCRIPTION},
        "servers": [{"url": "/"}],
        "tags": [{"name": name, "description": words} for name, words in TAGS.items()],
        "security": [{"key": []}, {"keyHeader": []}, {"token": []}, {"session": []}],
        "paths": parts["chat"] | parts["openai"] | parts["runs"] | parts["history"],
        "components": parts["components"],
    }


def _part(name: str) -> dict[str, Any]:
    with (FOLDER / f"{name}.yaml").open(encoding="utf-8") as file:
        read: dict[str, Any] = yaml.safe_load(file)
    return read


@require_safe
@cache_control(public=True, max_age=300)
def schema(request: HttpRequest) -> HttpResponse:
    """For everyone: nothing in it is about anyone's data."""
    return JsonResponse(document())


@require_safe
@ensure_csrf_cookie
def docs(request: HttpRequest) -> HttpResponse:
    """The description as a page; all that it loads comes from this site."""
    return render(request, "api_docs.html")
