"""Word files: text by heading, with lists numbered as Word numbers them."""

import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from xml.etree import ElementTree

from ingestion.parsing.formats import DAMAGED
from ingestion.parsing.packages import open_package, optional_xml_part
from ingestion.parsing.readers.outline import Outline, is_title
from ingestion.parsing.readers.tables import CELL_CHARACTERS, MOST_SPAN
from ingestion.parsing.sections import Contents, Limits, Unreadable, one_line

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
NumberedAs = tuple[str, int]  # a list's id, and a level in it
UNMARKED = "none"
MAX_COUNTED = frozenset({"decimal", "decimalZero", "lowerLetter", "upperLetter", "lowerRoman", "upperRoman"})


class Numbering:
    """Computes the label of each list item; letters and Roman numerals become digits."""

    def __init__(self, part: ElementTree.Element) -> None:
        kinds = {
            (abstract.get(f"{W}abstractNumId", ""), level.get(f"{W}ilvl", "")): _value(level, "numFmt")
            for abstract in part.iterfind(f"{W}abstractNum")
            for level in abstract.iterfind(f"{W}lvl")
        }
        self._abstract = {
            number.get(f"{W}numId", ""): _value(number, "abstractNumId")
            for number in part.iterfind(f"{W}num")
        }
        self._kinds = kinds
        self._counted: Counter[NumberedAs] = Counter()

    def mark(self, numbered: NumberedAs | None) -> str:
        if numbered is None or numbered[0] == "0":  # 0 removes a paragraph from the list of its style
            return ""
        identifier, level = numbered
        kind = self._kinds.get((self._abstract.get(identifier, ""), str(level)), "bullet")
        if kind == UNMARKED:
            return ""
        if kind not in MAX_COUNTED:
            return "- "
        self._counted[numbered] += 1
        for deeper in [key for key in self._counted if key[0] == identifier and key[1] > level]:
            del self._counted[deeper]
        return f"{self._counted[numbered]}. "


HEADING = re.compile(r"heading ?([1-9])$", re.IGNORECASE)
DEEPEST = 12  # number of inherited styles that are followed: in a damaged file, inheritance may be circular


class Styles:
    """Resolves a paragraph's properties: its own first, then those of its styles."""

    def __init__(self, part: ElementTree.Element) -> None:
        self._styles = {style.get(f"{W}styleId", ""): style for style in part.iterfind(f"{W}style")}

    def level(self, properties: ElementTree.Element | None) -> int | None:
        """0 for a title, 1 to 9 for a heading, None for text.

        Style names are English in every language of Word.
        """
        if properties is None:
            return None
        own = _value(properties, "outlineLvl")
        if own.isdecimal() and int(own) < 9:
            return int(own) + 1
        for identifier, style in self._along(properties):
            name = _value(style, "name") if style is not None else identifier
            if name.lower() == "title":
                return 0
            if found := HEADING.match(name):
                return int(found[1])
            given = _value(style.find(f"{W}pPr"), "outlineLvl") if style is not None else ""
            if given.isdecimal():
                return int(given) + 1 if int(given) < 9 else None
        return None

    def numbered(self, properties: ElementTree.Element | None) -> NumberedAs | None:
        """The list that a paragraph belongs to."""
        if properties is None:
            return None
        styles = [style.find(f"{W}pPr") for _, style in self._along(properties) if style is not None]
        for place in [properties, *styles]:
            numbers = place.find(f"{W}numPr") if place is not None else None
            if numbers is not None and (identifier := _value(numbers, "numId")):
                level = _value(numbers, "ilvl")
                return identifier, int(level) if level.isdecimal() else 0
        return None

    def _along(self, properties: ElementTree.Element) -> list[tuple[str, ElementTree.Element | None]]:
        found: list[tuple[str, ElementTree.Element | None]] = []
        identifier = _value(properties, "pStyle")
        while identifier and len(found) < DEEPEST:
            style = self._styles.get(identifier)
            found.append((identifier, style))
            identifier = _value(style, "basedOn") if style is not None else ""
        return found


def _value(element: ElementTree.Element | None, name: str) -> str:
    child = element.find(f"{W}{name}") if element is not None else None
    return child.get(f"{W}val", "") if child is not None else ""


MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
DC = "{http://purl.org/dc/elements/1.1/}"
# Elements that wrap paragraphs, rows or runs; deleted text is not among them.
AROUND = frozenset(
    {f"{W}{name}" for name in ("sdt", "sdtContent", "ins", "moveTo", "smartTag", "customXml", "hyperlink")}
    | {f"{MC}AlternateContent", f"{MC}Choice"}
)
LEFT_OUT = frozenset({f"{W}del", f"{W}moveFrom", f"{MC}Fallback", f"{W}pPr", f"{W}rPr"})
NOTES = ("footnote", "endnote")
NOTES_BY_REFERENCE = {f"{W}{kind}Reference": kind for kind in NOTES}
BOLD_LEVEL = 9  # level of a heading that is only a bold paragraph
BODY_DEPTH = 2  # nesting depth of w:body in w:document
SIGNS = {f"{W}tab": " ", f"{W}br": "\n", f"{W}cr": "\n", f"{W}noBreakHyphen": "-"}


def read(path: Path, limits: Limits) -> Contents:
    with open_package(path) as archive:
        reader = _Reader(archive, limits)
        mains = (
            relation.get("Target", "").lstrip("/")
            for relation in optional_xml_part(archive, "_rels/.rels")
            if relation.get("Type", "").endswith("/officeDocument")
        )
        reader.blocks(_body(archive, next(mains, "word/document.xml")))
        title = optional_xml_part(archive, "docProps/core.xml").findtext(f"{DC}title") or ""
    return reader.outline.titled(title)


class _Reader:
    """Walks the text and collects its headings, paragraphs and tables."""

    def __init__(self, archive: zipfile.ZipFile, limits: Limits) -> None:
        self.outline = Outline(limits)
        self._styles = Styles(optional_xml_part(archive, "word/styles.xml"))
        self._numbering = Numbering(optional_xml_part(archive, "word/numbering.xml"))
        self._notes = {
            (kind, note.get(f"{W}id", "")): _text(note).strip()
            for kind in NOTES
            for note in optional_xml_part(archive, f"word/{kind}s.xml")
        }
        self._told: Counter[tuple[str, str]] = Counter()

    def blocks(self, blocks: Iterable[ElementTree.Element]) -> None:
        for block in blocks:
            if block.tag == f"{W}p":
                self._paragraph(block)
            elif block.tag == f"{W}tbl":
                self.outline.table(list(_rows(block)))
                self._footnotes(block)

    def _paragraph(self, paragraph: ElementTree.Element) -> None:
        text = _text(paragraph)
        if not text.strip():
            return
        properties = paragraph.find(f"{W}pPr")
        level = self._styles.level(properties)
        if level is not None:
            self.outline.heading(level, text)
        elif (mark := self._numbering.mark(self._styles.numbered(properties))) == "" and _bold(
            paragraph, text
        ):
            self.outline.heading(BOLD_LEVEL, text)
        else:
            self.outline.paragraph(mark + text.strip())
        self._footnotes(paragraph)

    def _footnotes(self, block: ElementTree.Element) -> None:
        """Add the footnotes and endnotes to which the block refers; each note only once per document."""
        for element in block.iter():
            kind = NOTES_BY_REFERENCE.get(element.tag)
            note = (kind or "", element.get(f"{W}id", ""))
            if kind and not self._told[note]:
                self._told[note] = 1
                self.outline.paragraph(self._notes.get(note, ""))


def _bold(paragraph: ElementTree.Element, text: str) -> bool:
    """Whether the paragraph is a heading only by being bold."""
    runs = [
        run for run in paragraph.iter(f"{W}r") if any((part.text or "").strip() for part in run.iter(f"{W}t"))
    ]
    if not runs or not is_title(text):
        return False
    marks = [run.find(f"{W}rPr/{W}b") for run in runs]
    return all(mark is not None and mark.get(f"{W}val", "true") not in ("0", "false") for mark in marks)


def _body(archive: zipfile.ZipFile, name: str) -> Iterator[ElementTree.Element]:
    """Yield the blocks of the text, so that a long document is never held in memory as a whole."""
    depth, body = 0, None
    with archive.open(name) as part:
        for event, element in ElementTree.iterparse(part, events=("start", "end")):  # noqa: S314 - as above
            depth += 1 if event == "start" else -1
            if event == "start":
                body = element if element.tag == f"{W}body" and depth == BODY_DEPTH else body
            elif body is not None and depth == BODY_DEPTH:
                # Remove only this block: the parser reads ahead, and may have already added the next ones.
                yield from _inside([element])
                body.remove(element)
    if body is None:
        raise Unreadable(DAMAGED)


def _inside(elements: Iterable[ElementTree.Element]) -> Iterator[ElementTree.Element]:
    """Yield the elements without deleted text, replacing mere wrappers with their children."""
    for child in elements:
        if child.tag in AROUND:
            yield from _inside(child)
        elif child.tag not in LEFT_OUT:
            yield child


def _text(element: ElementTree.Element) -> str:
    words = []
    for child in _inside(element):
        if child.tag in (f"{W}t", f"{M}t"):
            words.append(child.text or "")
        elif child.tag in SIGNS:
            words.append(SIGNS[child.tag])
        else:
            words.append(_text(child))
            if child.tag == f"{W}p":  # a paragraph of a text box, a cell or a footnote
                words.append("\n")
    return "".join(words)


def _rows(table: ElementTree.Element) -> Iterator[list[str]]:
    """The cells by row. A cell over several columns is in the first one; over several rows, in each."""
    above: list[str] = []
    for row in _inside(table):
        if row.tag != f"{W}tr":
            continue
        cells: list[str] = []
        for cell in _inside(row):
            if cell.tag == f"{W}tc":
                merged = cell.find(f"{W}tcPr/{W}vMerge")
                continued = merged is not None and merged.get(f"{W}val", "continue") == "continue"
                text = one_line(_text(cell), CELL_CHARACTERS)
                cells.append(above[len(cells)] if continued and len(cells) < len(above) else text)
                span = cell.find(f"{W}tcPr/{W}gridSpan")
                columns = span.get(f"{W}val", "") if span is not None else ""
                cells += [""] * (min(int(columns), MOST_SPAN) - 1 if columns.isdecimal() else 0)
        above = cells
        yield cells
