"""Endpoints that published front ends call first: authentication setup and available features.

They return no personal data, so they need no authentication.
"""

from django.conf import settings
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import cache_control
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe

from chat.protocols import front_ends


@csrf_exempt  # so that other methods get a 405, and not an error about a missing CSRF token
@require_safe
@cache_control(private=True, max_age=60)
def auth_setup(request: HttpRequest) -> JsonResponse:
    """`GET /auth_setup`."""
    return JsonResponse(front_ends.auth_setup())


@csrf_exempt  # so that other methods get a 405, and not an error about a missing CSRF token
@require_safe
@cache_control(private=True, max_age=60)
def config(request: HttpRequest) -> JsonResponse:
    """`GET /config`."""
    return JsonResponse(
        front_ends.config(
            reads_images=settings.CHAT_MODEL_READS_IMAGES,
            ranks=bool(settings.RERANK_MODEL),
        )
    )
