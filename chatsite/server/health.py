"""Health checks for load balancers: liveness and readiness."""

import asyncio
import logging
from weakref import WeakKeyDictionary

from django.db import Error as DatabaseError
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe

from chatsite.db.migration_state import unapplied_migrations
from chatsite.db.threads import in_database_within_budget
from chatsite.http.outgoing.retry_after import set_retry_after

logger = logging.getLogger(__name__)

DATABASE_SECONDS = 0.8  # time limit for the database, so that the check itself responds within a second
RETRY_AFTER_SECONDS = 2

_looks: WeakKeyDictionary[asyncio.AbstractEventLoop, "asyncio.Task[frozenset[tuple[str, str]]]"] = (
    WeakKeyDictionary()
)


@csrf_exempt
@require_safe
@never_cache
async def healthz(request: HttpRequest) -> JsonResponse:
    """Liveness: 200 if the process responds; nothing else is checked."""
    return JsonResponse({"status": "ok"})


@csrf_exempt
@require_safe
@never_cache
async def readyz(request: HttpRequest) -> JsonResponse:
    """Readiness: 200 if the database responds and has every migration, otherwise 503."""
    # One check at a time, shared by all callers: a hanging database must not block a thread for each.
    loop = asyncio.get_running_loop()
    look = _looks.get(loop)
    if look is None or look.done():
        look = _looks[loop] = loop.create_task(in_database_within_budget(unapplied_migrations))
        # Retrieve an error here: otherwise asyncio would log it if all callers have gone.
        look.add_done_callback(lambda done: done.cancelled() or done.exception())
    try:
        missing = await asyncio.wait_for(asyncio.shield(look), DATABASE_SECONDS)
    except (DatabaseError, TimeoutError):
        logger.warning("Not ready: the database does not answer.", extra={"status_code": 503})
        return _unavailable("The database does not answer.")
    if missing:
        return _unavailable("The database is not migrated.")
    return JsonResponse({"status": "ok"})


def _unavailable(reason: str) -> JsonResponse:
    response = JsonResponse({"status": "unavailable", "error": reason}, status=503)
    set_retry_after(response, RETRY_AFTER_SECONDS)
    return response
