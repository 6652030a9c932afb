"""The API description (OpenAPI 3.1) at /api/schema/, and a page to browse it at /api/docs/.

Published protocols have no serializers; they are described by hand in chatsite/openapi. The description of
resources, such as /chat-history, is generated from serializers. Tests compare both parts with the site's URLs
and responses.
"""

import functools
import json
import threading
from http import HTTPStatus
from pathlib import Path
from typing import Any, cast

import yaml
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import cache_control
from django.views.decorators.csrf import ensure_csrf_cookie
from django.views.decorators.http import require_safe
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema

FOLDER = Path(__file__).resolve().parent.parent / "openapi"
VERSION = "1.0.0"
DESCRIPTION = """\
The site answers questions from the documents that the caller may read, in seven published protocols, and
stores conversations.

Authenticate with an API key or an ID token (`Authorization: Bearer …`), or with the portal's session; such
requests must come from the site's own origin or have the CSRF token. If the operator allows guests, a
request without any of these is a guest's.

Every response has the header `X-Request-ID`. An answer to a question also has `Chat-Run`, the id for resuming
or stopping it, and `Chat-Message`, the id for rating it. If messages per day are limited, `RateLimit` and
`RateLimit-Policy` say how many are left. Every URL may end with a slash."""
TAGS = {
    "Questions": "RAG chat, the AI Chat Protocol, and chat completions with context.",
    "Chat UI": "The Chat UI's protocol, its multi-agent mode, and its minimal format.",
    "OpenAI": "For any client of OpenAI's API, with a base URL ending in `/v1`.",
    "Runs": "Resuming an answer after a broken connection, and stopping it.",
    "History": "The caller's conversations.",
    "Feedback": "The caller's ratings of answers. Refusals are problem details (RFC 9457).",
    "Projects": "Groups of conversations that belong together. Refusals are problem details (RFC 9457).",
    "Shares": "Links to the caller's conversations for others. Refusals are problem details (RFC 9457).",
    "Documents": "Lists, text and files of the documents that the caller may read.",
    "Search": "Passages of documents, without an answer. Refusals are problem details (RFC 9457).",
    "Webhooks": "Events that are sent to programs. Refusals are problem details (RFC 9457).",
    "Account": "The caller's account.",
}


class ResourceSchema(AutoSchema):
    """Describes a view with serializers; the view's `api_…` attributes give tag, errors and links."""

    def get_tags(self) -> list[str]:
        return [cast(Any, self.view).api_tag]

    def get_auth(self) -> list[dict[str, Any]]:
        return []  # the description lists the authentication methods once for all operations

    def _map_basic_serializer(self, serializer: Any, direction: Any) -> dict[str, Any]:
        schema: dict[str, Any] = super()._map_basic_serializer(serializer, direction)  # type: ignore[no-untyped-call]
        if getattr(serializer, "refuses_unknown", False):
            schema["additionalProperties"] = False
        return schema

    def get_operation(self, *args: Any, **kwargs: Any) -> dict[str, Any] | None:
        operation: dict[str, Any] | None = super().get_operation(*args, **kwargs)
        if operation is None:
            return None
        if self.method in {"PUT", *getattr(self.view, "api_bodies", ())}:
            operation["requestBody"]["required"] = True  # even if none of its fields is required
        codes = ["400", "401", "403", "405"]
        codes += ["413", "415"] if "requestBody" in operation else []
        codes += ["404"] if "{" in self.path else []
        codes += {code for code in operation["responses"] if int(code) >= HTTPStatus.BAD_REQUEST} - {*codes}
        schema = {"$ref": f"#/components/schemas/{cast(Any, self.view).api_error}"}
        content = {getattr(self.view, "api_error_type", "application/json"): {"schema": schema}}
        known = {code: response["description"] for code, response in operation["responses"].items()}
        refusals = {
            code: {"description": known.get(code) or "The request is refused.", "content": content}
            for code in sorted(codes)
        }
        retry = {"Retry-After": {"schema": {"type": "integer"}}}
        refusals["503"] = {
            "description": "Try again after Retry-After.",
            "headers": retry,
            "content": content,
        }
        links = getattr(self.view, "api_links", {}).get(self.method)
        if links:
            success = next(code for code in operation["responses"] if code.startswith("2"))
            operation["responses"][success]["links"] = links
        operation["responses"] |= refusals
        return operation


_building = threading.Lock()


@functools.cache
def document() -> dict[str, Any]:
    """The complete description."""
    parts = {
        name: yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
        for name in ("chat", "openai", "runs", "components")
    }
    generated = SchemaGenerator().get_schema(public=True)  # type: ignore[no-untyped-call]
    resources = {path.removesuffix("/"): item for path, item in generated["paths"].items()}
    schemas = parts["components"]["schemas"] | generated["components"]["schemas"]
    return {
        "openapi": "3.1.0",
        "info": {"title": settings.SITE_NAME, "version": VERSION, "description": DESCRIPTION},
        "servers": [{"url": "/"}],
        "tags": [{"name": name, "description": words} for name, words in TAGS.items()],
        "security": [{"key": []}, {"keyHeader": []}, {"token": []}, {"session": []}],
        "paths": parts["chat"] | parts["openai"] | parts["runs"] | resources,
        "components": parts["components"] | {"schemas": schemas},
    }


@functools.cache
def _body() -> bytes:
    return json.dumps(document()).encode()


@require_safe
@cache_control(public=True, max_age=300)
def schema(request: HttpRequest) -> HttpResponse:
    """The description, which is public, because it contains no personal data.

    It is built only once, even if the first requests are concurrent.
    """
    with _building:
        body = _body()
    return HttpResponse(body, content_type="application/json")


@require_safe
@ensure_csrf_cookie
def docs(request: HttpRequest) -> HttpResponse:
    """A page to browse the description; it loads only files of this site."""
    return render(request, "api_docs.html")
