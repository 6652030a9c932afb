"""HTML: the visible text of a page by heading.

Scripts are left out; so are navigation, banners and footers of web pages that have other text.
"""

import re
from collections import Counter
from html import escape
from html.parser import HTMLParser
from pathlib import Path

from chatsite.superscripts import superscript
from ingestion.parsing.encodings import decode
from ingestion.parsing.sections import Contents, Limits
from ingestion.parsing.titles import first_title

from .office.list_labels import formatted
from .outline import Outline
from .tables import Grid


def _tags(names: str) -> frozenset[str]:
    return frozenset(names.split())


NEVER = _tags("script style template noscript svg math iframe object select head audio video canvas datalist")
BOILERPLATE = frozenset(["nav", "footer", "dialog", "button", "menu"])
ROLES = _tags("navigation banner contentinfo search dialog alertdialog complementary menu menubar")
BANNER = re.compile(
    r"(?:^|\s|(?<!has)(?<!with)[_-])(?:(?:cookies?|consent|gdpr)[_-]?(?:banner|bar|box|consent|dialog|message|modal|notice|overlay|popup)|"
    r"breadcrumbs?|skip-?(?:link|nav|to-content)|sr-only|visually-hidden|"
    r"no-?print|catlinks|nav-?(?:header|footer|bar)|toc|newsletter-?(?:signup|popup)|share-?(?:buttons|bar)|social-?(?:links|share))(?:[\s_-]|$)",
    re.IGNORECASE,
)
# Names of banners and of sections of policies about cookies; a section has a heading and no button.
POLICY_OR_BANNER = re.compile(
    r"(?:^|\s|(?<!has)(?<!with)[_-])(?:cookies?|consent|gdpr)(?:[\s_-]|$)", re.IGNORECASE
)
NOTE = re.compile(
    r"(?:^|[\s_-])(?:(?:(?:foot|end|side|margin)?-?notes?|warning|caution|danger|important|hint|tip|hinweis|achtung|warnung|"
    r"fu(?:ß|ss)noten?)(?:[_-]box|--[\w-]{1,50})?|(?:admonition|callout)[\w-]{0,50})(?:\s|$)",
    re.IGNORECASE,
)
MARKED = re.compile(r"<!\[[^<>]{0,200}>|<!\[|<\?[^<>]{0,200}>|<\?")  # <![if IE]>, <?php … ?>
CDATA = "<![CDATA["
HIDING = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
REMOVING = re.compile(r"display\s*:\s*none", re.IGNORECASE)
BLOCKS = _tags(
    "p div section article main header ul ol dl dt dd blockquote pre figure figcaption address aside details "
    "summary form fieldset legend center hgroup optgroup search nav footer dialog menu hr body html table"
)
LISTS = _tags("ol ul menu")
STRUCK = _tags("del s strike")
INLINE = STRUCK | _tags(
    "a abbr b bdi bdo big cite code dfn em font i ins kbd label mark q samp small span strong sub sup tt u"
)
STRIKING = re.compile(r"text-decoration(?:-line)?\s*:[a-z\s]{0,40}line-through", re.IGNORECASE)
# Elements that, if left out, still separate the words around them.
BOXES = STRUCK | _tags("svg math iframe object select audio video canvas button")
# The end tags of these elements may be omitted.
SIBLINGS = _tags("p li td th tr dt dd option")
CELLS = _tags("td th")
# If one of these elements is left out, the text after it is another paragraph.
SEPARATE = BLOCKS | SIBLINGS | _tags("h1 h2 h3 h4 h5 h6")
# By element, the elements whose start tags close it.
ENDING = {
    **{tag: _tags(tag) for tag in SIBLINGS},
    **dict.fromkeys(CELLS, _tags("td th tr tbody tfoot")),
    "tr": _tags("tr tbody tfoot"),
    "dt": _tags("dt dd"),
    "dd": _tags("dt dd"),
    "head": _tags("body"),
    "p": SEPARATE,
    **dict.fromkeys(STRUCK, SIBLINGS - {"p"}),
}
# Inside these elements, others of SIBLINGS have their own parents.
PARENTS = LISTS | _tags("dl table select datalist")
TERM_CHARACTERS = 120  # characters of a term in a definition list
VOID = _tags("area base br col embed hr img input link meta source track wbr")
LINK_SIGN = re.compile(r"[¶🔗]\Z|\s#\Z")  # the text of a link from a heading to itself
WHOLE = _tags("html body main")
CONTROLS = _tags("button input select form")
BANNER_CHARACTERS = 300  # a banner may have a link instead of a button if its text is not longer
BOLD = _tags("b strong")
BOLD_STYLE = re.compile(r"font-weight\s*:\s*(?:bold|[6-9]00)", re.IGNORECASE)
HEADINGS = {"h1": 1, "h2": 2, "h3": 3, "h4": 4, "h5": 5, "h6": 6}
BULLET = "- "
# Formats of `formatted` by the type of a list, and by its style.
NUMBERS = {
    "1": "decimal", "a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman",
    "decimal": "decimal", "lower-alpha": "lowerLetter", "lower-latin": "lowerLetter",
    "upper-alpha": "upperLetter", "upper-latin": "upperLetter", "lower-roman": "lowerRoman",
    "upper-roman": "upperRoman", "none": "", "disc": "", "circle": "", "square": "",
}  # fmt: skip
LIST_STYLE = re.compile(r"list-style(?:-type)?\s*:\s*([a-z-]+)", re.IGNORECASE)
INTEGER = re.compile(r"\s*([+-]?\d{1,9})(?!\d)", re.ASCII)
Attributes = dict[str, str]


def read(path: Path, limits: Limits) -> Contents:
    text = _without_slow_markup(decode(path.read_bytes()))
    page = Page(text, Outline(limits), boilerplate=False)
    if page.is_about_cookies:
        page = Page(text, Outline(limits), boilerplate=False, is_about_cookies=True)
    if not page.outline.close().sections:  # perhaps all of it is navigation, or a tag is not closed
        page = Page(text, Outline(limits), boilerplate=True)
    return page.outline.titled(first_title(page.outline.first_heading, page.title))


def chapter(text: str, outline: Outline) -> None:
    """Add a page to the outline of the book or message that contains it."""
    fragment(text, outline)
    outline.close()


def fragment(text: str, outline: Outline) -> None:
    """Add a part of a text to its outline."""
    Page(_without_slow_markup(text), outline, boilerplate=True)


def _without_slow_markup(text: str) -> str:
    """The page without comments and unclosed markup, which the parser handles very slowly.

    The text of CDATA sections, which XHTML may contain, is kept.
    """
    text = _with_escaped_cdata(text)
    parts, start = [], 0
    while (comment := text.find("<!--", start)) >= 0:
        parts.append(text[start:comment])
        end = text.find("-->", comment + 2)
        start = end + 3 if end >= 0 else len(text)
    text = MARKED.sub(" ", "".join([*parts, text[start:]]))
    end = text.rfind(">") + 1
    return text[:end] + text[end:].replace("<", " ")


def _with_escaped_cdata(text: str) -> str:
    """The page with its CDATA sections as ordinary text. An unclosed section is not changed."""
    parts, start = [], 0
    while (opened := text.find(CDATA, start)) >= 0 and (closed := text.find("]]>", opened)) >= 0:
        parts += [text[start:opened], escape(text[opened + len(CDATA) : closed], quote=False)]
        start = closed + 3
    return "".join([*parts, text[start:]])


def _changes_language(attributes: Attributes) -> bool:
    """Whether a link leads to the page in another language, and has its text in that language."""
    return attributes.get("hreflang", "") != "" and attributes.get("hreflang") == attributes.get("lang")


def _is_note(attributes: Attributes) -> bool:
    """Whether an `aside` is a note or a warning, which belongs to the text around it."""
    return attributes.get("role", "").startswith("doc-") or bool(NOTE.search(attributes.get("class", "")))


def _is_removed(attributes: Attributes) -> bool:
    """Whether browsers leave no space for an element, such as a cell of a table."""
    return "hidden" in attributes or bool(REMOVING.search(attributes.get("style", "")))


def _integer(text: str, default: int) -> int:
    match = INTEGER.match(text)
    return int(match[1]) if match else default


class _List:
    """An open list, and the number of its last item."""

    def __init__(self, tag: str, attributes: Attributes) -> None:
        self.tag = tag
        kind = ""
        # The numbers of a reversed list depend on how many items follow.
        if tag == "ol" and "reversed" not in attributes:
            kind = NUMBERS.get(attributes.get("type", "1"), "decimal")
            if style := LIST_STYLE.search(attributes.get("style", "")):
                kind = NUMBERS.get(style[1].lower(), kind)
        self._kind = kind
        self._number = _integer(attributes.get("start", ""), 1) - 1

    def label(self, item: Attributes) -> str:
        """The label of the next item, as browsers show it, with a space after it."""
        self._number = _integer(item.get("value", ""), self._number + 1)
        return f"{formatted(self._number, self._kind)}. " if self._kind else BULLET


class Page(HTMLParser):
    """Parses a page into `outline` and `title`.

    `is_about_cookies` says that elements named after cookies or consent are sections of a policy; if it
    becomes true while parsing, parse the page again.
    """

    def __init__(
        self, text: str, outline: Outline, *, boilerplate: bool, is_about_cookies: bool = False
    ) -> None:
        super().__init__(convert_charrefs=True)
        self.is_about_cookies = is_about_cookies
        self.outline = outline
        self.title = ""
        self._boilerplate = boilerplate
        self._only_main = not boilerplate and bool(
            re.search(r"<main[\s>]|role=[\"']?main", text, re.IGNORECASE)
        )
        self._inside = 0  # nesting depth of main and article elements
        self._skipped = ""  # the name of the element that is skipped
        self._inner: list[str] = []  # the open elements inside it for which `_nests` is true
        self._inner_names: Counter[str] = Counter()  # the same, counted, so that a look-up takes no time
        # Whether the skipped element is a section of a policy, if it has a heading, and no link or much text.
        self._may_be_policy = False
        self._has_heading = self._has_link = False  # whether the skipped element has a heading, and a link
        self._skipped_characters = 0  # the length of its text
        self._in_title = self._in_header = False
        self._words: list[str] = []
        self._raised: int | None = None  # the index in `_words` at which an open superscript begins
        self._lists: list[_List] = []  # the open lists
        self._bullet = ""  # the label of a list item, until its text begins
        self._term = ""  # the term of a definition list, until its definition begins
        self._in_term = False
        self._last_term = ""  # the term of the definitions that follow
        self._heading = 0
        self._has_blocks = False  # whether the text of the open heading is in blocks
        self._lines_kept = False
        self._in_code = False
        self._grid: Grid | None = None
        self._bold: list[str] = []  # the names of the open bold elements, also of the open cell
        self._is_plain = False  # whether some text of the open cell is not bold
        self._tables = 0  # nesting depth of tables
        # Whether the open table contains h1 to h6, and therefore is not a table of data.
        self._is_layout = False
        self.feed(text)
        self.close()
        self._flush()
        self._end_table()
        self._write_term("{}")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "title":
            self._in_title = not self.title
        elif self._skipped and not self._skip_ends(tag):
            if self._nests(tag):
                self._inner.append(tag)
                self._inner_names[tag] += 1
            self._has_heading = self._has_heading or tag in HEADINGS
            self._has_link = self._has_link or (tag == "a" and any(name == "href" for name, _ in attrs))
            self._may_be_policy = self._may_be_policy and not (tag in CONTROLS or ("role", "button") in attrs)
        else:
            attributes = {name: value or "" for name, value in attrs}
            if tag not in VOID and self._left_out(tag, attributes):
                self._skip(tag, attributes)
            else:
                self._open(tag, attributes)

    def _skip(self, tag: str, attributes: Attributes) -> None:
        """Begin to leave out an element, which still separates the words around it."""
        if self._grid and tag in CELLS and not _is_removed(attributes):
            self._end_cell()
            self._grid.cell("", attributes)  # so that the cells after it are below the names of their columns
        elif tag in SEPARATE:
            self._flush_outside_table()
        elif tag in BOXES or STRIKING.search(attributes.get("style", "")):
            self._words.append(" ")
        self._skipped, self._inner, self._inner_names = tag, [], Counter()
        self._may_be_policy = not self._is_boilerplate(tag, attributes)
        self._has_heading = self._has_link = False
        self._skipped_characters = 0

    def _open(self, tag: str, attributes: Attributes) -> None:
        if tag in ("main", "article") or attributes.get("role") == "main":
            self._inside += 1
        self._in_header = self._in_header or (tag == "header" and not self._inside and not self._boilerplate)
        if tag in HEADINGS:
            self._flush()
            self._end_table()  # the table was only used for layout
            self._is_layout = self._tables > 0
            self._heading = HEADINGS[tag]
        elif tag == "table":
            self._flush()
            self._write_term("- {}:")
            self._grid = self._grid or Grid()
            self._tables += 1
        elif tag == "tr" and self._grid is None and self._tables and not self._is_layout:
            self._flush()  # a nested table has ended; its outer table continues
            self._grid = Grid()
            self._grid.row()
        elif self._grid is None and tag in ("tr", "td", "th"):
            self._flush()
        elif self._grid and tag in ("tr", "td", "th"):
            self._end_cell()
            self._grid.row(attributes) if tag == "tr" else self._grid.cell(tag, attributes)
        elif tag == "li":
            self._break(tag)
            label = self._lists[-1].label(attributes) if self._lists else BULLET
            self._bullet = label if self._grid is None else ""
            if self._grid is not None and label != BULLET:
                self._words.append(label)
        elif tag in ("dt", "dd") and self._grid is None:
            self._open_definition(tag)
        elif tag in BLOCKS or tag == "br":
            self._break(tag)
        else:
            self._open_other(tag)
        self._open_bold(tag, attributes)
        if tag in LISTS:
            self._lists.append(_List(tag, attributes))
        self._lines_kept = self._lines_kept or tag == "pre"
        self._in_code = self._in_code or tag == "code"

    def _open_definition(self, tag: str) -> None:
        self._end_term() if self._in_term else self._flush()
        self._in_term = tag == "dt"
        if tag == "dd":  # perhaps a further definition of a term
            self._term = self._term or self._last_term

    def _open_bold(self, tag: str, attributes: Attributes) -> None:
        if tag not in VOID and (tag in BOLD or BOLD_STYLE.search(attributes.get("style", ""))):
            self._bold.append(tag)

    def _open_other(self, tag: str) -> None:
        if tag == "sup":
            self._raised = len(self._words)
        elif tag == "thead" and self._grid:
            self._grid.has_head = True

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        # In HTML, a slash does not close an element; in XHTML, `<script/>` and `<title/>` are closed.
        if tag not in NEVER and tag != "title":
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False
        elif self._skipped and self._is_skipped(tag):
            return
        elif tag in ("tr", "td", "th", "caption") and self._grid:
            self._end_cell(caption=tag == "caption")
        elif tag == "table":
            self._end_cell()
            self._end_table()
            self._tables = max(0, self._tables - 1)
            self._is_layout = self._is_layout and self._tables > 0
        elif tag in ("tr", "td", "th"):
            self._flush_outside_table()
        elif tag in ("dt", "dl") and self._in_term and self._grid is None:
            self._end_term()
        elif tag == "sup" and self._raised is not None:
            self._words[self._raised :] = [superscript("".join(self._words[self._raised :]))]
            self._raised = None
        elif tag in BLOCKS or tag in HEADINGS or tag == "li":
            self._break(tag)
            self._end_list(tag)
        if tag == "dl":  # perhaps after a term without a definition
            self._write_term("{}")
            self._last_term = ""
        if tag in ("main", "article"):
            self._flush_outside_table()
            self._inside = max(0, self._inside - 1)
        if self._bold and self._bold[-1] == tag:
            self._bold.pop()
        self._in_header = self._in_header and tag != "header"
        self._lines_kept = self._lines_kept and tag != "pre"
        self._in_code = self._in_code and tag != "code" and tag not in SEPARATE

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title += data
        elif self._skipped:
            self._skipped_characters += len(data)
        elif self._only_main and not self._inside:
            return
        elif self._heading or not self._in_header:  # in the header of a page, read only headings
            self._words.append(data)
            self._is_plain = self._is_plain or not (self._bold or data.isspace())

    def _left_out(self, tag: str, attributes: Attributes) -> bool:
        return self._is_boilerplate(tag, attributes) or (
            not (self._boilerplate or self.is_about_cookies or tag in WHOLE)
            and self._is_named(tag, attributes, POLICY_OR_BANNER)
        )

    def _is_boilerplate(self, tag: str, attributes: Attributes) -> bool:
        if tag in NEVER or self._is_struck(tag, attributes):
            return True
        if self._boilerplate or tag in WHOLE:
            return False
        return bool(
            (tag in BOILERPLATE and not (tag == "button" and self._begins_heading()))
            or (tag == "aside" and not self._inside and not _is_note(attributes))
            or (tag == "a" and _changes_language(attributes))
            or attributes.get("role") in ROLES
            or "hidden" in attributes
            or attributes.get("aria-hidden") == "true"
            or HIDING.search(attributes.get("style", ""))
            or self._is_named(tag, attributes, BANNER)
        )

    def _is_struck(self, tag: str, attributes: Attributes) -> bool:
        """Whether text is struck through, and therefore not valid any more. Code is read as it is."""
        return not (self._lines_kept or self._in_code or tag in WHOLE) and (
            tag in STRUCK or bool(STRIKING.search(attributes.get("style", "")))
        )

    def _begins_heading(self) -> bool:
        """Whether the text of a heading has not begun: a button is then the heading, and opens its section.

        After text, it belongs to the page, such as one that copies the heading's address.
        """
        return bool(self._heading) and not "".join(self._words).strip()

    def _is_named(self, tag: str, attributes: Attributes, names: re.Pattern[str]) -> bool:
        """Whether the id or class of an element has one of these names, except headings.

        Ids of sections and of parts of the main text are ignored: generators derive them from headings.
        """
        classes = attributes.get("class", "")
        is_text = (
            self._inside or self._heading or tag in ("section", "article") or "section" in classes.split()
        )
        named = classes if is_text else f"{attributes.get('id', '')} {classes}"
        return tag not in HEADINGS and bool(names.search(named))

    def _skip_ends(self, tag: str) -> bool:
        """Stop skipping if this start tag implicitly ends the skipped element; returns whether it does."""
        if not self._inner and tag in ENDING.get(self._skipped, ()):
            self._skipped = ""
        return not self._skipped

    def _nests(self, tag: str) -> bool:
        """Whether the end of the skipped element can only be after the end of this element inside it."""
        if self._skipped == "p" or self._skipped in INLINE:
            return (tag in SEPARATE and tag not in VOID) or tag == self._skipped
        return tag in PARENTS if self._skipped in SIBLINGS else tag == self._skipped

    def _is_skipped(self, tag: str) -> bool:
        """Whether an end tag belongs to the skipped element or is inside it.

        The end tag of the element around the skipped one ends both.
        """
        nests = self._nests(tag)
        if nests and self._inner_names[tag]:
            closed = ""
            while closed != tag:  # the elements inside this one have no end tags
                closed = self._inner.pop()
                self._inner_names[closed] -= 1
            return True
        is_own = tag == self._skipped and not (self._inner and tag in SIBLINGS)
        if is_own or nests:
            self._skipped = ""
            is_long = self._skipped_characters > BANNER_CHARACTERS
            is_policy = self._may_be_policy and self._has_heading and (is_long or not self._has_link)
            self.is_about_cookies = self.is_about_cookies or is_policy
            return is_own
        return True

    def _break(self, tag: str) -> None:
        if self._heading and tag in BLOCKS and not (self._has_blocks or "".join(self._words).strip()):
            self._has_blocks = True
        if self._grid is not None or tag == "br" or (self._has_blocks and tag in BLOCKS):
            self._words.append("\n" if self._lines_kept else " ")
        else:
            self._flush()

    def _end_list(self, tag: str) -> None:
        if tag in LISTS and self._lists and self._lists[-1].tag == tag:
            self._lists.pop()
        if tag in LISTS or tag == "li":
            self._bullet = ""  # of an item without text

    def _end_term(self) -> None:
        """Keep the term of a definition list for its definition: “- term: definition”."""
        self._in_term = False
        term = " ".join("".join(self._words).split()).rstrip(":")
        if 0 < len(term) <= TERM_CHARACTERS and not self._heading and not self._lines_kept:
            self._term = self._last_term = f"{self._term}, {term}" if self._term else term
            self._words.clear()
        else:
            self._flush()
            self._last_term = ""

    def _write_term(self, form: str) -> None:
        """Add the term that waits for its definition, if any, as a paragraph of its own."""
        if self._term:
            self.outline.paragraph(form.format(self._term))
            self._term = ""

    def _flush_outside_table(self) -> None:
        if self._grid is None:
            self._flush()

    def _flush(self) -> None:
        raw = "".join(self._words)
        self._words.clear()
        text = raw.strip("\n") if self._lines_kept else " ".join(raw.split())
        if self._term and (self._heading or (text.strip() and self._bullet)):
            self._write_term("- {}:")
        if self._heading:
            label = "" if self._bullet == BULLET else self._bullet
            self.outline.heading(self._heading, LINK_SIGN.sub("", text).rstrip(), label)
            self._bullet = "" if label and text else self._bullet
        elif text.strip():
            self.outline.paragraph(f"- {self._term}: {text}" if self._term else self._bullet + text)
            self._bullet = self._term = ""
        self._heading, self._has_blocks = 0, False

    def _end_cell(self, caption: bool = False) -> None:
        if self._grid is None:
            self._flush()
            return
        text = " ".join("".join(self._words).split())
        is_bold = not self._is_plain
        self._words.clear()
        self._bold, self._is_plain = [], False
        if caption or not self._grid.is_open:  # captions, and text between cells
            self.outline.paragraph(text)
        else:
            self._grid.fill(text, is_bold=is_bold)

    def _end_table(self) -> None:
        if self._grid:
            self.outline.paragraph(self._grid.text())
        self._grid = None
