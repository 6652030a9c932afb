"""Two questions of a load balancer: does the process live, and can it serve?"""

import asyncio
import logging

from django.db import DatabaseError
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe

from chatsite.database import in_database
from chatsite.migrations_applied import unapplied_migrations

logger = logging.getLogger(__name__)

DATABASE_SECONDS = 2.5


@csrf_exempt
@require_safe
@never_cache
async def healthz(request: HttpRequest) -> JsonResponse:
    """The process answers; nothing else is asked."""
    return JsonResponse({"status": "ok"})


@csrf_exempt
@require_safe
@never_cache
async def readyz(request: HttpRequest) -> JsonResponse:
    """The database answers, and has every migration; else 503."""
    try:
        missing = await asyncio.wait_for(in_database(unapplied_migrations), DATABASE_SECONDS)
    except (DatabaseError, TimeoutError):
        logger.warning("Not ready: the database does not answer.")
        return _unavailable("The database does not answer.")
    if missing:
        return _unavailable("The database is not migrated.")
    return JsonResponse({"status": "ok"})


def _unavailable(reason: str) -> JsonResponse:
    return JsonResponse({"status": "unavailable", "error": reason}, status=503, headers={"Retry-After": "2"})
