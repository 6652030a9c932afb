"""Superscript digits: exponents, and marks of footnotes, which must not become part of a number or word.

Readers of files write superscript digits with Unicode's characters for them, which look the same everywhere.
Search and verification leave out all of them except exponents, which are those of units and of powers of ten,
and negative ones.
"""

import re

_RAISED = str.maketrans("0123456789+-−–()", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁻⁽⁾")
_DIGITS = re.compile(r"\s*[-−–+(]?\d{1,3}(?:[\s,;]{1,3}\d{1,3}){0,5}\)?\s*", re.ASCII)
_RUN = re.compile("[⁽⁺⁻]?[⁰¹²³⁴-⁹]+⁾?")
_QUICK = re.compile("[⁰¹²³⁴-⁹]")
_UNIT = re.compile(r"(?:\A|[^A-Za-zÀ-ÿ'’])(?:[cdfhkmnqr]?m|ft|s|N)\Z")  # units that may have an exponent
_UNIT_CHARACTERS = 3
_TEN = re.compile(r"(?:\A|[^\d.,])10\Z")
_POWER = re.compile("[³⁴-⁹]|[¹²³⁴-⁹][⁰¹²³⁴-⁹]")  # of ten; 10¹ and 10² are more often marks of footnotes

_MINUTES = "[⁰¹²³⁴⁵][⁰¹²³⁴-⁹]"
# The minutes of times such as 8³⁰ Uhr and 8³⁰–10⁰⁰ Uhr, and the cents of prices such as 19⁹⁹ €.
_TIME = re.compile(
    rf"(?<![\d.,:])(\d{{1,2}})({_MINUTES})(?=\s?(?:(?:[-–]|bis\b)\s?\d{{1,2}}{_MINUTES}\s?)?Uhr\b)"
)
_PRICE = re.compile(r"(?<![\d.,])(\d{1,2})([⁰¹²³⁴-⁹]{2})(?=\s?(?:€|EUR\b|Euro\b))")
_PLAIN = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")


def superscript(text: str) -> str:
    """The text of a superscript: digits of up to three digits each, with their sign or brackets.

    Others, such as `nd` or `1-3`, are unchanged.
    """
    return text.translate(_RAISED) if _DIGITS.fullmatch(text) else text


def with_minutes_and_cents(text: str) -> str:
    """The text with `8:30 Uhr` for `8³⁰ Uhr`, and `19,99 €` for `19⁹⁹ €`."""
    if text.isascii() or not _QUICK.search(text):
        return text
    text = _TIME.sub(lambda match: f"{match[1]}:{match[2].translate(_PLAIN)}", text)
    return _PRICE.sub(lambda match: f"{match[1]},{match[2].translate(_PLAIN)}", text)


def without_note_marks(text: str) -> str:
    """`text` with spaces for superscript digits that are no exponents. Positions do not change."""
    if text.isascii() or not _QUICK.search(text):
        return text

    def kept(match: re.Match[str]) -> str:
        start = match.start()
        before = text[max(0, start - _UNIT_CHARACTERS) : start]
        is_power = _POWER.fullmatch(match[0]) and _TEN.search(before)
        is_exponent = match[0].startswith("⁻") or is_power or _UNIT.search(before)
        return match[0] if is_exponent else " " * len(match[0])

    return _RUN.sub(kept, text)
