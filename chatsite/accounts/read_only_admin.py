"""Pages of the back office that only show."""

from typing import Any

from django.db.models import Model
from django.db.models.options import Options
from django.http import HttpRequest


class ReadOnly:
    """Nothing is added or changed here, whatever rights a person has; looking needs the right to view."""

    opts: "Options[Model]"

    def has_view_permission(self, request: HttpRequest, *args: Any) -> bool:
        # Not Django's rule, by which the right to change, which is of no use here, would do.
        return request.user.has_perm(f"{self.opts.app_label}.view_{self.opts.model_name}")

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, *args: Any) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, *args: Any) -> bool:
        return False
