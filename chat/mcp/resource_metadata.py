"""Protected-resource metadata (RFC 9728), which says who issues access tokens for the MCP server."""

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from chatsite.accounts.api.authentication import presents_key

METADATA = r"\.well-known/oauth-protected-resource"
PATH = "/.well-known/oauth-protected-resource/mcp"


def _has_tokens() -> bool:
    """Whether access tokens are accepted."""
    return bool(settings.OIDC_ISSUER and settings.MCP_AUDIENCE)


@require_safe
@cache_control(public=True, max_age=300)
def resource_metadata(request: HttpRequest) -> HttpResponse:
    """The metadata; public, because clients read it before anybody has signed in."""
    if not _has_tokens():
        raise Http404
    document = {
        "resource": request.build_absolute_uri("/mcp"),
        "resource_name": settings.SITE_NAME,
        "authorization_servers": [settings.OIDC_ISSUER],
        "bearer_methods_supported": ["header"],
        "scopes_supported": settings.OIDC_SCOPES.split(),
    }
    response = JsonResponse(document)
    response.headers["Access-Control-Allow-Origin"] = "*"
    return response


def challenge(request: HttpRequest) -> str:
    """The `WWW-Authenticate` header of a refusal, which says how to get a token, if that is possible."""
    parts = ['error="invalid_token"'] if presents_key(request) else []
    if _has_tokens():
        parts.append(f'resource_metadata="{request.build_absolute_uri(PATH)}"')
    return " ".join(["Bearer", ", ".join(parts)]).strip()
