"""Events of calendars (iCalendar, RFC 5545) as text: invitations, and files with calendars."""

import re
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from pathlib import Path

from ingestion.parsing.encodings import decode
from ingestion.parsing.sections import Contents, Limits, Unreadable, one_line

MAX_EVENTS = 200  # of an invitation
MAX_FILE_EVENTS = 50_000
NO_CALENDAR = "The file is not a calendar, or it has no events."
LINE_CHARACTERS = 10_000
FOLD = re.compile(r"\r?\n[ \t]")
TIME = re.compile(r"(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)\d\d(Z?))?")
DURATION = re.compile(
    r"\+?P(?:(\d{1,3})W)?(?:(\d{1,4})D)?(?:T(?:(\d{1,5})H)?(?:(\d{1,6})M)?(?:(\d{1,7})S)?)?"
)
WEEKDAY = re.compile(r"([+-]?\d{1,2})([A-Z]{2})")
PARAMETER = re.compile(r';([A-Za-z-]{1,40})=(?:"([^"]{0,300})"|([^";:,]{0,300}))')
ESCAPED = re.compile(r"\\([\\;,nN])")
MAIL = "mailto:"
CANCELLED = "cancelled"
Property = tuple[str, dict[str, str], str]  # name, parameters, value


def read(path: Path, limits: Limits) -> Contents:
    """Read a file with a calendar; each event is cited by its number. Raises Unreadable."""
    calendar = decode(path.read_bytes())
    contents = Contents(limits, _title(calendar))
    for number, (summary, text) in enumerate(_events(calendar, MAX_FILE_EVENTS), 1):
        contents.add(f"event={number}", None, summary, text)
    if not contents.sections:
        raise Unreadable(NO_CALENDAR)
    return contents


def calendar_text(calendar: str) -> str:
    """The events, each as lines such as "When: …" and "Where: …"."""
    return "\n\n".join(text for _, text in _events(calendar, MAX_EVENTS))


def _title(calendar: str) -> str:
    names = (value for name, _, value in _properties(calendar) if name in ("X-WR-CALNAME", "NAME"))
    return _plain(next(names, ""))


def _events(calendar: str, most: int) -> Iterator[tuple[str, str]]:
    """The name and the text of each event that has text."""
    events: list[list[Property]] = []
    is_taken = is_open = False
    method = ""
    for name, parameters, value in _properties(calendar):
        if (name, value.upper()) == ("BEGIN", "VEVENT"):
            is_taken = is_open = len(events) < most
            events += [[]] if is_taken else []
        elif name in ("BEGIN", "END"):  # after a reminder (VALARM), its event continues
            is_open = name == "END" and value.upper() == "VALARM" and is_taken
        elif is_open:
            events[-1].append((name, parameters, value))
        elif name == "METHOD":
            method = value.upper()
    for event in events:
        summary = next((_plain(value) for name, _, value in event if name == "SUMMARY"), "")
        if text := "\n".join(_event(event, is_cancelled=method == "CANCEL")):
            yield one_line(summary, LINE_CHARACTERS), text


def _properties(calendar: str) -> Iterator[Property]:
    for line in FOLD.sub("", calendar).splitlines():
        parameters: dict[str, str] = {}
        name = line.partition(":")[0].partition(";")[0]
        place = len(name)
        while found := PARAMETER.match(line, place):
            parameters[found[1].upper()] = found[2] or found[3] or ""
            place = found.end()
        if line[place : place + 1] == ":":
            yield name.upper(), parameters, line[place + 1 :].strip()


def _event(properties: list[Property], *, is_cancelled: bool) -> Iterator[str]:
    first = {name: (parameters, value) for name, parameters, value in reversed(properties)}
    text = {name: _plain(value) for name, (_, value) in first.items()}
    is_cancelled = is_cancelled or text.get("STATUS", "").upper() == "CANCELLED"
    people = [_person(parameters, value) for name, parameters, value in properties if name == "ATTENDEE"]
    lines = {
        "Event": text.get("SUMMARY", ""),
        "Status": CANCELLED if is_cancelled else "",
        "When": _when(first),
        "Repeats": _repeats(first["RRULE"][1]) if "RRULE" in first else "",
        "Where": text.get("LOCATION", ""),
        "Organizer": _person(*first["ORGANIZER"]) if "ORGANIZER" in first else "",
        "Participants": ", ".join(filter(None, people)),
    }
    for label, value in lines.items():
        if value:
            yield f"{label}: {one_line(value, LINE_CHARACTERS)}"
    if text.get("DESCRIPTION"):
        yield text["DESCRIPTION"]


def _plain(value: str) -> str:
    return ESCAPED.sub(lambda match: "\n" if match[1] in "nN" else match[1], value).strip()


def _person(parameters: dict[str, str], value: str) -> str:
    address = value[len(MAIL) :] if value.lower().startswith(MAIL) else ""
    name = parameters.get("CN", "")
    return f"{name} <{address}>" if name and address and name != address else name or address


def _when(first: dict[str, tuple[dict[str, str], str]]) -> str:
    """Start and end, with the time zone. All-day events end on the day before their DTEND."""
    if "DTSTART" not in first:
        return ""
    zone = first["DTSTART"][0].get("TZID", "")
    start, end = (_time(first[name][1]) if name in first else "" for name in ("DTSTART", "DTEND"))
    if "DURATION" in first and "DTEND" not in first:
        end = _later(start, first["DURATION"][1])
    if end and len(end) == len("2026-03-02"):
        end = _day_before(end)
    if len(end) == len(start) and end < start:
        end = ""
    if end[:10] == start[:10]:
        end = end[11:]
    if first["DTSTART"][1].endswith("Z"):
        zone = "UTC"
    return " ".join(filter(None, [f"{start} – {end}" if end else start, f"({zone})" if zone else ""]))


def _time(value: str) -> str:
    found = TIME.match(value)
    if not found:
        return ""
    day = f"{found[1]}-{found[2]}-{found[3]}"
    return f"{day} {found[4]}:{found[5]}" if found[4] else day


def _later(start: str, duration: str) -> str:
    """The end of an event, in the form of its start; empty if the duration cannot be read."""
    found = DURATION.fullmatch(duration.upper())
    if not found:
        return ""
    weeks, days, hours, minutes, seconds = (int(number or 0) for number in found.groups())
    length = timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
    try:
        return (datetime.fromisoformat(start) + length).isoformat(" ", "minutes")[: len(start)]
    except (ValueError, OverflowError):
        return ""


def _day_before(day: str) -> str:
    try:
        return (date.fromisoformat(day) - timedelta(days=1)).isoformat()
    except (ValueError, OverflowError):
        return day


def _repeats(rule: str) -> str:
    """A recurrence rule as text, such as "weekly, MO, WE, until 2026-06-30" or "monthly, 1st MO"."""
    parts = dict(part.split("=", 1) for part in rule.upper().split(";") if "=" in part)
    words = [parts.get("FREQ", "").lower()]
    if parts.get("INTERVAL", "1") != "1":
        words.append(f"every {parts['INTERVAL']}")
    days = [parts[name].replace(",", ", ") for name in ("BYDAY", "BYMONTHDAY") if name in parts]
    if days:
        days[0] = WEEKDAY.sub(lambda match: f"{_ordinal(match[1])} {match[2]}", days[0])
        if positions := " and ".join(map(_ordinal, parts.get("BYSETPOS", "").split(","))):
            days[0] = f"{positions} of {days[0]}" if "," in days[0] else f"{positions} {days[0]}"
    words += days
    if "BYMONTH" in parts:
        words.append(f"in month {parts['BYMONTH'].replace(',', ', ')}")
    if "UNTIL" in parts:
        words.append(f"until {_time(parts['UNTIL'])}")
    if "COUNT" in parts:
        words.append(f"{parts['COUNT']} times")
    return ", ".join(filter(None, words))


def _ordinal(position: str) -> str:
    """A position as a word: "1st", "last" or "2nd to last"; other text is returned unchanged."""
    number = position.lstrip("+-")
    if not number.isdecimal():
        return position
    is_teen = number[-2:-1] == "1"
    word = number + ("th" if is_teen else {"1": "st", "2": "nd", "3": "rd"}.get(number[-1], "th"))
    if not position.startswith("-"):
        return word
    return "last" if number == "1" else f"{word} to last"
