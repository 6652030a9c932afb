"""The styles of a Word file: which of them are headings, and which are lists."""

import re
from xml.etree import ElementTree

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
HEADING = re.compile(r"heading ?([1-9])$", re.IGNORECASE)
DEEPEST = 12  # styles rest on styles; a file in which they do so in a circle is read all the same
NumberedAs = tuple[str, int]  # the list's id, and the level in it


class Styles:
    """Looks at a paragraph's own properties first, then along its styles."""

    def __init__(self, part: ElementTree.Element) -> None:
        self._styles = {style.get(f"{W}styleId", ""): style for style in part.iterfind(f"{W}style")}

    def level(self, properties: ElementTree.Element | None) -> int | None:
        """0 for a title, 1 to 9 for a heading, None for text. Names are English in every language of Word."""
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
