"""Compares numbers: whether they are the same, and count the same kind of thing."""

import re
from collections.abc import Sequence

from .clock import CLOCK, same_time
from .lexicon import DIMENSIONS
from .words import Kind, Token, measure

DAY = 86_400.0  # seconds
YEAR_DAYS = (365, 364)  # days in a year, and in 52 weeks
_ORDERS = re.compile(r"first|firstly|erst|zuerst|erstens", re.IGNORECASE)


def orders(text: str, number: Token) -> bool:
    """Whether a number is a word that may only order statements: “First, …”."""
    return bool(_ORDERS.fullmatch(text, number.start, number.end))


def same_number(one: Token, other: Token) -> bool:
    """Whether both have the same value, possibly in different units: two weeks and 14 days."""
    if CLOCK in (DIMENSIONS.get(one.unit), DIMENSIONS.get(other.unit)):
        return same_time(one, other)
    if one.value == other.value:
        if not one.unit and other.unit == "date" and len(other.value) <= 2 < other.end - other.start - 2:
            return False  # the day of a date such as 2024-04-24
        return (
            not (one.unit and other.unit)
            or one.unit == other.unit
            or {one.unit, other.unit} <= {"date", "day"}
        )
    if not (one.unit and other.unit):
        return False
    first, second = measure(one), measure(other)
    if not first or not second:
        return False
    return first == second or _is_about_the_same(first, second) or _is_about_the_same(second, first)


def _is_about_the_same(months: tuple[str, float], time: tuple[str, float]) -> bool:
    """Whether months roughly equal days: 30 days for one month, or 364 or 365 days for twelve."""
    days = time[1] / DAY
    return (months[0], time[0]) == ("month", "second") and (
        days == 30 * months[1] or any(days * 12 == each * months[1] for each in YEAR_DAYS)
    )


def same_kind(one: Token, other: Token) -> bool:
    """Whether both numbers count the same kind of thing, such as a time or an amount of money."""
    return DIMENSIONS.get(one.unit, one.unit) == DIMENSIONS.get(other.unit, other.unit)


def is_one_of(token: Token, own: Sequence[Token]) -> bool:
    """Whether a number is among `own`, the claim's numbers; True for an article that was read as 1."""
    is_article = bool(token.whole) and token.whole != "one"
    return is_article or any(token.value == each.value or same_number(each, token) for each in own)


def amount(number: Token) -> float | None:
    """The value of a number; None for a time of day."""
    try:
        return float(number.value)
    except ValueError:  # a time of day
        return None


def is_of_a_name(found: Sequence[Token], at: int) -> bool:
    """Whether a number is part of a name: “Office 2007”, “Zimmer 2”."""
    before, number = found[at - 1], found[at]
    return (
        before.kind is Kind.NAME
        and not before.value.startswith("month")
        and not number.unit
        and number.start - before.end == 1
    )
