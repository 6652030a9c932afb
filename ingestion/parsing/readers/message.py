"""A message of any format: its header, its texts, and its attachments, which become separate documents."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ingestion.parsing.sections import Contents, Limits, Parts, one_line

from .icalendar import calendar_text
from .outline import Outline
from .web import chapter

HEADER_CHARACTERS = 20_000
MAX_ATTACHMENTS = 200
TOO_MANY = f"only {MAX_ATTACHMENTS} attachments are read"
NO_HEADER = "The file is not a message: it has no header."
NAME_CHARACTERS = 150
LOGO_BYTES = 30_000  # a picture of at most this size in the text of a message is taken for a logo or an icon
# Plain text with less than half of its HTML alternative's words is taken for a mere reference to the HTML.
STUB_SHARE = 2
STUB_MARGIN = 40  # further words that the HTML may have, such as those of a footer
SHOWN_PICTURE = re.compile(r"""cid:([^"'\s>)]{1,300})""", re.IGNORECASE)


class Text(NamedTuple):
    """A part of a message's text; `group` is the number of its group of alternatives, or 0."""

    group: int
    is_html: bool
    text: str


@dataclass(slots=True)
class Message:
    """A message: its header, its texts, its invitations, and its attachments as (name, bytes)."""

    header: dict[str, str]
    texts: list[Text] = field(default_factory=list)
    html: str = ""  # all HTML, including that of parts with a plain-text alternative
    attachments: list[tuple[str, bytes]] = field(default_factory=list)
    calendars: list[str] = field(default_factory=list)  # invitations
    # Parts that were not read, with reasons.
    left_out: list[tuple[str, str]] = field(default_factory=list)


def contents_of(message: Message, limits: Limits, parts: Parts) -> Contents:
    outline = Outline(limits)
    for is_html, text in _chosen(message.texts, limits):
        if is_html:
            chapter(text, outline)
        else:
            for paragraph in text.replace("\r\n", "\n").split("\n\n"):
                outline.paragraph(paragraph)
    body = outline.titled(message.header.get("Subject", ""))
    contents = Contents(limits, message.header.get("Subject", ""))
    attachments = message.attachments[:MAX_ATTACHMENTS]
    for name, data in attachments:
        parts.add(name.replace("\\", "/").rpartition("/")[2], [data])
    for name, _ in message.attachments[MAX_ATTACHMENTS:]:
        parts.leave_out(name, TOO_MANY)
    for name, reason in message.left_out:
        parts.leave_out(name, reason)
    names = ", ".join(one_line(name, NAME_CHARACTERS) for name, _ in attachments)
    header = {**message.header, "Attachments": names, "Not read": "; ".join(parts.left_out)}
    lines = [
        f"{name}: {one_line(value, HEADER_CHARACTERS)}" for name, value in header.items() if value.strip()
    ]
    contents.add("header", None, "", "\n".join(lines))
    for event in dict.fromkeys(map(calendar_text, message.calendars)):
        contents.add("event", None, "", event)
    for section in body.sections:
        contents.add(section.anchor or "message", None, section.heading, section.text)
    return contents


def _chosen(texts: list[Text], limits: Limits) -> Iterator[tuple[bool, str]]:
    """Yield (whether it is HTML, text) for each text, without the rejected alternatives.

    The HTML of a group is rejected, unless the plain text is missing or only refers to the HTML.
    """
    fuller = {}  # for each group of alternatives, whether its HTML has much more text, or the only text
    for group in {text.group for text in texts}:
        plain = sum(len(each.text.split()) for each in texts if each.group == group and not each.is_html)
        html = "".join(each.text for each in texts if each.group == group and each.is_html)
        fuller[group] = not plain
        if plain:
            outline = Outline(limits)
            chapter(html, outline)
            words = sum(len(section.text.split()) for section in outline.close().sections)
            fuller[group] = words > STUB_SHARE * plain + STUB_MARGIN
    for each in texts:
        if not each.group or each.is_html == fuller[each.group]:
            yield each.is_html, each.text


def without_logos(pictures: dict[str, tuple[str, bytes]], html: str) -> list[tuple[str, bytes]]:
    """The pictures, except small ones that the HTML shows: they are taken for logos or icons."""
    shown = {match[1] for match in SHOWN_PICTURE.finditer(html)}
    return [
        (name, data)
        for identifier, (name, data) in pictures.items()
        if identifier not in shown or len(data) > LOGO_BYTES
    ]
