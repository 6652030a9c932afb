"""The site of the back office: its pages read all documents, and are for staff alone."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from django.contrib import admin
from django.contrib.admin.apps import AdminConfig
from django.http import HttpRequest, HttpResponseBase

from chatsite.database import request_reads_everything

View = TypeVar("View", bound=Callable[..., HttpResponseBase])


class BackOffice(admin.AdminSite):
    """Who keeps the site manages documents that they may not read in the portal."""

    def admin_view(self, view: View, cacheable: bool = False) -> View:
        """The view, for staff; from where that is certain it reads everything."""

        @wraps(view)
        def for_staff(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            request_reads_everything()
            return view(request, *args, **kwargs)

        return super().admin_view(cast(View, for_staff), cacheable)


class BackOfficeConfig(AdminConfig):
    default_site = "chatsite.backoffice.BackOffice"
