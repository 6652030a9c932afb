"""Mixins for admin pages: read-only pages, filter restrictions, and deletion confirmations."""

from collections.abc import Sequence
from typing import Any

from django.contrib.admin.utils import unquote
from django.db.models import Model
from django.db.models.options import Options
from django.http import Http404, HttpRequest
from django.utils.translation import gettext, gettext_noop

from .admin_filters import TypedFilter

# The lookups that filters and links append to the name of a field.
COMPARISONS = frozenset({"exact", "id__exact", "in", "isnull", "isempty", "gt", "gte", "lt", "lte"})
GROUPS_DELETED = gettext_noop(
    "It was saved, but stays hidden, because its groups were deleted. Choose other groups."
)
PARTS_OF_DATES = frozenset({"year", "month", "day"})


def shown_object(page: Any, request: HttpRequest, object_id: str) -> Any:
    """The row of an admin URL, for checks that run before Django's view.

    Raises Http404. Decodes the id as Django's views do; otherwise a check could concern a different row than
    the page.
    """
    row = page.get_object(request, unquote(object_id))
    if row is None:
        raise Http404
    return row


class OwnFilters:
    """Lists can only be filtered by the page's own filters.

    Filters on other fields would allow guessing their values letter by letter, even if the page does not show
    them. `linked_by` names additional fields that links from other pages filter by.
    """

    linked_by: Sequence[str] = ()

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        listed: Sequence[Any] = getattr(self, "list_filter", ())
        filters = {
            each[0] if isinstance(each, tuple) else getattr(each, "parameter_name", each) for each in listed
        }
        typed = {
            each[1].typed_name_of(each[0])
            for each in listed
            if isinstance(each, tuple) and issubclass(each[1], TypedFilter)
        }
        if lookup in typed:
            return True
        date = getattr(self, "date_hierarchy", None)
        comparisons = {
            **dict.fromkeys({*filters, *self.linked_by}, COMPARISONS),
            **({date: COMPARISONS | PARTS_OF_DATES} if date else {}),
        }
        return any(
            lookup == name or (lookup.startswith(f"{name}__") and lookup[len(name) + 2 :] in allowed)
            for name, allowed in comparisons.items()
        )


class ReadOnly(OwnFilters):
    """A page that needs the view permission; nobody can add, change or delete its rows."""

    opts: "Options[Model]"

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # Django would also accept the change permission.
        return request.user.has_perm(f"{self.opts.app_label}.view_{self.opts.model_name}")

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, *args: Any) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, *args: Any) -> bool:
        return False


class RowsOnly:
    """Confirms deletions with a list of the selected rows only, without dependent rows of other tables."""

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        allowed = self.has_delete_permission(request)  # type: ignore[attr-defined]
        return [str(each) for each in objs], {}, set() if allowed else {gettext("rows")}, []
