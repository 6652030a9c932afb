"""Opens workbooks whose styles openpyxl rejects, with only the styles that the reader needs.

openpyxl checks each font, fill, border and named style, and refuses the whole file for a mistake in one of
them. The reader only needs number formats and bold type.
"""

from collections.abc import Iterator
from typing import IO, Any
from xml.etree import ElementTree

from openpyxl.reader.excel import ExcelReader

from ingestion.parsing.strict_parts import OfficePackage

STYLES = "xl/styles.xml"
S = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFF = frozenset(["0", "false", "off"])
REFUSALS = (ValueError, TypeError, LookupError, AttributeError)


def open_workbook(file: IO[bytes]) -> Any:
    """The workbook, read row by row with stored values of formulas. Raises openpyxl's errors."""
    try:
        return _read(file, OfficePackage)
    except REFUSALS:
        return _read(file, _WithReducedStyles)


def _read(file: IO[bytes], package: type[OfficePackage]) -> Any:
    """The same as `openpyxl.load_workbook`, with this kind of package."""
    reader = ExcelReader(file, read_only=True, data_only=True, keep_links=False)
    reader.archive = package(file)
    reader.read()
    return reader.wb


class _WithReducedStyles(OfficePackage):
    """A package in which the part with the styles contains only number formats and bold type."""

    def read(self, name: Any, pwd: bytes | None = None) -> bytes:
        data = super().read(name, pwd)
        return _reduced(data) if name == STYLES else data


def _reduced(styles: bytes) -> bytes:
    given = ElementTree.fromstring(styles)  # noqa: S314 - expat stops entity bombs; memory is limited
    reduced = ElementTree.Element(f"{{{S}}}styleSheet")
    formats, fonts, fills, borders, named, cells = (
        ElementTree.SubElement(reduced, f"{{{S}}}{name}")
        for name in ("numFmts", "fonts", "fills", "borders", "cellStyleXfs", "cellXfs")
    )
    for each in _children(given, "numFmts"):
        number, code = each.get("numFmtId", ""), each.get("formatCode")
        if number.isdecimal() and code is not None:
            ElementTree.SubElement(formats, f"{{{S}}}numFmt", numFmtId=number, formatCode=code)
    ElementTree.SubElement(fonts, f"{{{S}}}font")
    ElementTree.SubElement(ElementTree.SubElement(fonts, f"{{{S}}}font"), f"{{{S}}}b")
    ElementTree.SubElement(ElementTree.SubElement(fills, f"{{{S}}}fill"), f"{{{S}}}patternFill")
    ElementTree.SubElement(borders, f"{{{S}}}border")
    ElementTree.SubElement(named, f"{{{S}}}xf")
    normal = ElementTree.SubElement(reduced, f"{{{S}}}cellStyles")
    ElementTree.SubElement(normal, f"{{{S}}}cellStyle", name="Normal", xfId="0")
    bold = [_is_bold(font) for font in _children(given, "fonts")]
    for each in _children(given, "cellXfs"):
        number, font = each.get("numFmtId", ""), each.get("fontId", "")
        is_bold = font.isdecimal() and int(font) < len(bold) and bold[int(font)]
        ElementTree.SubElement(
            cells,
            f"{{{S}}}xf",
            numFmtId=number if number.isdecimal() else "0",
            fontId=str(int(is_bold)),
        )
    return ElementTree.tostring(reduced)


def _children(styles: ElementTree.Element, name: str) -> Iterator[ElementTree.Element]:
    """The entries of a list. An entry with alternatives (mc:AlternateContent) counts once."""
    for entry in styles.iterfind(f"{{*}}{name}/*"):
        inside = next((each for each in entry.iter() if _local(each) in ("numFmt", "font", "xf")), None)
        yield entry if inside is None else inside


def _is_bold(font: ElementTree.Element) -> bool:
    mark = font.find("{*}b")
    return mark is not None and mark.get("val", "1").lower() not in OFF


def _local(element: ElementTree.Element) -> str:
    return str(element.tag).rpartition("}")[2]
