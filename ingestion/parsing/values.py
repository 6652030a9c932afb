"""The values of a sheet's cells as people see them; dates are written year-month-day in every sheet."""

import re
from datetime import date, datetime, time, timedelta
from typing import Any

QUOTED = re.compile(r'"([^"]*)"|\\(.)')
CURRENCY = re.compile(r"\[\$([^\[\]-]*)(?:-[^\[\]]*)?\]")
DIGITS = re.compile(r"([#0?][#0?,]*)(?:\.([0#?]+))?,*")
ERRORS = frozenset(["#N/A", "#REF!", "#VALUE!", "#DIV/0!", "#NAME?", "#NULL!", "#NUM!"])
DECIMALS = 15


def shown(value: Any, number_format: str) -> str:
    """A value in its format; an error of a formula is nothing."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float):
        return _number(value, number_format or "General")
    if isinstance(value, datetime):
        return value.isoformat(" ", "minutes") if value.time() != time() else value.date().isoformat()
    if isinstance(value, time):
        return value.isoformat("minutes")
    if isinstance(value, timedelta):
        minutes = round(value.total_seconds() / 60)
        return f"{minutes // 60}:{minutes % 60:02}"
    text = value.isoformat() if isinstance(value, date) else str(value)
    return "" if text in ERRORS else text


def _number(value: float, number_format: str) -> str:
    """A number with the decimals, separators and signs of its format, where that is a plain one."""
    sections = number_format.split(";")
    section = sections[1] if value < 0 and len(sections) > 1 else sections[0]
    found = DIGITS.search(QUOTED.sub("", CURRENCY.sub("", section)))
    if not found or "E+" in section or "/" in section:
        return _plain(value)
    percent = "%" in section
    decimals = min(len(found[2] or ""), DECIMALS)
    scaled = abs(value) * (100 if percent else 1) / 1_000 ** (len(found[0]) - len(found[0].rstrip(",")))
    text = f"{scaled:,.{decimals}f}" if "," in found[0].rstrip(",") else f"{scaled:.{decimals}f}"
    if "#" in (found[2] or ""):
        text = text.rstrip("0").rstrip(".")
    if "," not in found[1]:
        whole, point, rest = text.partition(".")
        text = whole.zfill(min(found[1].count("0"), DECIMALS)) + point + rest
    before, after = _around(section)
    sign = "-" if value < 0 and float(text.replace(",", "")) else ""
    return f"{sign}{before}{text}{after}"


def _plain(value: float) -> str:
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _around(section: str) -> tuple[str, str]:
    """What the format writes before and after the digits: signs of money, units, per cent."""
    literal = CURRENCY.sub(lambda match: match[1], section)
    literal = re.sub(r"\[[^\[\]]*\]|_.|\*.", "", literal)
    digits = DIGITS.search(QUOTED.sub(lambda match: "\ue000" * len(match[0]), literal))
    if not digits:
        return "", ""
    parts = (literal[: digits.start()], literal[digits.end() :])
    before, after = (QUOTED.sub(lambda match: match[1] or match[2] or "", part) for part in parts)
    return before.replace("-", "").replace("(", ""), after.replace(")", "").rstrip()
