"""A list of all errors for the top of an admin page, each with a link to its field."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django import template
from django.contrib.admin.helpers import AdminForm, InlineAdminFormSet
from django.forms import BaseForm
from django.forms.formsets import BaseFormSet

register = template.Library()


@dataclass(frozen=True, slots=True)
class Problem:
    """One error.

    `target` is the id of its field; `target` and `label` are empty for an error of a whole form.
    """

    text: str
    label: str = ""
    target: str = ""


@register.inclusion_tag("admin/error_summary.html", takes_context=True)
def error_summary(context: template.Context) -> dict[str, list[Problem]]:
    """The errors of all forms in the page's context."""
    return {"problems": [problem for form in _forms(context) for problem in problems_of(form)]}


def problems_of(form: "BaseForm | BaseFormSet[Any]") -> list[Problem]:
    """Errors in the order in which the page shows them."""
    if isinstance(form, BaseFormSet):
        if not form.is_bound:
            return []
        own = [Problem(str(text)) for text in form.non_form_errors()]
        return own + [problem for each in form.forms for problem in problems_of(each)]
    if not form.errors:
        return []
    found = [Problem(str(text)) for text in form.non_field_errors()]
    for field in form:
        # A group of inputs, such as radio buttons or date and time, has no id, but its first input has.
        target = field.id_for_label or f"{field.auto_id}_0"
        found += [Problem(str(text), str(field.label).rstrip(":"), target) for text in field.errors]
    return found


def _forms(context: template.Context) -> "Iterator[BaseForm | BaseFormSet[Any]]":
    """The forms in the context, by the names that Django's admin and our views use."""
    given = [context.get(name) for name in ("adminform", "form", "forms", "inline_admin_formsets")]
    given.append(getattr(context.get("cl"), "formset", None))
    seen = set()
    for value in given:
        for each in value if isinstance(value, list | tuple) else [value]:
            form = each
            if isinstance(each, AdminForm):
                form = each.form
            elif isinstance(each, InlineAdminFormSet):
                form = each.formset
            if isinstance(form, BaseForm | BaseFormSet) and id(form) not in seen:
                seen.add(id(form))
                yield form
