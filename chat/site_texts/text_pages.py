"""Public URLs: the privacy note, the logo, and the banner, which open pages poll."""

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils import translation
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from . import current

LOGO_POLICY = "default-src 'none'; sandbox"


@require_safe
def privacy(request: HttpRequest) -> HttpResponse:
    """Show the site's own privacy note, or a general description of what is stored."""
    return render(request, "chat/privacy.html", {"note": current().texts.translated("privacy")})


@require_safe
def logo(request: HttpRequest, digest: str) -> HttpResponse:
    """The picture beside the site's name. A new picture has a new URL, so caches may keep the old one."""
    shown = current()
    if not shown.logo or digest != shown.logo_digest:
        raise Http404
    return HttpResponse(
        shown.logo,
        content_type="image/png",
        headers={
            "Content-Security-Policy": LOGO_POLICY,
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "public, max-age=31536000, immutable",
        },
    )


@require_safe
@never_cache
def banner(request: HttpRequest) -> JsonResponse:
    """The current banner in the language of the requesting page; empty if there is none.

    This needs no query: the texts are in memory, and the caller is not looked up.
    """
    language = request.GET.get("language", "")
    known = language if language in dict(settings.LANGUAGES) else translation.get_language()
    with translation.override(known):
        shown = current().banner
    return JsonResponse({"kind": shown.kind, "text": shown.text} if shown else {"kind": "", "text": ""})
