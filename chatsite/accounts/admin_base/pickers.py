"""Autocomplete fields for the admin, usable with many rows and robust against forged input."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib.admin.widgets import AutocompleteSelect, AutocompleteSelectMultiple
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext

from chatsite.accounts.models import User

MAX_CHOSEN = 100  # selected rows shown by the widget; more are edited as names in a text area
UNKNOWN = " ?"  # appended to an unknown name: the field then rejects the value and names it


class _UsableChoices:
    """Leaves out selected values that are not numbers; the field rejects such values."""

    def optgroups(self, name: str, value: Sequence[Any], attrs: Any = None) -> Any:
        usable = [each for each in value if str(each).isdecimal()]
        return super().optgroups(name, usable, attrs)  # type: ignore[misc]


class Picker(_UsableChoices, AutocompleteSelect):
    """Selects one row by autocompletion."""


class SeveralPicker(_UsableChoices, AutocompleteSelectMultiple):
    """Selects several rows by autocompletion, or more than MAX_CHOSEN by names, one per line."""

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        chosen = [str(each) for each in value or ()]
        if len(chosen) <= MAX_CHOSEN:
            return super().render(name, value, attrs, renderer)
        lines = []
        for row in self._rows.filter(pk__in=[each for each in chosen if each.isdecimal()]):
            full = row.get_full_name() if isinstance(row, User) else ""
            # With the full name, as suggestions show it.
            lines.append(f"{full} ({row})" if full else str(row))
        lines.sort()
        lines += [each.removesuffix(UNKNOWN) for each in chosen if not each.isdecimal()]
        kept = {key: each for key, each in (attrs or {}).items() if key in {"id", "aria-describedby"}}
        area = forms.Textarea({**kept, "rows": 12, "cols": 60, "title": gettext("One name per line")})
        words = ngettext("%(number)s chosen, one per line", "%(number)s chosen, one per line", len(chosen))
        rendered = area.render(f"{name}-names", "\n".join(lines), renderer=renderer)
        return format_html(
            '<div>{}<div class="quiet">{}</div></div>', rendered, words % {"number": len(chosen)}
        )

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Any:
        if f"{name}-names" not in data:
            return super().value_from_datadict(data, files, name)
        lines = [line.strip() for line in data[f"{name}-names"].replace("\0", "").split("\n")]
        keys = {line: self._key_in(line) for line in lines if line}
        rows = self._rows.filter(**{f"{self._key}__in": keys.values()})
        known = dict(rows.values_list(self._key, "pk"))
        return [known.get(key, f"{line}{UNKNOWN}") for line, key in keys.items()]

    @property
    def _rows(self) -> Any:
        """The manager of the people or groups that can be selected."""
        return self.field.remote_field.model._default_manager

    @property
    def _key(self) -> str:
        return User.USERNAME_FIELD if self._rows.model is User else "name"

    def _key_in(self, line: str) -> str:
        """The user name in “Anna Berg (anna)”; any other line unchanged."""
        if self._rows.model is User and line.endswith(")"):
            return line[:-1].rpartition("(")[2]
        return line


class AutocompleteAdmin:
    """A mixin for admin pages that uses these pickers for `autocomplete_fields`."""

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name in self.get_autocomplete_fields(request):  # type: ignore[attr-defined]
            kwargs.setdefault("widget", Picker(db_field, self.admin_site))  # type: ignore[attr-defined]
        return super().formfield_for_foreignkey(db_field, request, **kwargs)  # type: ignore[misc]

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name in self.get_autocomplete_fields(request):  # type: ignore[attr-defined]
            kwargs.setdefault("widget", SeveralPicker(db_field, self.admin_site))  # type: ignore[attr-defined]
        return super().formfield_for_manytomany(db_field, request, **kwargs)  # type: ignore[misc]
