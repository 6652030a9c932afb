"""The admin site: for staff only. Its pages can read all documents."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from django.conf import settings
from django.contrib import admin
from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.views.autocomplete import AutocompleteJsonView
from django.contrib.auth.models import AnonymousUser, Group
from django.core.exceptions import BadRequest
from django.db import DataError
from django.db.models import Q
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver, path
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.http import require_safe

from chat import site_texts
from chat.overview import overview_pages
from chat.unanswered.question_judging import LISTED_FOR
from chat.unanswered.unanswered_list import MIN_PEOPLE, judged_at, unanswered
from chat.unanswered.unanswered_list import PERMISSION as SEES_UNANSWERED
from chatsite.accounts.api.authentication import session_principal
from chatsite.accounts.audit import record_sign_in, record_sign_out
from chatsite.accounts.forms import SignInForm
from chatsite.accounts.models import User
from chatsite.accounts.sessions import admin_is_idle, admin_was_used, begin
from chatsite.db.threads import request_reads_everything
from chatsite.http import error_pages
from chatsite.server import status_page
from ingestion.access.models import AccessEntry
from ingestion.models import Document

View = TypeVar("View", bound=Callable[..., HttpResponseBase])

# Raised by Python or PostgreSQL for URL parameters that Django's admin passes on unchecked: a NUL character,
# a year of eleven digits, a word instead of a number.
UNUSABLE = (ValueError, OverflowError, DataError)


# Models that autocomplete may search. Others, such as conversations, would be listed without an audit entry.
OFFERED = (User, Group, Document)
DOCUMENT_OWNER = Document._meta.get_field("owner")
READERS_RIGHTS = ("ingestion.add_document", "ingestion.change_document")
# Parameters of Django's admin whose cost grows faster than their length: searched words, order of columns.
SHORT_PARAMETERS = ("q", "term", "o")
MAX_CHARACTERS = 500  # of such a parameter
APPS = {"auth": gettext_lazy("Groups and their permissions"), "procrastinate": gettext_lazy("Queue")}


class Picker(AutocompleteJsonView):
    """Autocomplete results for fields of the admin: people with their names, and no guests.

    Staff who may add or change documents may search for people and groups in the fields for a document's
    readers and owner, even without the right to view accounts and groups.
    """

    def has_perm(self, request: HttpRequest, obj: Any = None) -> bool:
        if self.model_admin.model not in OFFERED:
            return False
        of_readers = self.source_field.model is AccessEntry or self.source_field is DOCUMENT_OWNER
        return super().has_perm(request, obj) or (
            of_readers and any(request.user.has_perm(right) for right in READERS_RIGHTS)
        )

    def get_queryset(self) -> Any:
        found = super().get_queryset()
        if found.model is not User:
            return found
        if not super().has_perm(self.request):
            for word in self.term.split():  # only by name: the searcher may not see e-mail addresses
                names = Q(username__icontains=word) | Q(first_name__icontains=word)
                found = found.filter(names | Q(last_name__icontains=word))
        return found.filter(guest_until=None)

    def serialize_result(self, obj: Any, to_field_name: str) -> dict[str, str]:
        result = super().serialize_result(obj, to_field_name)
        if isinstance(obj, User) and (name := obj.get_full_name()):
            result["text"] = f"{name} ({obj.get_username()})"
        return result


class SiteAdmin(admin.AdminSite):
    """Django's admin with an idle limit and the portal's sign-in limits.

    Malformed parameters get a 400. Staff manage all documents here, even those that they cannot read in the
    portal.
    """

    def has_permission(self, request: HttpRequest) -> bool:
        """Whether the caller is staff, and the admin is not idle (see `admin_is_idle`)."""
        return super().has_permission(request) and not admin_is_idle(request.session)

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Sign in through Django's page, with the same limits on attempts as the portal."""
        shown = extra_context or {}
        if request.user.is_authenticated and admin_is_idle(request.session):
            # Otherwise, Django would show “You are authenticated as …, but are not authorized”.
            shown |= {"user": AnonymousUser(), "admin_was_idle": True}
        if settings.OIDC_ISSUER:
            shown |= {"provider_name": settings.OIDC_NAME}
        response = super().login(request, shown)
        form = (getattr(response, "context_data", None) or {}).get("form")
        if request.method == "POST" and form is not None:
            form.complete_response(response)
        elif request.method == "POST" and request.user.is_authenticated:
            SignInForm.remember_device(response, request.user.get_username())
            assert isinstance(request.user, User)
            begin(request, request.user)
            record_sign_in(request.user, request.META.get("REMOTE_ADDR", ""), "with a password, to the admin")
        return response

    def logout(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        if request.method == "POST":
            record_sign_out(request)
        return super().logout(request, extra_context)

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """Adds the site's configured name, which the header and title of each page show."""
        header = gettext("%(name)s administration") % {"name": site_texts.current().name}
        return {**super().each_context(request), "site_header": header, "site_title": header}

    def get_urls(self) -> list[URLPattern | URLResolver]:
        status = require_safe(self.admin_view(self.status))
        figures = require_safe(self.admin_view(overview_pages.csv_file))
        return [
            path("status/", status, name="status"),
            path("figures/<str:part>.csv", figures, name="figures"),
            *super().get_urls(),
        ]

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """Django's list, but apps in APPS have the names that are given there."""
        apps: list[Any] = super().get_app_list(request, app_label)
        for app in apps:
            app["name"] = APPS.get(app["app_label"], app["name"])
        return apps

    def autocomplete_view(self, request: HttpRequest) -> HttpResponseBase:  # type: ignore[override]
        return Picker.as_view(admin_site=self)(request)

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        """Django's index, below the usage overview for people who may see the overview.

        Unanswered questions are only counted, by the rules of the page that lists them.
        """
        shown = {**overview_pages.overview(request), **(extra_context or {})}
        if request.user.has_perm(SEES_UNANSWERED):
            found = unanswered(session_principal(request))
            shown |= {
                "open_questions": len(found.groups),
                "times_asked": sum(group.times for group in found.groups),
                "other_questions": found.others,
                "least_people": MIN_PEOPLE,
                "questions_judged_at": judged_at(),
                "listed_days": LISTED_FOR.days,
            }
        return super().index(request, shown)

    def status(self, request: HttpRequest) -> HttpResponse:
        return status_page.status(request, self.each_context(request))

    def password_change(  # type: ignore[override]  # Django's answers with a template
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Redirect to the portal's page, which also offers to revoke the person's API keys."""
        return redirect("accounts:password")

    def admin_view(self, view: View, cacheable: bool = False) -> View:
        """Let a view read all documents after checking that the caller is staff."""

        @wraps(view)
        def for_staff(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            request_reads_everything()
            admin_was_used(request.session)
            if any(len(request.GET.get(name, "")) > MAX_CHARACTERS for name in SHORT_PARAMETERS):
                raise BadRequest("A URL parameter is too long")
            try:
                return view(request, *args, **kwargs)
            except DisallowedModelAdminLookup:
                if error_pages.wants_json(request):
                    raise
                title = gettext("The request cannot be understood.")
                context = {**self.each_context(request), "title": title}
                return render(request, "admin/unknown_filter.html", context, status=400)
            except UNUSABLE as error:
                # Values that no form has validated: a query string, or the selection for an action.
                is_typed = request.GET if request.method != "POST" else ACTION_CHECKBOX_NAME in request.POST
                if not is_typed:
                    raise
                raise BadRequest("A URL parameter or a selected value is malformed") from error

        return super().admin_view(cast(View, for_staff), cacheable)
