"""Renders pieces of text, some of them marked, as HTML without white space between them."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

register = template.Library()


class MarkedPiece(Protocol):
    @property
    def text(self) -> str: ...

    @property
    def marked(self) -> bool: ...


@register.filter
def with_marks(pieces: Iterable[MarkedPiece]) -> SafeString:
    """The HTML of a passage's pieces (see chat.portal.citing.passage_parts)."""
    marks = ((format_html("<mark>{}</mark>", each.text) if each.marked else each.text,) for each in pieces)
    return format_html_join("", "{}", marks)


@register.filter(is_safe=True)
def with_anchor(marked: SafeString) -> SafeString:
    """Give the first mark in HTML from `with_marks` an id, for links without JavaScript."""
    return mark_safe(marked.replace("<mark>", '<mark id="marked">', 1))  # noqa: S308


@register.filter
def with_hits(pieces: Sequence[tuple[str, bool, int]], current: int) -> SafeString:
    """The HTML of a passage's pieces with its hits (see ingestion.portal.finding.numbered).

    The first piece of each hit has an anchor with the hit's number; `current` is the selected hit's number.
    """
    parts: list[str] = []
    anchored = None
    for text, is_match, number in pieces:
        if not is_match:
            parts.append(text)
        elif number == anchored:
            parts.append(format_html("<mark>{}</mark>", text))
        else:
            anchored = number
            state = format_html(' aria-current="{}"', "true") if number == current else ""
            parts.append(format_html('<mark id="hit-{}"{}>{}</mark>', number, state, text))
    return format_html_join("", "{}", ((part,) for part in parts))
