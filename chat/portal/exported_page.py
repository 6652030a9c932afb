"""An export as a web page that can be forwarded or printed: one HTML file that loads nothing.

It contains no script.
"""

import functools
from collections.abc import Sequence

import nh3
from django.conf import settings
from django.template.loader import render_to_string
from django.utils.translation import get_language
from markdown_it import MarkdownIt

from chatsite.db.threads import release_connection
from history.long_exports import LONG_MESSAGES

from .rendering.markdown import RenderingBudget, split

TAGS = {"h1", "h2", "h3", "h4", "h5", "h6", "p", "strong", "em", "s", "code", "pre", "blockquote", "hr", "br"}
TAGS |= {"ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "a"}  # without img


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

    Each block is rendered separately, because the parser needs 25 times the memory of a text. In addition, an
    unclosed code block then ends with the part that contains it. As in the portal, blocks are plain text if
    they are too long or the page takes too much time.
    """
    if len(parts) > LONG_MESSAGES:
        release_connection()  # rendering takes a long time
    budget = RenderingBudget()
    body = "".join(budget.spend(block, _html) for part in parts for block in split(part))
    shown = {"title": title, "body": body, "language": get_language(), "site": settings.SITE_NAME}
    return render_to_string("chat/exported.html", shown)


def _html(markdown: str) -> str:
    return _cleaner().clean(_parser().render(markdown))
