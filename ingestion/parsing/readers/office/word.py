"""Word files: text by heading, with lists numbered as Word numbers them."""

import re
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from chatsite.superscripts import superscript
from ingestion.parsing.formats import DAMAGED
from ingestion.parsing.packages import open_package, optional_xml_part, relations
from ingestion.parsing.readers.lone_titles import is_title
from ingestion.parsing.readers.outline import Outline
from ingestion.parsing.readers.tables import CELL_CHARACTERS, MAX_SPAN, table_text
from ingestion.parsing.sections import Contents, Limits, Unreadable, one_line, space_for
from ingestion.parsing.strict_parts import OfficePackage

from .drawings import drawing_text
from .list_labels import LABEL_CHARACTERS, formatted
from .symbol_font import symbol

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
BULLET, UNMARKED = "bullet", "none"  # formats of levels that are counted without showing a number
LABEL_PART = re.compile("%([1-9])")


@dataclass(frozen=True, slots=True)
class NumberedAs:
    """A paragraph's place in a list; the level is None if the paragraph's style determines it."""

    identifier: str
    level: int | None
    style: str


class Numbering:
    """Computes the label of each numbered paragraph as Word shows it, such as `2.1.` or `(b)`."""

    def __init__(self, part: ElementTree.Element) -> None:
        linked = {}
        levels: dict[str, dict[int, ElementTree.Element]] = {}  # by the id of the abstract list
        for abstract in part.iterfind(f"{W}abstractNum"):
            identifier = abstract.get(f"{W}abstractNumId", "")
            levels[identifier] = _levels(abstract.iterfind(f"{W}lvl"))
            if style := _value(abstract, "styleLink"):
                linked[style] = identifier
        same = {
            abstract.get(f"{W}abstractNumId", ""): linked.get(_value(abstract, "numStyleLink"))
            for abstract in part.iterfind(f"{W}abstractNum")
        }
        self._abstract: dict[str, str] = {}
        self._levels: dict[str, dict[int, ElementTree.Element]] = {}  # by the id of the list
        self._restarts: dict[tuple[str, int], int] = {}
        for number in part.iterfind(f"{W}num"):
            identifier, abstract_id = number.get(f"{W}numId", ""), _value(number, "abstractNumId")
            abstract_id = same.get(abstract_id) or abstract_id
            self._abstract[identifier] = abstract_id
            changed = _levels(number.iterfind(f"{W}lvlOverride/{W}lvl"))
            self._levels[identifier] = levels.get(abstract_id, {}) | changed
            for override in number.iterfind(f"{W}lvlOverride"):
                level, start = override.get(f"{W}ilvl", ""), _value(override, "startOverride")
                if level.isdecimal() and start.isdecimal():
                    self._restarts[identifier, int(level)] = int(start)
        self._counted: dict[str, dict[int, int]] = {}  # by the id of the abstract list, and the level

    def mark(self, numbered: NumberedAs | None) -> str:
        """The paragraph's label with a space after it; counts the paragraph."""
        if numbered is None or numbered.identifier == "0":  # 0 removes a paragraph from the list of its style
            return ""
        identifier, level = numbered.identifier, numbered.level
        levels = self._levels.get(identifier, {})
        if level is None:
            of_style = (
                each for each, element in levels.items() if _value(element, "pStyle") == numbered.style
            )
            level = next(of_style, 0)
        if level not in levels:
            return "- "
        counted = self._counted.setdefault(self._abstract.get(identifier, ""), {})
        start = self._restarts.pop((identifier, level), None)
        if start is None:
            start = counted[level] + 1 if level in counted else _start(levels[level])
        for upper in range(level):
            counted.setdefault(upper, _start(levels.get(upper)))
        counted[level] = start
        for deeper in [each for each in counted if each > level]:
            if level < _restarting(levels.get(deeper), deeper):
                del counted[deeper]
        kind = _value(levels[level], "numFmt") or BULLET
        if kind in (BULLET, UNMARKED):
            return "- " if kind == BULLET else ""
        pattern = levels[level].find(f"{W}lvlText")
        text = pattern.get(f"{W}val", "") if pattern is not None else f"%{level + 1}."
        is_legal = levels[level].find(f"{W}isLgl") is not None

        def part(match: re.Match[str]) -> str:
            place = int(match[1]) - 1
            kind = "decimal" if is_legal else _value(levels.get(place), "numFmt")
            return formatted(counted.get(place, 1), kind)

        # an ordinal ends in a period itself
        label = one_line(LABEL_PART.sub(part, text).replace("..", "."), LABEL_CHARACTERS)
        return f"{label} " if label else ""


def _levels(elements: Iterable[ElementTree.Element]) -> dict[int, ElementTree.Element]:
    named = ((element.get(f"{W}ilvl", ""), element) for element in elements)
    return {int(level): element for level, element in named if level in "012345678" and level}


def _start(level: ElementTree.Element | None) -> int:
    start = _value(level, "start")
    return int(start) if start.isdecimal() else 1


def _restarting(level: ElementTree.Element | None, place: int) -> int:
    """The number of upper levels whose items restart this level; 0 if it never restarts."""
    given = _value(level, "lvlRestart")
    return int(given) if given.isdecimal() else place


HEADING = re.compile(r"heading ?([1-9])$", re.IGNORECASE)
OF_CONTENTS = re.compile(r"toc ([1-9]|heading)$", re.IGNORECASE)
DEEPEST = 12  # number of inherited styles that are followed: in a damaged file, inheritance may be circular


class Styles:
    """Resolves a paragraph's properties: its own first, then those of its styles."""

    def __init__(self, part: ElementTree.Element) -> None:
        self._styles = {style.get(f"{W}styleId", ""): style for style in part.iterfind(f"{W}style")}

    def level(self, properties: ElementTree.Element | None) -> int | None:
        """A paragraph's level: 0 for a title, 1 to 9 for a heading, None for text.

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
        level: int | None = None
        for place in [properties, *styles]:
            numbers = place.find(f"{W}numPr") if place is not None else None
            given = _value(numbers, "ilvl")
            if level is None and given.isdecimal():
                level = int(given)
            if identifier := _value(numbers, "numId"):
                if place is properties and level is None:
                    level = 0
                return NumberedAs(identifier, level, _value(properties, "pStyle"))
        return None

    def is_of_contents(self, properties: ElementTree.Element | None) -> bool:
        """Whether a paragraph is a line of a table of contents, or its title.

        Only its own style counts: templates base the styles of unnumbered headings on that of the title.
        """
        style = self._styles.get(_value(properties, "pStyle"))
        return bool(OF_CONTENTS.match(_value(style, "name")))

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
LEFT_OUT = frozenset({f"{W}del", f"{W}moveFrom", f"{MC}Fallback", f"{W}pPr", f"{W}rPr"} | {f"{W}rt"})
NOTES = ("footnote", "endnote")
NOTES_BY_REFERENCE = {f"{W}{kind}Reference": kind for kind in NOTES}
R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
DRAWINGS = {  # elements and the attributes that name the part with their data
    "{http://schemas.openxmlformats.org/drawingml/2006/chart}chart": f"{R}id",
    "{http://schemas.openxmlformats.org/drawingml/2006/diagram}relIds": f"{R}dm",
}
GALLERY, CONTENTS = f"{W}sdtPr/{W}docPartObj", "Table of Contents"
FRACTION = (f"{M}num", f"{M}den")
POWER = (f"{M}e", f"{M}sup")
STRIKES = ("strike", "dstrike")
BOLD_LEVEL = 9  # level of a heading that is only a bold paragraph
BODY_DEPTH = 2  # nesting depth of w:body in w:document
SIGNS = {f"{W}tab": " ", f"{W}ptab": " ", f"{W}br": "\n", f"{W}cr": "\n", f"{W}noBreakHyphen": "-"}


def read(path: Path, limits: Limits) -> Contents:
    with open_package(path, OfficePackage) as archive:
        mains = (
            relation.get("Target", "").lstrip("/")
            for relation in optional_xml_part(archive, "_rels/.rels")
            if relation.get("Type", "").endswith("/officeDocument")
        )
        main = next(mains, "word/document.xml")
        reader = _Reader(archive, main, limits)
        reader.blocks(_body(archive, main))
        title = optional_xml_part(archive, "docProps/core.xml").findtext(f"{DC}title") or ""
    reader.outline.find_lone_titles()
    return reader.outline.titled(title)


class _Reader:
    """Walks the text and collects its headings, paragraphs and tables."""

    def __init__(self, archive: zipfile.ZipFile, main: str, limits: Limits) -> None:
        self.outline = Outline(limits)
        self._archive = archive
        self._relations = relations(archive, main)
        self._styles = Styles(optional_xml_part(archive, "word/styles.xml"))
        self._numbering = Numbering(optional_xml_part(archive, "word/numbering.xml"))
        self._notes = {
            (kind, note.get(f"{W}id", "")): _text(note).strip()
            for kind in NOTES
            for note in optional_xml_part(archive, f"word/{kind}s.xml")
        }
        self._added: set[tuple[str, str]] = set()
        self._open: list[ElementTree.Element] = []  # paragraphs that continue in the next one

    def blocks(self, blocks: Iterable[ElementTree.Element]) -> None:
        for block in blocks:
            if block.tag == f"{W}p":
                properties = block.find(f"{W}pPr")
                if not self._styles.is_of_contents(properties):
                    self._open.append(block)
                    if not _is_end_deleted(properties):
                        self._end_paragraph()
            elif block.tag == f"{W}tbl":
                self._end_paragraph()
                self.outline.table(list(_rows(block, self._cell_text)))
                self._attached(block)
        self._end_paragraph()

    def _end_paragraph(self) -> None:
        """Add the open paragraphs as one, with the properties of the last."""
        parts, self._open = self._open, []
        text = "".join(map(_text, parts))
        properties = parts[-1].find(f"{W}pPr") if parts else None
        mark = self._mark(properties, text)
        if text.strip():
            level = self._styles.level(properties)
            if level is not None:
                self.outline.heading(level, text, "" if mark == "- " else mark)
            elif not mark and all(_bold(part, text) for part in parts if _text(part).strip()):
                self.outline.heading(BOLD_LEVEL, text)
            else:
                self.outline.paragraph(mark + text.strip())
        for part in parts:
            self._attached(part)

    def _mark(self, properties: ElementTree.Element | None, text: str) -> str:
        """The label of a paragraph. Empty paragraphs count, too, unless a tracked change deletes them."""
        if not text.strip() and _is_end_deleted(properties):
            return ""
        return self._numbering.mark(self._styles.numbered(properties))

    def _cell_text(self, cell: ElementTree.Element) -> str:
        """The text of a cell with the numbers of its paragraphs; a bullet would look like a minus sign."""
        words = []
        for block in _inside(cell):
            text = _text(block)
            mark = self._mark(block.find(f"{W}pPr"), text) if block.tag == f"{W}p" else ""
            words.append(text if mark == "- " else mark + text)
        return "\n".join(words)

    def _attached(self, block: ElementTree.Element) -> None:
        """Add the notes, diagrams and charts to which the block refers, each only once in the document."""
        waiting = [block]
        while waiting:
            element = waiting.pop()
            waiting += reversed([*_inside(element)])
            kind = NOTES_BY_REFERENCE.get(element.tag)
            drawing = element.get(DRAWINGS.get(element.tag, ""), "")
            reference = (kind, element.get(f"{W}id", "")) if kind else ("", drawing)
            if not (kind or drawing) or reference in self._added:
                continue
            self._added.add(reference)
            text = self._notes.get(reference, "")
            if drawing in self._relations:
                text = drawing_text(self._archive, *self._relations[drawing])
            self.outline.paragraph(text)


def _is_end_deleted(properties: ElementTree.Element | None) -> bool:
    """Whether a tracked change deletes the end of a paragraph, and so joins it with the next one."""
    return any(
        properties is not None and properties.find(f"{W}rPr/{W}{change}") is not None
        for change in ("del", "moveFrom")
    )


def _bold(paragraph: ElementTree.Element, text: str) -> bool:
    """Whether a paragraph without a heading style is a heading, because all of it is bold."""
    runs = [
        run for run in paragraph.iter(f"{W}r") if any((part.text or "").strip() for part in run.iter(f"{W}t"))
    ]
    if not runs or not is_title(text):
        return False
    return all(_is_on(run.find(f"{W}rPr/{W}b")) for run in runs)


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
    """Yield the elements except deleted text and tables of contents.

    Mere wrappers are replaced by their children.
    """
    for child in elements:
        if child.tag == f"{W}sdt" and _value(child.find(GALLERY), "docPartGallery") == CONTENTS:
            continue
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
        elif child.tag == f"{W}sym":
            words.append(symbol(child.get(f"{W}font", ""), child.get(f"{W}char", "")))
        elif child.tag == f"{W}tbl" and element.tag == f"{W}txbxContent":
            words.append(table_text(list(_rows(child))) + "\n")
        else:
            if child.tag == f"{W}txbxContent":  # the text before a text box is another paragraph
                words.append("\n")
            words.append(_own_text(child))
            if child.tag == f"{W}p":  # a paragraph of a text box, a cell or a footnote
                words.append("\n")
    return "".join(words)


def _own_text(element: ElementTree.Element) -> str:
    """The text of a run, a fraction, a power, or another element that is not itself text."""
    if element.tag == f"{M}f":
        over, under = (_text(part) if part is not None else "" for part in map(element.find, FRACTION))
        return f"{_in_brackets(over)}/{_in_brackets(under)}"
    if element.tag == f"{M}sSup":
        base, power = (_text(part) if part is not None else "" for part in map(element.find, POWER))
        raised = superscript(power)
        return _in_brackets(base) + (raised if raised != power else f"^{_in_brackets(power)}")
    text = _text(element)
    properties = element.find(f"{W}rPr") if element.tag == f"{W}r" else None
    if properties is None:
        return text
    if _is_on(properties.find(f"{W}vanish")):
        return ""
    if any(_is_on(properties.find(f"{W}{name}")) for name in STRIKES):
        return space_for(text)
    position = _value(properties, "position")  # in half points
    is_raised = position.isdecimal() and position != "0"
    return superscript(text) if is_raised or _value(properties, "vertAlign") == "superscript" else text


def _in_brackets(term: str) -> str:
    """A term of a formula that is written in one line, in brackets if it has several parts."""
    return f"({term})" if re.search(r"[-+−·×*/=\s]", term.strip()) else term


def _is_on(mark: ElementTree.Element | None) -> bool:
    """Whether a property such as w:b is present and not switched off."""
    return mark is not None and mark.get(f"{W}val", "true") not in ("0", "false", "off")


def _rows(
    table: ElementTree.Element, text_of: Callable[[ElementTree.Element], str] | None = None
) -> Iterator[list[str]]:
    """The cells of each row; `text_of` gives the text of a cell.

    A cell that spans several columns is in the first one; a cell that spans several rows is in each.
    """
    above: list[str] = []
    for row in _inside(table):
        if row.tag != f"{W}tr" or row.find(f"{W}trPr/{W}del") is not None:  # a deleted row
            continue
        before = _value(row.find(f"{W}trPr"), "gridBefore")  # columns left of the first cell
        cells = [""] * (min(int(before), MAX_SPAN) if before.isdecimal() else 0)
        for cell in _inside(row):
            if cell.tag == f"{W}tc":
                merged = cell.find(f"{W}tcPr/{W}vMerge")
                continued = merged is not None and merged.get(f"{W}val", "continue") == "continue"
                if continued and len(cells) < len(above):
                    cells.append(above[len(cells)])
                else:
                    cells.append(one_line((text_of or _text)(cell), CELL_CHARACTERS))
                span = cell.find(f"{W}tcPr/{W}gridSpan")
                columns = span.get(f"{W}val", "") if span is not None else ""
                cells += [""] * (min(int(columns), MAX_SPAN) - 1 if columns.isdecimal() else 0)
        above = cells
        yield cells
