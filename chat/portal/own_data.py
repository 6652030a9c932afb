"""`/settings/data/`: export or delete the caller's own data."""

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_POST

from chat.persons.erasure import ErasureRefused, count_data, delete_own, files_left_in_words
from chat.persons.person_export import ExportRunning, export_response
from chatsite.accounts import staff_access
from chatsite.accounts.models import User
from chatsite.accounts.page_decorators import signed_in
from chatsite.accounts.principal import Principal
from chatsite.db.threads import request_may_wait
from ingestion.storage.files import StorageFault

MAX_ACCESSES = 100


@signed_in
@require_http_methods(["GET", "HEAD", "POST"])
def own_data(request: HttpRequest, principal: Principal) -> HttpResponseBase:
    """Show how much data there is; `export` sends it as a zip file, `confirmed` deletes it."""
    person = User.objects.get(pk=principal.user_id)
    problem, status = "", 422
    if request.method == "POST":
        request_may_wait()
        if "export" in request.POST:
            try:
                return export_response(request, person, actor=person, name=f"{settings.SITE_NAME}.zip")
            except ExportRunning:
                problem = gettext("Your file is already being prepared. Wait until it is ready.")
            except StorageFault:
                problem = gettext("The file storage does not respond. Try again in a moment.")
                status = 503
        elif "confirmed" not in request.POST:
            problem = gettext("Tick the box first: this cannot be undone.")
        else:
            try:
                left = delete_own(person, documents="documents" in request.POST)
            except ErasureRefused as refused:
                problem = str(refused)
            else:
                messages.success(request, gettext("Your data has been deleted."))
                if left:
                    messages.warning(request, files_left_in_words(left))
                return redirect("chat:own-data")
    # List the accesses of staff to this person's data, and mark all of them as seen.
    disclosed = staff_access.access_to_disclose(person.pk)
    shown = {
        "had": count_data(person),
        "problem": problem,
        "staff_access": list(disclosed[:MAX_ACCESSES]),
        "notice_days": settings.LOOK_NOTICE_DAYS,
    }
    disclosed.filter(seen_at=None).update(seen_at=timezone.now())
    return render(request, "chat/own_data.html", shown, status=status if problem else 200)


@signed_in
@require_POST
def hints_seen(request: HttpRequest, principal: Principal) -> HttpResponse:
    """Record that the introductory hints were read, so that they are not shown again."""
    User.objects.filter(pk=principal.user_id).update(hints_seen=True)
    return redirect("chat:new")
