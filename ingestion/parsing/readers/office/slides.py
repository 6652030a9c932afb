"""PowerPoint files, slide by slide in presentation order, with tables and speaker's notes."""

import posixpath
import zipfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from ingestion.parsing.packages import open_package, optional_xml_part, xml_part
from ingestion.parsing.readers.tables import CELL_CHARACTERS, table_text
from ingestion.parsing.sections import Contents, Limits, Unreadable, clean, one_line
from ingestion.parsing.titles import first_title

A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
DC = "{http://purl.org/dc/elements/1.1/}"
MAIN = "ppt/presentation.xml"
TITLES = frozenset({"title", "ctrTitle"})
BOILERPLATE = frozenset({"dt", "ftr", "sldNum", "hdr", "sldImg"})


def read(path: Path, limits: Limits) -> Contents:
    with open_package(path) as archive:
        slides = xml_part(archive, MAIN).iterfind(f"{P}sldIdLst/{P}sldId")
        shown = [element.get(f"{R}id", "") for element in slides]
        if len(shown) > limits.pages:
            raise Unreadable(f"The file has {len(shown):,} slides; at most {limits.pages:,} are read.")
        targets = _relations(archive, MAIN)
        title = optional_xml_part(archive, "docProps/core.xml").findtext(f"{DC}title") or ""
        contents = Contents(limits, title, len(shown))
        for number, identifier in enumerate(shown, 1):
            part = targets[identifier][1]
            heading, blocks = _slide(xml_part(archive, part).iter())
            for kind, target in _relations(archive, part).values():
                if not kind.endswith("/notesSlide"):
                    continue
                said = "\n".join(_slide(xml_part(archive, target).iter())[1])
                if said:
                    blocks.append("Notes:" + ("\n" if "\n" in said else " ") + said)
            text = "\n\n".join([heading, *blocks] if heading else blocks)
            contents.title = first_title(contents.title, heading)
            contents.add(f"slide={number}", number, heading, text)
    return contents


def _relations(archive: zipfile.ZipFile, part: str) -> dict[str, tuple[str, str]]:
    """Type and target of each relationship of a part, by id; without external targets."""
    folder, name = posixpath.split(part)
    rels = f"{folder}/_rels/{name}.rels"
    if rels not in archive.namelist():
        return {}
    return {
        element.get("Id", ""): (
            element.get("Type", ""),
            posixpath.normpath(posixpath.join("/", folder, element.get("Target", ""))).lstrip("/"),
        )
        for element in xml_part(archive, rels)
        if element.get("TargetMode") != "External"
    }


def _slide(elements: Iterator[ElementTree.Element]) -> tuple[str, list[str]]:
    """The slide's title, and its other texts and tables in order."""
    heading, blocks = "", []
    for element in elements:
        if element.tag == f"{A}tbl":
            blocks.append(table_text(_rows(element)))
        elif element.tag == f"{P}sp":
            placeholder = element.find(f"{P}nvSpPr/{P}nvPr/{P}ph")
            kind = placeholder.get("type", "") if placeholder is not None else ""
            lines = list(_paragraphs(element))
            if kind in TITLES and not heading:
                heading = one_line("\n".join(lines), CELL_CHARACTERS)
            elif lines and kind not in BOILERPLATE:
                blocks.append("\n".join(f"- {line}" for line in lines) if len(lines) > 1 else lines[0])
    return heading, [block for block in blocks if block]


def _rows(table: ElementTree.Element) -> Iterator[list[str]]:
    """The cells by row; a cell that spans several rows is repeated in each."""
    above: list[str] = []
    for row in table.iterfind(f"{A}tr"):
        cells: list[str] = []
        for cell in row.iterfind(f"{A}tc"):
            continued = cell.get("vMerge") in ("1", "true") and len(cells) < len(above)
            cells.append(above[len(cells)] if continued else "\n".join(_paragraphs(cell)))
        above = cells
        yield cells


def _paragraphs(element: ElementTree.Element) -> Iterator[str]:
    for paragraph in element.iter(f"{A}p"):
        words = (
            run.text or "" if run.tag == f"{A}t" else " "
            for run in paragraph.iter()
            if run.tag in (f"{A}t", f"{A}br")
        )
        if text := one_line(clean("".join(words)), CELL_CHARACTERS):
            yield text
