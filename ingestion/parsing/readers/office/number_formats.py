"""Numbers in the formats of spreadsheets, such as `#,##0.00 "kg"` or `[<=9999999]###-####;(###) ###-####`.

Dates are always written year-month-day.
"""

import operator
import re
from datetime import datetime, time, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal

QUOTED = re.compile(r'"([^"]*)"|\\(.)')
CURRENCY = re.compile(r"\[\$([^\[\]-]*)(?:-[^\[\]]*)?\]")
NOTES = re.compile(r"\[[^\[\]]*\]|_.|\*.")  # colours, conditions, and characters that only take up space
# The same as NOTES, except brackets around units of durations, such as [h].
NO_UNITS = re.compile(r"\[(?![hms]+\])[^\[\]]*\]|_.|\*.", re.IGNORECASE)
CONDITION = re.compile(r"\[(<=|>=|<>|<|>|=)(-?\d{1,15}(?:\.\d{1,15})?)\]")
DIGITS = re.compile(r"([#0?][#0?,]*)(?:\.([#0?]+))?,*")
TOKEN = re.compile(r'"[^"]*"|\\.|.')
HOLDS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "<>": operator.ne,
}
MARK = "\ue000"  # replaces quoted characters, which are not placeholders
DECIMALS = 15
CONTEXT = Context(prec=400, rounding=ROUND_HALF_UP)  # enough digits for any float
GENERAL = "General"


def formatted_number(value: float, number_format: str) -> str:
    """A number with the digits, separators and signs of its format; unchanged for unsupported formats."""
    as_it_is = f"{value:.15g}" if isinstance(value, float) else str(value)
    if number_format == GENERAL:
        return as_it_is
    section = _section(value, number_format)
    plain = NOTES.sub("", CURRENCY.sub(lambda match: match[1], section))
    marked = QUOTED.sub(lambda match: MARK * len(match[0]), plain)
    found = DIGITS.search(marked)
    if (
        not found
        and any(map(str.isalnum, _words(plain)))
        and not any(map(str.isalnum, marked.replace(MARK, "")))
    ):
        return _words(plain)  # the format consists of words, such as “yes”
    if not found or "E+" in section or "/" in marked:
        before, general, after = plain.partition(GENERAL)
        return f"{_words(before)}{as_it_is}{_words(after)}" if general else as_it_is
    # A spreadsheet rounds halves away from zero, and has 15 digits.
    scaled = Decimal(f"{abs(value):.15g}").scaleb(2 if "%" in marked else 0, CONTEXT)
    if "," not in marked and len(DIGITS.findall(marked)) > 1:
        text = _filled(scaled, plain if value >= 0 else plain.translate(dict.fromkeys(map(ord, "()-"))))
        return f"-{text}" if value < 0 else text
    decimals = min(len(found[2] or ""), DECIMALS)
    rounded = _rounded(scaled.scaleb(-3 * (len(found[0]) - len(found[0].rstrip(","))), CONTEXT), decimals)
    text = f"{rounded:,f}" if "," in found[0].rstrip(",") else f"{rounded:f}"
    if "#" in (found[2] or ""):
        text = text.rstrip("0").rstrip(".")
    if "," not in found[1]:
        whole, point, rest = text.partition(".")
        text = whole.zfill(min(found[1].count("0"), DECIMALS)) + point + rest
    before, after = _words(plain[: found.start()]), _words(plain[found.end() :])
    after = after.replace("-", "") if value < 0 else after
    sign = "-" if value < 0 and float(text.replace(",", "")) else ""
    return f"{sign}{before.replace('-', '').replace('(', '')}{text}{after.replace(')', '').rstrip()}"


def formatted_time(value: datetime | time | timedelta, number_format: str) -> str:
    """A date, a time of day or a duration in its format.

    A date whose format shows only a time of day is written as that time. Seconds are written if the format
    has them; in a date or a time of day with hours only if they are not 0.
    """
    units = NO_UNITS.sub("", QUOTED.sub("", number_format.partition(";")[0])).lower()
    if isinstance(value, timedelta):
        return _duration(value, units)
    clock = value if isinstance(value, time) else value.time()
    has_hours, has_seconds = "h" in units, "s" in units
    if has_seconds and not has_hours and not clock.hour:
        text = f"{clock.minute:02}:{clock.second:02}"
    else:
        text = clock.isoformat("seconds" if has_seconds and clock.second else "minutes")
    if isinstance(value, time):
        return text
    is_day = any(unit in units for unit in ("y", "d", "mmm")) or not (has_hours or has_seconds)
    if not is_day:
        return text
    return f"{value.date().isoformat()} {text}" if clock != time() else value.date().isoformat()


def _duration(value: timedelta, units: str) -> str:
    total = round(abs(value.total_seconds()))
    minutes, seconds = divmod(total, 60) if "s" in units else (round(abs(value.total_seconds()) / 60), 0)
    if "h" in units or not ("m" in units or "s" in units):
        text = f"{minutes // 60}:{minutes % 60:02}" + (f":{seconds:02}" if "s" in units else "")
    elif "s" in units:
        text = f"{minutes:02}:{seconds:02}" if "m" in units else str(total)
    else:
        text = str(minutes)
    return f"-{text}" if value < timedelta() and text.strip("0:") else text


def _section(value: float, number_format: str) -> str:
    """The part of a format for this number: by its conditions, or else by the number's sign."""
    sections = number_format.split(";")
    conditions = [CONDITION.search(section) for section in sections[:3]]
    if any(conditions):
        for section, condition in zip(sections, conditions, strict=False):
            if not condition or HOLDS[condition[1]](value, float(condition[2])):
                return section
        return GENERAL
    if value < 0 and len(sections) > 1:
        return sections[1]
    if value == 0 and len(sections) > 2 and any(map(str.isalnum, NOTES.sub("", sections[2]))):
        return sections[2]
    return sections[0]


def _words(plain: str) -> str:
    return QUOTED.sub(lambda match: match[1] or match[2] or "", plain)


def _rounded(number: Decimal, decimals: int) -> Decimal:
    return number.quantize(Decimal(1).scaleb(-decimals), context=CONTEXT)


def _filled(number: Decimal, plain: str) -> str:
    """The digits in their places among other characters, as in a telephone number; filled from the right."""
    signs = TOKEN.findall(plain)
    point = signs.index(".") if "." in signs else len(signs)
    decimals = [sign for sign in signs[point:] if sign in "#0?"][:DECIMALS]
    whole, _, rest = f"{_rounded(number, len(decimals)):f}".partition(".")
    digits, places = list(whole), sum(sign in "#0?" for sign in signs[:point])
    filled: list[str] = []
    for sign in reversed(signs[:point]):
        if sign not in "#0?":
            filled.append(_words(sign))
            continue
        places -= 1
        if digits:
            filled.append(digits.pop() if places else "".join(digits))
        elif sign == "0":
            filled.append("0")
    after = "".join(_words(sign) for sign in signs[point + 1 :] if sign not in "#0?")
    return ("".join(reversed(filled)) + (f".{rest}" if rest else "") + after).strip()
