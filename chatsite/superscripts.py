"""Superscript digits: exponents, and marks of footnotes, which must not become part of a number or word.

Readers of files write superscript digits with Unicode's characters for them, which look the same everywhere.
Search and verification leave out those that are marks of footnotes.
"""

import re

_RAISED = str.maketrans("0123456789+-−–()", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁻⁽⁾")
_DIGITS = re.compile(r"\s*[-−–+(]?\d{1,3}(?:[\s,;]{1,3}\d{1,3}){0,5}\)?\s*", re.ASCII)
_RUN = re.compile("[⁽⁺⁻]?[⁰¹²³⁴-⁹]+⁾?")
_QUICK = re.compile("[⁰¹²³⁴-⁹]")
_UNIT = re.compile(r"(?:\A|[^A-Za-zÀ-ÿ])[cdkm]?m\Z")  # metres, before the exponent of an area or a volume
_UNIT_CHARACTERS = 3


def superscript(text: str) -> str:
    """The text of a superscript: digits as superscript digits; other texts, such as `nd`, unchanged."""
    return text.translate(_RAISED) if _DIGITS.fullmatch(text) else text


def without_note_marks(text: str) -> str:
    """`text` with a space for each superscript digit, except in units such as m². Positions do not change."""
    if text.isascii() or not _QUICK.search(text):
        return text

    def kept(match: re.Match[str]) -> str:
        start = match.start()
        is_unit = _UNIT.search(text[max(0, start - _UNIT_CHARACTERS) : start])
        return match[0] if is_unit else " " * len(match[0])

    return _RUN.sub(kept, text)
