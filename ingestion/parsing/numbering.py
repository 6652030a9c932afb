"""The lists of a Word file: bullets, and numbers that are counted as Word counts them."""

from collections import Counter
from xml.etree import ElementTree

from .styles import NumberedAs

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
UNMARKED = "none"
COUNTED = frozenset({"decimal", "decimalZero", "lowerLetter", "upperLetter", "lowerRoman", "upperRoman"})


class Numbering:
    """Gives each paragraph of a list its mark; letters and Roman numbers become plain ones."""

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
        if numbered is None or numbered[0] == "0":  # by 0 a paragraph leaves the list of its style
            return ""
        identifier, level = numbered
        kind = self._kinds.get((self._abstract.get(identifier, ""), str(level)), "bullet")
        if kind == UNMARKED:
            return ""
        if kind not in COUNTED:
            return "- "
        self._counted[numbered] += 1
        for deeper in [key for key in self._counted if key[0] == identifier and key[1] > level]:
            del self._counted[deeper]
        return f"{self._counted[numbered]}. "


def _value(element: ElementTree.Element, name: str) -> str:
    child = element.find(f"{W}{name}")
    return child.get(f"{W}val", "") if child is not None else ""
