"""Admin pages that show rows without changing them, and confirmations that list rows alone."""

from collections.abc import Sequence
from typing import Any

from django.db.models import Model
from django.db.models.options import Options
from django.http import HttpRequest
from django.utils.translation import gettext


class ReadOnly:
    """Needs the view permission; nobody can add, change or delete, whatever their permissions."""

    opts: "Options[Model]"

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """Allow only the page's own filters: values of any other field could be guessed letter by letter."""
        listed: Sequence[Any] = getattr(self, "list_filter", ())
        filters = {each[0] if isinstance(each, tuple) else each for each in listed}
        return lookup.partition("__")[0] in filters | {getattr(self, "date_hierarchy", None)}

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # Django also accepts the change permission, which has no meaning here.
        return request.user.has_perm(f"{self.opts.app_label}.view_{self.opts.model_name}")

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, *args: Any) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, *args: Any) -> bool:
        return False


class RowsOnly:
    """The confirmation of deletion lists the rows themselves, not the rows of other tables that belong to
    them."""

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        allowed = self.has_delete_permission(request)  # type: ignore[attr-defined]
        return [str(each) for each in objs], {}, set() if allowed else {gettext("rows")}, []
