"""HTML: what a reader of the page would read, by heading; no navigation, footers or scripts."""

from html.parser import HTMLParser
from pathlib import Path

from .outline import Outline
from .plain import decode
from .sections import Contents, Limits

NEVER = frozenset(
    {"script", "style", "template", "noscript", "svg", "math", "iframe", "object", "select", "head"}
)
FURNITURE = frozenset({"nav", "footer", "dialog", "button"})
BLOCKS = frozenset(
    [
        "p",
        "div",
        "section",
        "article",
        "main",
        "header",
        "ul",
        "ol",
        "dl",
        "dt",
        "dd",
        "blockquote",
        "pre",
        "figure",
        "figcaption",
        "address",
        "aside",
        "details",
        "summary",
        "form",
        "fieldset",
        "hr",
        "body",
        "html",
        "table",
    ]
)
HEADINGS = {"h1": 1, "h2": 2, "h3": 3, "h4": 4, "h5": 5, "h6": 6}


def read(path: Path, limits: Limits) -> Contents:
    text = decode(path.read_bytes())
    page = Page(text, NEVER | FURNITURE, only_main="<main" in text.lower())
    if not page.outline.sections:
        page = Page(
            text, NEVER, only_main=False
        )  # all of it stands in a navigation, or a tag was never closed
    return Contents(page.outline.sections, page.outline.first_heading or page.title)


class Page(HTMLParser):
    """Reads a page at once; afterwards `outline` is closed and `title` set."""

    def __init__(self, text: str, skipped: frozenset[str], only_main: bool) -> None:
        super().__init__(convert_charrefs=True)
        self.outline = Outline()
        self.title = ""
        self._skipped = skipped
        self._skipping: list[str] = []
        self._outside = only_main
        self._only_main = only_main
        self._in_title = False
        self._words: list[str] = []
        self._bullet = ""
        self._heading = 0
        self._rows: list[list[str]] | None = None
        self.feed(text)
        self.close()
        self._flush()
        self._end_table()
        self.outline.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "title":
            self._in_title = not self.title
        elif tag in self._skipped and not (tag == "head" and self._skipping):
            self._skipping.append(tag)
        elif tag == "main":
            self._outside = False
        elif tag in HEADINGS:
            self._flush()
            self._heading = HEADINGS[tag]
        elif tag == "table":
            self._flush()
            self._rows = self._rows or []
        elif tag == "tr" and self._rows is not None:
            self._flush()
            self._rows.append([])
        elif tag in ("td", "th") and self._rows:
            self._words.clear()
        elif tag == "li":
            self._flush()
            self._bullet = "- "
        elif tag in BLOCKS or tag == "br":
            self._break(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False
        elif tag in self._skipped:
            if tag in self._skipping:
                # Whatever was opened inside and left open ends with it.
                del self._skipping[self._skipping.index(tag) :]
        elif tag == "main" and self._only_main:
            self._flush()
            self._outside = True
        elif tag in ("td", "th") and self._rows:
            self._rows[-1].append("".join(self._words))
            self._words.clear()
        elif tag == "table":
            self._end_table()
        elif tag in BLOCKS or tag in HEADINGS or tag == "li":
            self._break(tag)

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title += data
        elif not self._skipping and not self._outside:
            self._words.append(data)

    def _break(self, tag: str) -> None:
        if self._rows is not None or tag == "br":
            self._words.append(" ")
        else:
            self._flush()

    def _flush(self) -> None:
        text = " ".join("".join(self._words).split())
        self._words.clear()
        if self._heading:
            self.outline.heading(self._heading, text)
        elif text:
            self.outline.paragraph(self._bullet + text)
        self._heading = 0
        self._bullet = ""

    def _end_table(self) -> None:
        self._words.clear()
        if self._rows:
            self.outline.table(self._rows)
        self._rows = None
