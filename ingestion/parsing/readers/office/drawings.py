"""Texts of shapes and diagrams (SmartArt), and data of charts, in Office files."""

import zipfile
from collections.abc import Iterator
from datetime import datetime
from xml.etree import ElementTree

from openpyxl.styles.numbers import is_date_format, is_timedelta_format
from openpyxl.utils.datetime import CALENDAR_MAC_1904, CALENDAR_WINDOWS_1900, from_excel

from chatsite.superscripts import superscript
from ingestion.parsing.packages import xml_part
from ingestion.parsing.readers.tables import CELL_CHARACTERS, row_lines
from ingestion.parsing.sections import clean, one_line, space_for

from .number_formats import GENERAL, formatted_number, formatted_time

A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
D = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
UNSTRUCK = "noStrike"
RUNS = (f"{A}t", f"{A}br", f"{M}t")
MAX_POINTS = 1_000  # categories of a chart
MAX_SERIES = 50
NUMBERS = (f"{C}numCache", f"{C}numLit")
FORMAT_CHARACTERS = 255  # the longest format of Excel


def drawing_text(archive: zipfile.ZipFile, kind: str, part: str, *, with_values: bool = True) -> str:
    """The text of a part of this relationship type; empty if it is neither a diagram nor a chart.

    Without values, the text of a chart is its title.
    """
    if not kind.endswith(("/diagramData", "/chart")):
        return ""
    try:
        root = xml_part(archive, part)
    except (KeyError, ElementTree.ParseError):
        return ""  # the rest of the file can be read without the drawing
    if kind.endswith("/chart"):
        return _chart(root) if with_values else "\n".join(_title(root))
    texts = [" ".join(paragraphs(point)) for point in root.iterfind(f"{D}ptLst/{D}pt/{D}t")]
    return "\n".join(f"- {text}" for text in texts if text)


def paragraphs(element: ElementTree.Element) -> Iterator[str]:
    """The paragraphs with text in a shape, each as one line, without the number of the slide."""
    for paragraph in element.iter(f"{A}p"):
        fields = paragraph.iterfind(f"{A}fld")
        numbers = {part for field in fields if field.get("type") == "slidenum" for part in field}
        properties_of = {
            part: properties
            for run in paragraph.iter(f"{A}r")
            for properties in run.iterfind(f"{A}rPr")
            for part in run
        }
        words = (
            " " if run.tag == f"{A}br" else _run_text(run.text or "", properties_of.get(run))
            for run in paragraph.iter()
            if run.tag in RUNS and run not in numbers
        )
        if text := one_line(clean("".join(words)), CELL_CHARACTERS):
            yield text


def _run_text(text: str, properties: ElementTree.Element | None) -> str:
    if properties is None:
        return text
    if properties.get("strike", UNSTRUCK) != UNSTRUCK:
        return space_for(text)
    is_raised = properties.get("baseline", "0")[:1].isdigit() and properties.get("baseline") != "0"
    return superscript(text) if is_raised else text


def _chart(root: ElementTree.Element) -> str:
    """The title of a chart, and its values as a table with a row for each category."""
    calendar = root.find(f"{C}date1904")
    epoch = CALENDAR_WINDOWS_1900
    if calendar is not None and calendar.get("val", "1") in ("1", "true"):
        epoch = CALENDAR_MAC_1904
    names = [""]
    categories: dict[int, str] = {}
    columns: list[dict[int, str]] = []
    for series in list(root.iter(f"{C}ser"))[:MAX_SERIES]:
        names.append(" ".join(_values(series.find(f"{C}tx"), epoch).values()))
        for tag in ("cat", "xVal"):
            categories |= _values(series.find(f"{C}{tag}"), epoch)
        for tag in ("val", "yVal"):
            if (values := series.find(f"{C}{tag}")) is not None:
                columns.append(_values(values, epoch))
                break
        else:
            columns.append({})
    points = sorted(set(categories).union(*columns))[:MAX_POINTS]
    rows = [[categories.get(point, ""), *(column.get(point, "") for column in columns)] for point in points]
    lines = [line for row in rows for line in row_lines(names, row)]
    return "\n".join([*_title(root), *lines])


def _title(chart: ElementTree.Element) -> Iterator[str]:
    title = chart.find(f"{C}chart/{C}title")
    return paragraphs(title) if title is not None else iter(())


def _values(element: ElementTree.Element | None, epoch: datetime) -> dict[int, str]:
    """The stored values by their indexes, numbers in their formats.

    If categories have several levels, only the innermost is used.
    """
    if element is None:
        return {}
    levels = list(element.iter(f"{C}lvl"))
    numbers = next((cache for cache in element.iter() if cache.tag in NUMBERS), None)
    number_format = numbers.findtext(f"{C}formatCode", GENERAL) if numbers is not None else ""
    found = {}
    for point in (levels[0] if levels else element).iter(f"{C}pt"):
        place = point.get("idx", "")
        if place.isdecimal() and len(place) < len(str(MAX_POINTS)) + 3:
            text = point.findtext(f"{C}v") or ""
            if numbers is not None:
                text = _number(text, point.get("formatCode", number_format)[:FORMAT_CHARACTERS], epoch)
            found[int(place)] = one_line(text, CELL_CHARACTERS)
    return found


def _number(text: str, number_format: str, epoch: datetime) -> str:
    """A stored number or date in its format, without the rounding error of its binary form."""
    try:
        number = float(text)
        if is_date_format(number_format):
            is_duration = is_timedelta_format(number_format)
            value = from_excel(number, epoch, timedelta=is_duration)
            return formatted_time(value, number_format)
        if number_format in ("", GENERAL):
            return f"{number:.10g}"
        return formatted_number(number, number_format)
    except (ValueError, ArithmeticError):
        return text
