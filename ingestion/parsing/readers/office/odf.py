"""OpenDocument: texts by heading, sheets by cell range, presentations by slide."""

import contextlib
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from xml.etree import ElementTree

from chatsite.superscripts import superscript
from ingestion.parsing.formats import DAMAGED, PASSWORD
from ingestion.parsing.packages import open_package, optional_xml_part
from ingestion.parsing.readers.lone_titles import is_title
from ingestion.parsing.readers.outline import Outline
from ingestion.parsing.readers.tables import (
    CELL_CHARACTERS,
    MAX_COLUMNS,
    NAME_CHARACTERS,
    add_rows,
    column_letters,
    table_text,
)
from ingestion.parsing.sections import Contents, Limits, Unreadable, one_line, space_for
from ingestion.parsing.titles import first_title

from .list_labels import LABEL_CHARACTERS, formatted
from .sheets import COMMENT

URN = "{{urn:oasis:names:tc:opendocument:xmlns:{}:1.0}}".format
TEXT, TABLE, OFFICE, DRAW, STYLE, SHOW, FO, MANIFEST = (
    URN(name) for name in ("text", "table", "office", "drawing", "style", "presentation", "xsl-fo-compatible",
                           "manifest")
)  # fmt: skip
MANIFEST_PART = "META-INF/manifest.xml"
DC = "{http://purl.org/dc/elements/1.1/}"
# Elements that are not text of the document, such as deleted text, comments and tables of contents.
LEFT_OUT = frozenset(
    {f"{TEXT}tracked-changes", f"{OFFICE}annotation", f"{TEXT}sequence-decls", f"{OFFICE}forms"}
    | {
        f"{TEXT}ruby-text",
        f"{TEXT}table-of-content",
        f"{TEXT}bibliography",
        f"{TEXT}alphabetical-index",
        f"{SHOW}notes",
    }
)
AROUND = frozenset(
    {f"{TEXT}section", f"{OFFICE}text", f"{TEXT}numbered-paragraph"}
    # Shapes that are anchored to a page, not to a paragraph.
    | {f"{DRAW}{name}" for name in ("frame", "text-box", "g", "custom-shape")}
)
OUTLINE = "\0outline"  # the key of the headings' style among the styles of lists
COUNTED = ("numbering", "list_20_number")  # prefixes of style names: such lists are numbered by default
KINDS = {"a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman"}
MAX_DIGITS = 9  # numbers in attributes must have fewer digits than this, otherwise they are ignored
XML_ID = "{http://www.w3.org/XML/1998/namespace}id"
SHAPES = ("frame", "g", "custom-shape", "rect", "ellipse", "caption", "line", "path", "polygon")
ATTACHED = frozenset({f"{OFFICE}annotation", *(f"{DRAW}{name}" for name in SHAPES)})
SVG = URN("svg-compatible")
SHAPE_TAGS = frozenset(f"{DRAW}{name}" for name in SHAPES)
# Elements in a paragraph that end a line: shapes, and their paragraphs, titles and descriptions.
ENDING_LINES = SHAPE_TAGS | {f"{TEXT}p", f"{TEXT}h", f"{SVG}title", f"{SVG}desc"}
STYLED = frozenset(f"{TEXT}{name}" for name in ("p", "h", "span", "a"))  # elements with styles of texts
SUPERSCRIPT = re.compile(r"super|[1-9]")  # the text is raised by a share of its height
MAX_REPEATED = 1_000  # how often one element may repeat a row
MAX_DEPTH = 100
# Level of a paragraph that is a heading only because it is bold, or because its style, or the parent of this
# style, is “Heading”.
BOLD_LEVEL = 9


def read_text(path: Path, limits: Limits) -> Contents:
    """Read a text by heading, with lists, tables and footnotes, without deleted text."""
    with _opened(path) as archive:
        root = _content(archive)
        outline = Outline(limits)
        body = root.find(f"{OFFICE}body/{OFFICE}text")
        if body is None:
            raise Unreadable(DAMAGED)
        _Text(outline, root, *_common_styles(archive)).blocks(body)
        outline.find_lone_titles()
        return outline.titled(_title(archive))


def read_sheets(path: Path, limits: Limits) -> Contents:
    """Read the visible sheets with formatted values; every row names its columns."""
    with _opened(path) as archive:
        root = _content(archive)
        hidden = {
            style.get(f"{STYLE}name")
            for style in root.iter(f"{STYLE}style")
            for properties in style.iterfind(f"{STYLE}table-properties")
            if properties.get(f"{TABLE}display") == "false"
        }
        contents = Contents(limits, _title(archive))
        for sheet in root.iterfind(f"{OFFICE}body/{OFFICE}spreadsheet/{TABLE}table"):
            if sheet.get(f"{TABLE}style-name") not in hidden:
                name = sheet.get(f"{TABLE}name", "")
                rows = _numbered_rows(sheet, _sheet_lines)
                add_rows(contents, name, rows, f"sheet={name}", _sheet_notes(sheet))
        return contents


def read_slides(path: Path, limits: Limits) -> Contents:
    """Read a presentation slide by slide, with tables and speaker's notes."""
    with _opened(path) as archive:
        root = _content(archive)
        pages = root.findall(f"{OFFICE}body/{OFFICE}presentation/{DRAW}page")
        pages = pages or root.findall(f"{OFFICE}body/{OFFICE}drawing/{DRAW}page")
        if len(pages) > limits.pages:
            raise Unreadable(f"The file has {len(pages):,} slides; at most {limits.pages:,} are read.")
        contents = Contents(limits, _title(archive), len(pages))
        for number, page in enumerate(pages, 1):
            heading, blocks = "", []
            for frame in page:
                if frame.tag == f"{SHOW}notes":
                    continue
                lines = list(_lines(frame))
                if frame.get(f"{SHOW}class") == "title" and not heading:
                    heading = one_line(" ".join(lines), CELL_CHARACTERS)
                elif (table := frame.find(f"{TABLE}table")) is not None:
                    blocks.append(table_text(_rows(table)))
                elif lines and frame.get(f"{SHOW}class") not in ("date-time", "footer", "page-number"):
                    blocks.append("\n".join(f"- {line}" for line in lines) if len(lines) > 1 else lines[0])
            notes = page.find(f"{SHOW}notes")
            said = [
                line
                for frame in (notes if notes is not None else ())
                if frame.get(f"{SHOW}class") == "notes"
                for line in _lines(frame)
            ]
            if said:
                blocks.append("Notes:" + ("\n" if len(said) > 1 else " ") + "\n".join(said))
            contents.title = first_title(contents.title, heading)
            contents.add(f"slide={number}", number, heading, "\n\n".join(filter(None, [heading, *blocks])))
        return contents


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open the package within the block. Raises Unreadable if it is encrypted or damaged."""
    with open_package(path) as archive:
        manifest = optional_xml_part(archive, MANIFEST_PART)
        if any(part.tag == f"{MANIFEST}encryption-data" for part in manifest.iter()):
            raise Unreadable(PASSWORD)
        yield archive


def _content(archive: zipfile.ZipFile) -> ElementTree.Element:
    """The content of a file, its superscript digits as such and without struck text."""
    root = optional_xml_part(archive, "content.xml")
    properties_of = [
        (style.get(f"{STYLE}name", ""), properties)
        for part in (*_common_styles(archive), root)
        for style in part.iter(f"{STYLE}style")
        for properties in style.iterfind(f"{STYLE}text-properties")
    ]
    raised = {
        name
        for name, properties in properties_of
        if SUPERSCRIPT.match(properties.get(f"{STYLE}text-position", ""))
    }
    lines = {name: properties.get(f"{STYLE}text-line-through-style") for name, properties in properties_of}
    _remove_struck_text(root, {name: line != "none" for name, line in lines.items() if line})
    for span in root.iter(f"{TEXT}span") if raised else ():
        if span.get(f"{TEXT}style-name") in raised and span.text:
            span.text = superscript(span.text)
    return root


def _remove_struck_text(root: ElementTree.Element, styles: dict[str, bool]) -> None:
    """Remove the struck text from a file; `styles` says which styles strike text and which do not."""
    struck: set[ElementTree.Element] = set()  # the elements inside struck ones
    for element in root.iter() if any(styles.values()) else ():
        if element.tag not in STYLED:
            continue
        if styles.get(element.get(f"{TEXT}style-name", ""), element in struck):
            element.text = space_for(element.text or "")
            for child in element:
                child.tail = space_for(child.tail or "")
            struck.update(element)


def _common_styles(archive: zipfile.ZipFile) -> list[ElementTree.Element]:
    """The styles that have names of their own.

    The automatic styles beside them belong to headers and footers; those of the content have the same names.
    """
    return list(optional_xml_part(archive, "styles.xml").iter(f"{OFFICE}styles"))


def _title(archive: zipfile.ZipFile) -> str:
    return optional_xml_part(archive, "meta.xml").findtext(f".//{DC}title") or ""


class _Lists:
    """The styles of lists and headings, and the labels of their items."""

    def __init__(self, parts: Iterable[ElementTree.Element]) -> None:
        self._levels: dict[str, dict[int, ElementTree.Element]] = {}  # by name of the style
        for part in parts:
            for kind in ("list", "outline"):
                for style in part.iter(f"{TEXT}{kind}-style"):
                    name = style.get(f"{STYLE}name", "") if kind == "list" else OUTLINE
                    levels = ((level.get(f"{TEXT}level", ""), level) for level in style)
                    self._levels[name] = {int(at): level for at, level in levels if at.isdecimal()}
        self._counted: dict[str, dict[int, int]] = {OUTLINE: {}}  # by the id of a list, and by its style

    def begin(self, block: ElementTree.Element, style: str) -> dict[int, int]:
        """The last number at each level of the list; shared with the list that it continues, if any."""
        known = self._counted.get(block.get(f"{TEXT}continue-list", ""))
        if known is None and block.get(f"{TEXT}continue-numbering") == "true":
            known = self._counted.get(style)
        counted = {} if known is None else known
        self._counted[style] = self._counted[block.get(XML_ID, style)] = counted
        return counted

    def label(self, style: str, level: int, counted: dict[int, int], item: ElementTree.Element) -> str:
        """The label of the next item, with a space after it; empty if its level has no labels."""
        levels = self._levels.get(style, {})
        own = levels.get(level)
        if own is None or (not own.tag.endswith("-number") and style != OUTLINE):
            number = _next(counted, level, item, 1)  # also of bullets, because the levels below them restart
            return f"{number}. " if style.lower().startswith(COUNTED) else "- "
        _next(counted, level, item, _of_level(own, "start-value"))
        for upper in range(1, level):
            counted.setdefault(upper, _of_level(levels.get(upper, own), "start-value"))
        kind = own.get(f"{STYLE}num-format", "")
        if not kind:
            return ""
        shown = range(max(1, level - _of_level(own, "display-levels") + 1), level + 1)
        numbers = [
            formatted(counted[place], KINDS.get(levels.get(place, own).get(f"{STYLE}num-format", ""), ""))
            for place in shown
            if levels.get(place, own).get(f"{STYLE}num-format")
        ]
        prefix, suffix = own.get(f"{STYLE}num-prefix", ""), own.get(f"{STYLE}num-suffix", "")
        return f"{one_line(prefix + '.'.join(numbers) + suffix, LABEL_CHARACTERS)} "

    def heading(self, block: ElementTree.Element, level: int) -> str:
        """The label of a heading that is not in a list."""
        if block.get(f"{TEXT}is-list-header") == "true" or level not in self._levels.get(OUTLINE, {}):
            return ""
        return self.label(OUTLINE, level, self._counted[OUTLINE], block)


def _of_level(level: ElementTree.Element, name: str) -> int:
    value = level.get(f"{TEXT}{name}", "1")
    return int(value) if value.isdecimal() and len(value) < MAX_DIGITS else 1


def _next(counted: dict[int, int], level: int, item: ElementTree.Element, start: int) -> int:
    """Count the item of a list, and restart the deeper levels; returns the item's number."""
    given = item.get(f"{TEXT}start-value", "")
    following = counted[level] + 1 if level in counted else start
    counted[level] = int(given) if given.isdecimal() and len(given) < MAX_DIGITS else following
    for deeper in [each for each in counted if each > level]:
        del counted[deeper]
    return counted[level]


class _Text:
    """Walks a text and passes its headings, paragraphs and tables to the outline."""

    def __init__(self, outline: Outline, *parts: ElementTree.Element) -> None:
        self._outline = outline
        self._lists = _Lists(parts)
        styles = [style for part in parts for style in part.iter(f"{STYLE}style")]
        self._bold = {
            style.get(f"{STYLE}name")
            for style in styles
            for properties in style.iterfind(f"{STYLE}text-properties")
            if properties.get(f"{FO}font-weight") == "bold"
        }
        # Programs give paragraphs automatic styles, which inherit from named ones.
        self._parents = {
            style.get(f"{STYLE}name", ""): style.get(f"{STYLE}parent-style-name", "") for style in styles
        }

    def blocks(self, parent: Iterable[ElementTree.Element], mark: str | None = None, depth: int = 0) -> None:
        """Read the blocks; `mark` is the label of the list item that they are in, if any."""
        for block in parent if depth < MAX_DEPTH else ():
            if block.tag == f"{TEXT}h":
                given = block.get(f"{TEXT}outline-level", "1")
                level = int(given) if given.isdecimal() else 1
                label = self._lists.heading(block, level) if mark is None else mark
                self._outline.heading(level, _words(block), "" if label == "- " else label)
                self._notes(block)
                mark = "" if mark else mark
            elif block.tag == f"{TEXT}p":
                self._paragraph(block, mark or "")
                mark = "" if mark else mark
            elif block.tag == f"{TEXT}list":
                style = block.get(f"{TEXT}style-name", "")
                self._list(block, style, self._lists.begin(block, style), 1, depth)
            elif block.tag == f"{TABLE}table":
                rows = _numbered_rows(block, self._cell_lines)
                self._outline.table([cells for _, cells in rows])
            elif block.tag in AROUND:
                self.blocks(block, mark, depth + 1)

    def _list(
        self, items: ElementTree.Element, style: str, counted: dict[int, int], level: int, depth: int
    ) -> None:
        for item in items:
            texts = [block for block in item if block.tag != f"{TEXT}list"]
            label = ""
            if texts and item.tag == f"{TEXT}list-item":
                label = self._lists.label(style, level, counted, item)
            for block in item if depth < MAX_DEPTH else ():
                if block.tag == f"{TEXT}list":
                    own = block.get(f"{TEXT}style-name", style)
                    self._list(block, own, counted, level + 1, depth + 1)
                else:
                    self.blocks([block], label, depth + 1)
                    label = ""

    def _cell_lines(self, cell: Iterable[ElementTree.Element]) -> Iterator[str]:
        """The lines of a cell with the numbers of its list items; a bullet would look like a minus sign."""
        for block in cell:
            if block.tag == f"{TEXT}list":
                style = block.get(f"{TEXT}style-name", "")
                yield from self._item_lines(block, style, self._lists.begin(block, style), 1)
            else:
                yield from _lines([block])

    def _item_lines(
        self, items: ElementTree.Element, style: str, counted: dict[int, int], level: int
    ) -> Iterator[str]:
        for item in items if level < MAX_DEPTH else ():
            label = ""
            if item.tag == f"{TEXT}list-item" and any(block.tag != f"{TEXT}list" for block in item):
                label = self._lists.label(style, level, counted, item)
            for block in item:
                if block.tag == f"{TEXT}list":
                    own = block.get(f"{TEXT}style-name", style)
                    yield from self._item_lines(block, own, counted, level + 1)
                    continue
                lines = list(_lines([block]))
                if label not in ("", "- "):
                    lines = [label + "".join(lines[:1]), *lines[1:]]
                    label = ""
                yield from lines

    def _paragraph(self, block: ElementTree.Element, mark: str) -> None:
        text = _words(block)
        name = block.get(f"{TEXT}style-name", "")
        family = {name, self._parents.get(name, "")}
        spans = [child for child in block if child.tag == f"{TEXT}span"]
        bold = name in self._bold or (
            bool(spans)
            and not (block.text or "").strip()
            and all(
                span.get(f"{TEXT}style-name") in self._bold and not (span.tail or "").strip()
                for span in spans
            )
        )
        if "Title" in family:
            self._outline.heading(0, text)
        elif (bold or "Heading" in family) and not mark and is_title(text):
            self._outline.heading(BOLD_LEVEL, text)
        elif text.strip():
            self._outline.paragraph(mark + text.strip())
        self._notes(block)

    def _notes(self, block: ElementTree.Element) -> None:
        for note in block.iter(f"{TEXT}note-body"):
            self._outline.paragraph(_words(note))


def _words(element: ElementTree.Element, depth: int = 0) -> str:
    """The text of an element, without footnotes and content that is not text."""
    words = [element.text or ""]
    for child in element if depth < MAX_DEPTH else ():
        if child.tag == f"{TEXT}s":
            words.append(" ")
        elif child.tag in (f"{TEXT}tab", f"{TEXT}line-break"):
            words.append("\n" if child.tag.endswith("break") else " ")
        elif child.tag not in LEFT_OUT and child.tag != f"{TEXT}note":
            if child.tag in SHAPE_TAGS:
                words.append("\n")
            words.append(
                table_text(_rows(child)) if child.tag == f"{TABLE}table" else _words(child, depth + 1)
            )
            if child.tag in ENDING_LINES:
                words.append("\n")
        words.append(child.tail or "")
    return "".join(words)


def _lines(element: Iterable[ElementTree.Element], depth: int = 0) -> Iterator[str]:
    """Each paragraph in an element as a line that includes its text boxes, followed by its footnotes."""
    for child in element if depth < MAX_DEPTH else ():
        if child.tag in (f"{TEXT}p", f"{TEXT}h"):
            if text := one_line(_words(child), CELL_CHARACTERS):
                yield text
            for note in child.iter(f"{TEXT}note-body"):
                yield from _lines(note, depth + 1)
        elif child.tag not in LEFT_OUT:
            yield from _lines(child, depth + 1)


def _rows(table: ElementTree.Element) -> Iterator[list[str]]:
    return (cells for _, cells in _numbered_rows(table, _lines))


def _sheet_lines(cell: Iterable[ElementTree.Element]) -> Iterator[str]:
    """The lines of a cell of a sheet, without the shapes that are attached to it."""
    return _lines(child for child in cell if child.tag not in ATTACHED)


def _sheet_notes(sheet: ElementTree.Element) -> dict[int, list[str]]:
    """The comments and the texts of shapes of a sheet, by row; 0 for shapes without a cell."""
    notes = {0: [line for shapes in sheet.iterfind(f"{TABLE}shapes") for line in _lines(shapes)]}
    number = 1
    for row in _table_rows(sheet) if any(child.tag in ATTACHED for child in sheet.iter()) else ():
        column = 1
        for cell in row:
            for child in cell:
                lines = (
                    [one_line(" ".join(_lines([child])), CELL_CHARACTERS)] if child.tag in ATTACHED else []
                )
                if child.tag == f"{OFFICE}annotation":
                    text = one_line(" ".join(_lines(child)), CELL_CHARACTERS)
                    lines = (
                        [COMMENT.format(cell=f"{column_letters(column)}{number}", text=text)] if text else []
                    )
                notes.setdefault(number, []).extend(filter(None, lines))
            column += _count(cell, "number-columns-repeated")
        number += _count(row, "number-rows-repeated")
    return notes


def _numbered_rows(
    table: ElementTree.Element, lines_of: Callable[[ElementTree.Element], Iterable[str]]
) -> Iterator[tuple[int, list[str]]]:
    """The number (from 1) and cells of each row with text; `lines_of` gives the lines of a cell.

    Hidden rows are included, because a filter is often left on by accident. A cell that spans several rows is
    repeated in each, except if it also spans columns and is longer than a name.
    """
    above: dict[int, tuple[int, str]] = {}
    number = 1
    for row in _table_rows(table):
        repeated = _count(row, "number-rows-repeated")
        cells: list[str] = []
        # By column, for cells that span following rows: the number of these rows, and the text.
        below = {column: (left - 1, text) for column, (left, text) in above.items() if left > 1}
        for cell in row:
            if cell.tag not in (f"{TABLE}table-cell", f"{TABLE}covered-table-cell"):
                continue
            is_covered = cell.tag == f"{TABLE}covered-table-cell"
            is_continued = is_covered and len(cells) in above
            text = above[len(cells)][1] if is_continued else " ".join(lines_of(cell))
            is_wide = _count(cell, "number-columns-spanned") > 1
            is_repeated = bool(text) and not (is_wide and len(text) > NAME_CHARACTERS)
            if (rows := _count(cell, "number-rows-spanned")) > 1 and is_repeated:
                below[len(cells)] = rows - 1, text
            # Repetitions end at MAX_COLUMNS, but each cell with text is included at least once.
            most = max(1 if text else 0, MAX_COLUMNS - len(cells))
            for place in range(min(_count(cell, "number-columns-repeated"), most)):
                # Each of several covered columns may belong to another cell above.
                is_own = place == 0 or not is_covered
                cells.append(text if is_own else above.get(len(cells), (0, ""))[1])
        while cells and not cells[-1]:
            cells.pop()
        for place in range(min(repeated, MAX_REPEATED) if any(cells) else 0):
            yield number + place, cells
        number += repeated
        above = below


def _table_rows(table: ElementTree.Element) -> Iterator[ElementTree.Element]:
    for child in table:
        if child.tag == f"{TABLE}table-row":
            yield child
        elif child.tag in (f"{TABLE}table-header-rows", f"{TABLE}table-rows", f"{TABLE}table-row-group"):
            yield from _table_rows(child)


def _count(element: ElementTree.Element, name: str) -> int:
    value = element.get(f"{TABLE}{name}", "1")
    return int(value) if value.isdecimal() and len(value) < 9 and int(value) else 1
