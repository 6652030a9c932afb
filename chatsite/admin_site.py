"""The site of the back office: its pages read all documents, and are for staff alone."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from django.conf import settings
from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import BadRequest
from django.db import DataError
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect

from chatsite.accounts.forms import SignInForm
from chatsite.accounts.sessions import admin_is_idle, admin_was_used, begin
from chatsite.db.threads import request_reads_everything

View = TypeVar("View", bound=Callable[..., HttpResponseBase])

# What Django's admin hands on from an address to Python or PostgreSQL, which then refuse it: a NUL in a text,
# a year of eleven digits, a word where a number is meant.
UNUSABLE = (ValueError, OverflowError, DataError)


class BackOffice(admin.AdminSite):
    """Who keeps the site manages documents that they may not read in the portal.

    Filters, dates, searches and choices that cannot be meant are a 400, as everywhere on the site.
    """

    def has_permission(self, request: HttpRequest) -> bool:
        """Of staff who have used the admin lately."""
        return super().has_permission(request) and not admin_is_idle(request.session)

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Django's page, with the limits of the portal's."""
        shown = extra_context or {}
        if request.user.is_authenticated and admin_is_idle(request.session):
            # Not “you are signed in as …, but not authorized”, which Django shows to users.
            shown |= {"user": AnonymousUser(), "admin_was_idle": True}
        if settings.OIDC_ISSUER:
            shown |= {"provider_name": settings.OIDC_NAME}
        response = super().login(request, shown)
        form = (getattr(response, "context_data", None) or {}).get("form")
        if request.method == "POST" and form is not None:
            form.answered(response)
        elif request.method == "POST" and request.user.is_authenticated:
            SignInForm.remember_device(response, request.user.get_username())
            begin(request.session)
        return response

    def password_change(  # type: ignore[override]  # Django's answers with a template
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The portal's page, which also offers to revoke the person's API keys."""
        return redirect("accounts:password")

    def admin_view(self, view: View, cacheable: bool = False) -> View:
        """The view, for staff; from where that is certain it reads everything."""

        @wraps(view)
        def for_staff(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            request_reads_everything()
            admin_was_used(request.session)
            try:
                return view(request, *args, **kwargs)
            except UNUSABLE as error:
                if not _has_typed_values(request):
                    raise
                raise BadRequest("An address or a choice holds what no column can hold") from error

        return super().admin_view(cast(View, for_staff), cacheable)


def _has_typed_values(request: HttpRequest) -> bool:
    """Whether somebody may have written by hand what the page was asked with. Forms check their fields."""
    return bool(request.GET) if request.method != "POST" else ACTION_CHECKBOX_NAME in request.POST
