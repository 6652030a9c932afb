"""Parses times of day: 9am, 09:00, 9 Uhr, half past nine, halb zehn.

“9:30” may be in the morning or in the evening; such times have a special unit (HALF_CLOCK).
"""

import re

from . import lexicon
from .words import Kind, Token

CLOCK = "clock"  # the unit of an unambiguous time
HALF_CLOCK = "clock12"  # the unit of a time that may be before or after noon
HALF_DAY = 720  # minutes

_DIGITS = re.compile(r"(\d{1,2})(?:[:.](\d{2}))?")
_SPOKEN = re.compile(
    r"(?:(?P<half>half)[ \u00a0]past|(?P<quarter>quarter)[ \u00a0](?P<side>past|to)"
    r"|(?P<halb>halb)|(?P<viertel>viertel)[ \u00a0](?P<seite>nach|vor))[ \u00a0](?P<hour>\w{1,12})\b",
    re.IGNORECASE,
)
_HOUR = re.compile(r"(?P<hour>\w{1,12})[ \u00a0](?:(?P<clock>o['’]clock)|uhr)\b", re.IGNORECASE)
_NAMED = {"noon": 720, "midday": 720, "midnight": 0, "mitternacht": 0}
CLOCK_WORDS = frozenset((*lexicon.ONES, *_NAMED, "half", "quarter", "halb", "viertel"))


def clock_time(text: str, start: int, end: int) -> Token:
    """The token for a time that begins with digits."""
    match = _DIGITS.match(text)
    hours, minutes = (int(match[1]), int(match[2] or 0)) if match else (0, 0)
    rest = text[match.end() :].strip(" .\u00a0").casefold() if match else ""
    if rest[:1] in ("a", "p"):
        return _token(hours % 12 * 60 + minutes + (HALF_DAY if rest[0] == "p" else 0), CLOCK, start, end)
    # “9:30” may be in the evening; “09:30”, “13:30” and “9 Uhr” are unambiguous.
    is_half = rest.startswith("o") or (not rest and 0 < hours <= 12 and not text.startswith("0"))
    return _token(hours * 60 + minutes, HALF_CLOCK if is_half else CLOCK, start, end)


def spoken_time(text: str, folded: str, start: int) -> Token | None:
    """The token for a time in words; None if there is none at `start`."""
    if folded in _NAMED:
        return _token(_NAMED[folded], CLOCK, start, start + len(folded))
    match = _SPOKEN.match(text, start)
    if match and (hour := _hour(match["hour"])) is not None:
        side = (match["side"] or match["seite"] or "").casefold()
        past = -30 if match["halb"] else 30 if match["half"] else 15 if side in ("past", "nach") else -15
        return _token(hour * 60 + past, HALF_CLOCK, start, match.end())
    match = _HOUR.match(text, start)
    if match and (hour := _hour(match["hour"])) is not None:
        return _token(hour * 60, HALF_CLOCK if match["clock"] else CLOCK, start, match.end())
    return None


def same_time(one: Token, other: Token) -> bool:
    """Whether two numbers are the same time; a number without a unit counts as an hour."""
    first, second = minutes_of(one), minutes_of(other)
    if first is None or second is None:
        return False
    if one.unit == other.unit == CLOCK:
        return first == second
    return first % HALF_DAY == second % HALF_DAY


def minutes_of(number: Token) -> int | None:
    hours, colon, minutes = number.value.partition(":")
    if not colon:
        return int(hours) * 60 if not number.unit and hours.isdigit() and int(hours) <= 24 else None
    return int(hours) * 60 + int(minutes)


def _hour(word: str) -> int | None:
    folded = word.casefold()
    hour = int(folded) if folded.isascii() and folded.isdigit() else lexicon.ONES.get(folded)
    return hour if hour is not None and 0 <= hour <= 24 else None


def _token(minutes: int, unit: str, start: int, end: int) -> Token:
    minutes %= 2 * HALF_DAY
    return Token(Kind.NUMBER, f"{minutes // 60}:{minutes % 60:02}", start, end, unit)
