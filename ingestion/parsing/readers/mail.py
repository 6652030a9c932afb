"""E-mail messages: MIME (.eml) and Outlook (.msg).

Their attachments become separate documents.
"""

import contextlib
import email
import email.policy
import mimetypes
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.errors import MessageError
from email.message import EmailMessage
from pathlib import Path
from typing import Any, NamedTuple

import olefile

from ingestion.parsing.containers import NOT_A_FORMAT
from ingestion.parsing.encodings import decode
from ingestion.parsing.formats import DAMAGED
from ingestion.parsing.sections import Contents, Limits, Parts, Unreadable, one_line

from .outline import Outline
from .web import chapter

HEADER_CHARACTERS = 20_000
# Characters of a header that the library parses at once; its time grows with the square of the length.
PARSED_CHARACTERS = 2_500
PARSED_SUBJECT = 20_000
RAW_ADDRESSES = 2 * HEADER_CHARACTERS  # characters of a list of addresses, which is parsed piece by piece
MAX_ATTACHMENTS = 200
TOO_MANY = f"only {MAX_ATTACHMENTS} attachments are read"
NAME_CHARACTERS = 150
LOGO_BYTES = 30_000  # bytes; a smaller picture in the text of a message is a logo or an icon
MAX_PARTS = 2_000
TOO_MANY_PARTS = f"only {MAX_PARTS} parts are read"
STUB_SHARE = 2  # plain text with less than half of its HTML alternative's words only refers to the HTML
STUB_MARGIN = 40  # words by which both may differ anyway, because of footers and link URLs
SHOWN_PICTURE = re.compile(r"""cid:([^"'\s>)]{1,300})""", re.IGNORECASE)
ADDRESSES = ("From", "To", "Cc")
FIELDS = (*ADDRESSES, "Date", "Subject")
# Ids of Outlook's properties (see MS-OXPROPS), without their types.
SUBJECT, SENDER, SENDER_ADDRESS, TO, CC, BODY, HTML = "0037", "0C1A", "5D01", "0E04", "0E03", "1000", "1013"
DATA, LONG_NAME, SHORT_NAME, CONTENT_ID = "3701", "3707", "3704", "3712"
SHOWN_NAME = "3001"
TEXT_TYPES = {"001F": "utf-16-le", "001E": "cp1252"}
SENT = 0x0039_0040
PROPERTY_BYTES = 16
PROPERTIES_AFTER = 32  # size of the header before a message's properties
EPOCH = datetime(1601, 1, 1, tzinfo=UTC)


class BoundedPolicy(email.policy.EmailPolicy):
    """Parses only the beginning of long headers.

    Headers that cannot be parsed are returned as they are.
    """

    def header_fetch_parse(self, name: str, value: str) -> Any:
        limit = PARSED_SUBJECT if name.lower() == "subject" else PARSED_CHARACTERS
        if len(value) > limit:
            value = value[:limit].rpartition(" ")[0] or value[:limit]
        try:
            return super().header_fetch_parse(name, value)
        except (ValueError, IndexError, TypeError, AttributeError, MessageError, RecursionError):
            return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


# Keep headers of messages within messages unchanged: folding would parse them.
POLICY = BoundedPolicy(refold_source="none")


class Text(NamedTuple):
    """A part of a message's text; `group` is the number of its group of alternatives, or 0."""

    group: int
    is_html: bool
    text: str


@dataclass(slots=True)
class Message:
    """A message: its header, its texts, and its attachments as (name, bytes)."""

    header: dict[str, str]
    texts: list[Text] = field(default_factory=list)
    html: str = ""  # all HTML, including that of parts with a plain-text alternative
    attachments: list[tuple[str, bytes]] = field(default_factory=list)
    # Parts that were not read, with reasons.
    left_out: list[tuple[str, str]] = field(default_factory=list)


def read_mime(path: Path, limits: Limits, parts: Parts) -> Contents:
    """A MIME message with its attachments. Raises Unreadable."""
    try:
        parsed = email.message_from_bytes(path.read_bytes(), policy=POLICY)
    except (MessageError, ValueError, RecursionError) as error:
        raise Unreadable(DAMAGED) from error
    assert isinstance(parsed, EmailMessage)
    header = {name: _header(parsed, name) for name in FIELDS}
    if not any(header.values()):
        raise Unreadable("The file is not a message: it has no header.")
    message = Message(header)
    pictures: dict[str, tuple[str, bytes]] = {}  # pictures by the id with which the HTML refers to them
    for number, (part, choice) in enumerate(_parts(parsed)):
        if number >= MAX_PARTS:
            message.left_out.append(("further parts", TOO_MANY_PARTS))
            break
        kind = part.get_content_type()
        name = part.get_filename() or ""
        attached = part.get_content_disposition() == "attachment" or bool(name)
        if kind == "message/rfc822":
            inner = part.get_payload()
            if isinstance(inner, list) and inner:
                subject = one_line(_header(inner[0], "Subject"), 100) or "message"
                name = name or subject
                name = name if name.lower().endswith(".eml") else f"{name}.eml"
                message.attachments.append((name, inner[0].as_bytes()))
        elif attached or kind.startswith("image/"):
            name = name or f"attachment{mimetypes.guess_extension(kind) or ''}"
            identifier = str(part.get("Content-ID", "")).strip("<> ")
            if kind.startswith("image/") and identifier:
                pictures[identifier] = name, _bytes(part)
            else:
                message.attachments.append((name, _bytes(part)))
        elif kind == "text/html":
            message.texts.append(Text(choice, True, _text(part)))
        elif kind == "text/plain" or kind.startswith(("multipart/", "message/")):
            message.texts.append(Text(choice, False, _text(part)))
        # Another alternative repeats the text in another format.
        elif not (choice and kind.startswith("text/")):
            message.attachments.append((f"attachment{mimetypes.guess_extension(kind) or ''}", _bytes(part)))
    message.html = "".join(text.text for text in message.texts if text.is_html)
    message.attachments += _without_logos(pictures, message.html)
    return _contents(message, limits, parts)


def read_outlook(path: Path, limits: Limits, parts: Parts) -> Contents:
    """A message saved by Outlook, with its attachments. Raises Unreadable."""
    try:
        with olefile.OleFileIO(path) as file:
            message = _outlook(file)
    except (OSError, ValueError, IndexError, TypeError, AttributeError, RecursionError) as error:
        raise Unreadable(DAMAGED) from error
    return _contents(message, limits, parts)


def _contents(message: Message, limits: Limits, parts: Parts) -> Contents:
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
    for section in body.sections:
        contents.add(section.anchor or "message", None, section.heading, section.text)
    return contents


def _chosen(texts: list[Text], limits: Limits) -> Iterator[tuple[bool, str]]:
    """Yield (whether it is HTML, text) for one text of each group of alternatives.

    The plain text is chosen, unless it is missing or only refers to the HTML.
    """
    fuller = {}  # for each group of alternatives, whether its HTML has much more text
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


def _without_logos(pictures: dict[str, tuple[str, bytes]], html: str) -> list[tuple[str, bytes]]:
    """The pictures, except small ones in the text of the message, which are logos or icons."""
    shown = {match[1] for match in SHOWN_PICTURE.finditer(html)}
    return [
        (name, data)
        for identifier, (name, data) in pictures.items()
        if identifier not in shown or len(data) > LOGO_BYTES
    ]


def _parts(message: Any) -> Iterator[tuple[Any, int]]:
    """The leaf parts of a message, each with the number of its innermost group of alternatives.

    The number is 0 outside of groups. Messages within the message are not split.
    """
    waiting = [(message, 0)]
    choices = 0
    while waiting:
        part, choice = waiting.pop(0)
        if part.is_multipart() and part.get_content_type() != "message/rfc822":
            if part.get_content_type() == "multipart/alternative":
                choices += 1
                choice = choices
            waiting = [*((each, choice) for each in part.get_payload()), *waiting]
        else:
            yield part, choice


def _header(message: Any, name: str) -> str:
    """A field of the header. Addresses are parsed piece by piece; a long list is truncated."""
    if name not in ADDRESSES:
        return str(message.get(name, ""))
    raw = next((str(value) for key, value in message.raw_items() if key.lower() == name.lower()), "")
    pieces = []
    rest = raw[:RAW_ADDRESSES]
    while rest:
        end = len(rest)
        if end > PARSED_CHARACTERS:
            # Split after an address if possible, because a comma can be part of a name.
            after = (rest.rfind(mark, 0, PARSED_CHARACTERS) + len(mark) for mark in (">,", ",", " "))
            end = next((place for place in after if place > len(">,")), PARSED_CHARACTERS)
        pieces.append(str(POLICY.header_fetch_parse(name, rest[:end].strip().removesuffix(","))))
        rest = rest[end:]
    return ", ".join(filter(None, pieces))


def _bytes(part: Any) -> bytes:
    data = part.get_payload(decode=True)
    return data if isinstance(data, bytes) else b""


def _text(part: Any) -> str:
    data = _bytes(part)
    try:
        # Programs declare a wrong encoding; text of other encodings does not look like UTF-8.
        if not data.isascii():
            return data.decode("utf-8")
    except UnicodeDecodeError:
        pass
    try:
        return data.decode(part.get_content_charset() or "ascii")
    except (LookupError, UnicodeDecodeError):
        return decode(data)


def _outlook(file: Any) -> Message:
    sender, address = _property(file, [], SENDER), _property(file, [], SENDER_ADDRESS)
    if address and address != sender:
        sender = f"{sender} <{address}>".strip()

    sent = ""  # the date, from the properties of fixed size
    properties = _stream(file, ["__properties_version1.0"])
    for start in range(PROPERTIES_AFTER, len(properties) - PROPERTY_BYTES + 1, PROPERTY_BYTES):
        if int.from_bytes(properties[start : start + 4], "little") == SENT:
            ticks = int.from_bytes(properties[start + 8 : start + 16], "little")
            with contextlib.suppress(OverflowError):
                sent = (EPOCH + timedelta(microseconds=ticks // 10)).isoformat(" ", "minutes")
            break

    header = {
        "From": sender,
        "To": _property(file, [], TO),
        "Cc": _property(file, [], CC),
        "Date": sent,
        "Subject": _property(file, [], SUBJECT),
    }
    message = Message(header)
    text = _property(file, [], BODY)
    html = _stream(file, [f"__substg1.0_{HTML}0102"])
    message.html = decode(html) if html else _property(file, [], HTML)
    message.texts = [Text(1, False, text), Text(1, True, message.html)]
    folders = sorted({entry[0] for entry in file.listdir() if entry[0].startswith("__attach_version1.0_")})
    pictures: dict[str, tuple[str, bytes]] = {}
    for folder in folders:
        name = _property(file, [folder], LONG_NAME) or _property(file, [folder], SHORT_NAME)
        data = _stream(file, [folder, f"__substg1.0_{DATA}0102"])
        identifier = _property(file, [folder], CONTENT_ID)
        if data and identifier:
            pictures[identifier] = name or "picture", data
        elif data:
            message.attachments.append((name or "attachment", data))
        # The attachment is another message or an embedded object.
        elif file.exists([folder, f"__substg1.0_{DATA}000D"]):
            name = name or _property(file, [folder], SHOWN_NAME) or "attachment"
            message.left_out.append((name, NOT_A_FORMAT))
    message.attachments += _without_logos(pictures, message.html)
    if not any(header.values()) and not text and not message.html:
        raise Unreadable("The file is not a message: it has no header.")
    return message


def _property(file: Any, folder: list[str], number: str) -> str:
    for kind, encoding in TEXT_TYPES.items():
        if data := _stream(file, [*folder, f"__substg1.0_{number}{kind}"]):
            return data.decode(encoding, "replace").rstrip("\x00")
    return ""


def _stream(file: Any, path: list[str]) -> bytes:
    return bytes(file.openstream(path).read()) if file.exists(path) else b""
