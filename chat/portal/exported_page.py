"""An export as a web page that can be forwarded or printed: one HTML file that loads nothing.

It contains no script.
"""

import functools
import threading
from collections.abc import Sequence

import nh3
from django.conf import settings
from django.template.loader import render_to_string
from django.utils.translation import get_language
from markdown_it import MarkdownIt

from chatsite.db.threads import release_connection

TAGS = {"h1", "h2", "h3", "h4", "h5", "h6", "p", "strong", "em", "s", "code", "pre", "blockquote", "hr", "br"}
TAGS |= {"ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "a"}  # without img

# Rendering thousands of messages takes seconds of CPU time, so a process renders one long export at a time.
LONG_PARTS = 300
WAIT_SECONDS = 0.7  # longest wait for another long export, because a refusal must come within a second
_long_export = threading.Lock()


class Overloaded(Exception):
    """Another long export is being rendered."""


@functools.cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False})
    return parser.enable(["table", "strikethrough"]).disable(["image", "reference"])


@functools.cache
def _cleaner() -> nh3.Cleaner:
    return nh3.Cleaner(
        tags=TAGS,
        attributes={"a": {"href"}, "ol": {"start"}},
        set_tag_attribute_values={"th": {"scope": "col"}},
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )


def as_page(title: str, parts: Sequence[str]) -> str:
    """The page for an exported text in Markdown, which must contain only what its reader may see.

    Each part is rendered separately, because the parser needs 25 times the memory of a text. In addition, an
    unclosed code block then ends with the message that contains it. Raises Overloaded.
    """
    is_long = len(parts) > LONG_PARTS
    if is_long:
        release_connection()  # rendering takes long
        if not _long_export.acquire(timeout=WAIT_SECONDS):
            raise Overloaded
    try:
        body = "".join(map(_html, parts))
    finally:
        if is_long:
            _long_export.release()
    shown = {"title": title, "body": body, "language": get_language(), "site": settings.SITE_NAME}
    return render_to_string("chat/exported.html", shown)


def _html(markdown: str) -> str:
    return _cleaner().clean(_parser().render(markdown))
