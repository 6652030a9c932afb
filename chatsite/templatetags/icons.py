"""A template tag for icons."""

from django import template
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()


@register.simple_tag
def icon(name: str, classes: str = "") -> SafeString:
    """An icon from static/icons.svg, hidden from screen readers."""
    return format_html(
        '<svg class="{}" aria-hidden="true"><use href="{}#{}" /></svg>',
        f"icon {classes}".rstrip(),
        static("icons.svg"),
        name,
    )
