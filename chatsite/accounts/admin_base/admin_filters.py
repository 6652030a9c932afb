"""Admin list filters that show the most used of many choices, and a search box."""

from typing import Any
from urllib.parse import parse_qsl

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import Count, Q
from django.http import HttpRequest

SHOWN = 50  # choices of one filter
MAX_TYPED = 100  # characters


class TypedFilter(admin.FieldListFilter):
    """Filters rows by a name: one of the choices, or any name that contains the typed letters.

    A mixin for one of Django's filters. `names` is the lookup path from a row to the name.
    """

    def __init__(
        self, field: Any, request: HttpRequest, params: Any, model: Any, model_admin: Any, field_path: str
    ) -> None:
        self.typed_name = self.typed_name_of(field.name)
        self.typed = " ".join(params.pop(self.typed_name, [""]))[:MAX_TYPED].strip()
        self.more = False
        self.others: list[tuple[str, str]] = []
        super().__init__(field, request, params, model, model_admin, field_path)
        if self.typed:
            self.used_parameters[f"{self.names}__icontains"] = [self.typed]

    @staticmethod
    def typed_name_of(field_path: str) -> str:
        """The parameter with the typed letters."""
        return f"{field_path.rpartition('__')[2]}_named"

    @property
    def names(self) -> str:
        return self.field_path

    def expected_parameters(self) -> list[str | None]:
        return [*super().expected_parameters(), self.typed_name]

    def has_output(self) -> bool:
        return bool(self.typed) or super().has_output()

    def choices(self, changelist: ChangeList) -> Any:
        """Django's choices; "all" also clears the typed letters."""
        asked = changelist.get_query_string(remove=[self.typed_name, "p"])
        self.others = parse_qsl(asked.removeprefix("?"), keep_blank_values=True)
        for number, choice in enumerate(super().choices(changelist)):
            if number == 0:
                choice["selected"] = choice["selected"] and not self.typed
                choice["query_string"] = changelist.get_query_string(
                    remove=filter(None, self.expected_parameters())
                )
            yield choice

    def most_used(self, counted: Any, value: str, name: str) -> list[Any]:
        """The most frequent values of the query `counted`; `more` says whether there are others."""
        if self.typed:
            counted = counted.filter(**{f"{name}__icontains": self.typed})
        found = [*counted.values_list(value, flat=True)[: SHOWN + 1]]
        self.more = len(found) > SHOWN
        return found[:SHOWN]


class TypedGroupFilter(TypedFilter, admin.RelatedFieldListFilter):
    """The groups with the most rows, and the selected ones."""

    @property
    def names(self) -> str:
        return f"{self.field_path}__name"

    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> list[tuple[Any, Any]]:
        groups = field.remote_field.model._default_manager
        rows = model_admin.model._base_manager.filter(**{f"{self.field_path}__isnull": False})
        counted = rows.values(self.field_path).annotate(n=Count("pk")).order_by("-n", self.field_path)
        shown = self.most_used(counted, self.field_path, self.names)
        chosen = [value for value in self.lookup_val or [] if value.isdecimal()]
        named = groups.filter(Q(pk__in=shown) | Q(pk__in=chosen[:SHOWN]))
        return [*named.order_by("name").values_list("pk", "name")]


class TypedValueFilter(TypedFilter, admin.AllValuesFieldListFilter):
    """The most frequent values, and the selected ones."""

    def __init__(
        self, field: Any, request: HttpRequest, params: Any, model: Any, model_admin: Any, field_path: str
    ) -> None:
        super().__init__(field, request, params, model, model_admin, field_path)
        values = self.rows(request, model).values(field.name).annotate(n=Count("pk"))
        values = values.order_by("-n", field.name)
        shown = self.most_used(values, field.name, field.name)
        self.lookup_choices: Any = sorted({*shown, *(self.lookup_val or [])[:SHOWN]})

    def rows(self, request: HttpRequest, model: Any) -> Any:
        """The rows whose values are offered."""
        return model._base_manager.all()
