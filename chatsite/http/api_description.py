"""The API description (OpenAPI 3.1) at /api/schema/, and pages to browse it at /api/docs/.

The part about published protocols, which have no serializers, is written by hand in chatsite/openapi. The
part about resources (/chat-history) is generated from serializers. Tests compare both parts with the site's
URLs and responses.
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
Questions about documents, answered from what the caller may read, in seven published protocols; and the
history of conversations.

Authenticate with an API key or an ID token (`Authorization: Bearer …`), or by the portal's session, whose
requests come from the site's own origin or carry the CSRF token. Where the operator lets guests in, a request
without any of them is theirs.

Every answer carries `X-Request-ID`, and an answer to a question `Chat-Run`, the id by which it is resumed
and stopped, and `Chat-Message`, the id by which it is rated; where the day's messages are limited,
`RateLimit` and `RateLimit-Policy` say what is left. A trailing slash is accepted everywhere."""
TAGS = {
    "Questions": "RAG chat, the AI Chat Protocol, and chat completions with context.",
    "Chat UI": "The Chat UI's protocol, its multi-agent mode, and its minimal format.",
    "OpenAI": "For any client of OpenAI's API, with a base URL ending in `/v1`.",
    "Runs": "One answer: resumed after a broken connection, or stopped.",
    "History": "One's own conversations.",
    "Feedback": "What one thinks of an answer. Refusals are problem details (RFC 9457).",
    "Projects": "Names for conversations that belong together. Refusals are problem details (RFC 9457).",
    "Shares": "Links to one's own conversations for others. Refusals are problem details (RFC 9457).",
    "Documents": "What the caller may read: lists, text and files.",
    "Search": "Passages of documents, without an answer. Refusals are problem details (RFC 9457).",
    "Webhooks": "Events that are sent to programs. Refusals are problem details (RFC 9457).",
    "Account": "The caller.",
}


class ResourceSchema(AutoSchema):
    """Describes a view with serializers.

    Its attributes give its tag and the form of its errors.
    """

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
            code: {"description": known.get(code) or "Refused.", "content": content} for code in sorted(codes)
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
    """The description.

    It is public, because it contains no personal data. It is built only once, even if the first requests are
    concurrent.
    """
    with _building:
        body = _body()
    return HttpResponse(body, content_type="application/json")


@require_safe
@ensure_csrf_cookie
def docs(request: HttpRequest) -> HttpResponse:
    """A page to browse the description; it loads only files of this site."""
    return render(request, "api_docs.html")
