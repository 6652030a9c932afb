"""`/settings/data/`: all that the site has of the caller, to take along or to delete."""

import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import BinaryIO

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.cache import cache
from django.core.handlers.asgi import ASGIRequest
from django.http import FileResponse, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from chat.persons import CannotErase, delete_own, export, holdings_of
from chatsite.accounts import looks
from chatsite.accounts.authentication import session_principal
from chatsite.accounts.models import Look, User
from chatsite.db.threads import request_may_wait

MAX_LOOKS = 100
CHUNK_BYTES = 65_536
MAX_SECONDS = 600  # after which an export that somehow never ended is forgotten


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def own_data(request: HttpRequest) -> HttpResponseBase:
    """Says how much there is; with `export` sends it as a zip file, with `delete` deletes it."""
    person = User.objects.get(pk=session_principal(request).user_id)
    problem = ""
    if request.method == "POST":
        request_may_wait()
        if "export" in request.POST:
            # Reading everything is work: one export of a person at a time.
            if cache.add(f"export:{person.pk}", True, MAX_SECONDS):
                try:
                    return _zip(request, person)
                finally:
                    cache.delete(f"export:{person.pk}")
            problem = gettext("Your file is being made already: wait for it.")
        elif "confirmed" not in request.POST:
            problem = gettext("Tick the box first: it cannot be undone.")
        else:
            try:
                delete_own(person, documents="documents" in request.POST)
            except CannotErase as refused:
                problem = str(refused)
            else:
                messages.success(request, gettext("It is deleted."))
                return redirect("chat:own-data")
    shown = {"had": holdings_of(person), "problem": problem, "looks": _looks_at(person)}
    shown |= {"notice_days": settings.LOOK_NOTICE_DAYS}
    return render(request, "chat/own_data.html", shown, status=422 if problem else 200)


def _looks_at(person: User) -> list[Look]:
    """Who has read a conversation of theirs; from now on they know of it."""
    told = looks.told_to(person.pk)
    shown = list(told[:MAX_LOOKS])
    told.filter(seen_at=None).update(seen_at=timezone.now())
    return shown


def _zip(request: HttpRequest, person: User) -> HttpResponseBase:
    """The file, which has no name on the disk any more while it is sent."""
    folder = Path(tempfile.mkdtemp(dir=settings.FILE_UPLOAD_TEMP_DIR))
    try:
        path = folder / "export.zip"
        export(person, path, actor=person)
        file = path.open("rb")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    response = FileResponse(file, as_attachment=True, filename=f"{settings.SITE_NAME}.zip")
    if isinstance(request, ASGIRequest):
        response.streaming_content = _pieces(file)  # Django would hold the whole file in memory
    return response


async def _pieces(file: BinaryIO) -> AsyncIterator[bytes]:
    read = sync_to_async(file.read, thread_sensitive=False)
    while piece := await read(CHUNK_BYTES):
        yield piece


@login_required
@require_POST
def hints_seen(request: HttpRequest) -> HttpResponse:
    """The first hints were read; they never come back."""
    User.objects.filter(pk=session_principal(request).user_id).update(hints_seen=True)
    return redirect("chat:new")
