"""PowerPoint files by slide, with tables, diagrams, charts and speaker's notes."""

from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from ingestion.parsing.packages import open_package, optional_xml_part, relations, xml_part
from ingestion.parsing.readers.tables import CELL_CHARACTERS, table_text
from ingestion.parsing.sections import Contents, Limits, Unreadable, one_line
from ingestion.parsing.strict_parts import OfficePackage
from ingestion.parsing.titles import first_title

from .drawings import R, drawing_text, paragraphs
from .list_labels import formatted

A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
DC = "{http://purl.org/dc/elements/1.1/}"
MAIN = "ppt/presentation.xml"
TITLES = frozenset({"title", "ctrTitle"})
KINDS = {"alphaLc": "lowerLetter", "alphaUc": "upperLetter", "romanLc": "lowerRoman", "romanUc": "upperRoman"}
BOILERPLATE = frozenset({"dt", "ftr", "sldNum", "hdr", "sldImg"})


def read(path: Path, limits: Limits) -> Contents:
    with open_package(path, OfficePackage) as archive:
        slides = xml_part(archive, MAIN).iterfind(f"{P}sldIdLst/{P}sldId")
        shown = [element.get(f"{R}id", "") for element in slides]
        if len(shown) > limits.pages:
            raise Unreadable(f"The file has {len(shown):,} slides; at most {limits.pages:,} are read.")
        targets = relations(archive, MAIN)
        title = optional_xml_part(archive, "docProps/core.xml").findtext(f"{DC}title") or ""
        contents = Contents(limits, title, len(shown))
        for number, identifier in enumerate(shown, 1):
            part = targets[identifier][1]
            heading, blocks = _slide(xml_part(archive, part).iter())
            related = relations(archive, part).values()
            blocks += filter(None, (drawing_text(archive, kind, target) for kind, target in related))
            for kind, target in related:
                if not kind.endswith("/notesSlide"):
                    continue
                if said := "\n".join(_said(xml_part(archive, target))):
                    blocks.append("Notes:" + ("\n" if "\n" in said else " ") + said)
            text = "\n\n".join([heading, *blocks] if heading else blocks)
            contents.title = first_title(contents.title, heading)
            contents.add(f"slide={number}", number, heading, text)
    return contents


def _slide(elements: Iterator[ElementTree.Element]) -> tuple[str, list[str]]:
    """The slide's title, and its other texts and tables in order."""
    heading, blocks = "", []
    for element in elements:
        if element.tag == f"{A}tbl":
            blocks.append(table_text(_rows(element)))
        elif element.tag == f"{P}sp":
            kind = _placeholder(element)
            lines = list(_labelled(element))
            if kind in TITLES and not heading:
                heading = one_line("\n".join(line for _, line in lines), CELL_CHARACTERS)
            elif lines and kind not in BOILERPLATE:
                bullet = "- " if len(lines) > 1 else ""
                blocks.append("\n".join(f"{label or bullet}{line}" for label, line in lines))
    return heading, [block for block in blocks if block]


def _labelled(shape: ElementTree.Element) -> Iterator[tuple[str, str]]:
    """The paragraphs with text, each with its label, such as `2. `, if it is numbered.

    Numbers continue until a paragraph of the same or a higher level has none, or is numbered differently.
    """
    counted: dict[int, tuple[dict[str, str], int]] = {}  # by level, the numbering and the last number
    for paragraph in shape.iter(f"{A}p"):
        if not (text := " ".join(paragraphs(paragraph))):
            continue  # PowerPoint does not number empty paragraphs
        properties = paragraph.find(f"{A}pPr")
        level, numbered = 0, None
        if properties is not None:
            level = _natural(properties.get("lvl", ""), 0)
            numbered = properties.find(f"{A}buAutoNum")
        numbering = dict(numbered.attrib) if numbered is not None else {}
        last = counted.get(level)
        counted = {upper: value for upper, value in counted.items() if upper < level}
        if not numbering:
            yield "", text
            continue
        start = _natural(numbering.get("startAt", ""), 1)
        number = last[1] + 1 if last and last[0] == numbering else start
        counted[level] = numbering, number
        kind = numbering.get("type", "")
        label = formatted(number, KINDS.get(kind[:7], ""))
        if kind.endswith("ParenBoth"):
            label = f"({label})"
        else:
            label += ")" if kind.endswith("ParenR") else "."
        yield f"{label} ", text


def _natural(text: str, default: int) -> int:
    return int(text) if text.isdecimal() and len(text) < 9 else default


def _said(notes: ElementTree.Element) -> list[str]:
    """The speaker's notes: texts marked as such or, if there are none, all but headers, footers and dates."""
    shapes = list(notes.iter(f"{P}sp"))
    bodies = [shape for shape in shapes if _placeholder(shape) == "body"]
    return _slide(iter(bodies or shapes))[1]


def _placeholder(shape: ElementTree.Element) -> str:
    """The type of a shape's placeholder; empty if it has none."""
    placeholder = shape.find(f"{P}nvSpPr/{P}nvPr/{P}ph")
    return placeholder.get("type", "") if placeholder is not None else ""


def _rows(table: ElementTree.Element) -> Iterator[list[str]]:
    """The cells by row; a cell that spans several rows is repeated in each."""
    above: list[str] = []
    for row in table.iterfind(f"{A}tr"):
        cells: list[str] = []
        for cell in row.iterfind(f"{A}tc"):
            continued = cell.get("vMerge") in ("1", "true") and len(cells) < len(above)
            cells.append(above[len(cells)] if continued else "\n".join(paragraphs(cell)))
        above = cells
        yield cells
