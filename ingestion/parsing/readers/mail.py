"""E-mail messages in MIME (.eml)."""

import codecs
import email
import email.policy
import mimetypes
from collections.abc import Iterator
from email.errors import MessageError
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from ingestion.parsing.encodings import decode, text_encoding
from ingestion.parsing.formats import DAMAGED
from ingestion.parsing.sections import Contents, Limits, Parts, Unreadable, one_line

from . import tnef
from .compressed_rtf import compressed_text
from .message import HEADER_CHARACTERS, NO_HEADER, Message, Text, contents_of, without_logos

# Characters of a header that the library parses at once; the time grows with the square of the length.
PARSED_CHARACTERS = 2_500
PARSED_SUBJECT = 20_000  # the limit for the subject
RAW_ADDRESSES = 2 * HEADER_CHARACTERS  # characters of a list of addresses, which is parsed piece by piece
MAX_PARTS = 2_000
TOO_MANY_PARTS = f"only {MAX_PARTS} parts are read"
ADDRESSES = ("From", "To", "Cc")
FIELDS = (*ADDRESSES, "Date", "Subject")


class BoundedPolicy(email.policy.EmailPolicy):
    """Parses only the beginning of long headers, and detects the encoding of unencoded non-ASCII text.

    A header that cannot be parsed is returned as plain text.
    """

    def header_fetch_parse(self, name: str, value: str) -> Any:
        limit = PARSED_SUBJECT if name.lower() == "subject" else PARSED_CHARACTERS
        if len(value) > limit:
            value = value[:limit].rpartition(" ")[0] or value[:limit]
        if not value.isascii():
            value = decode(value.encode("utf-8", "surrogateescape"))
        try:
            return super().header_fetch_parse(name, value)
        except (ValueError, IndexError, TypeError, AttributeError, MessageError, RecursionError):
            return value


# Do not refold headers of messages within messages, because that would parse the headers.
POLICY = BoundedPolicy(refold_source="none")


def read(path: Path, limits: Limits, parts: Parts) -> Contents:
    """A MIME message with its attachments. Raises Unreadable."""
    try:
        parsed = _parsed(path.read_bytes())
    except (MessageError, ValueError, RecursionError) as error:
        raise Unreadable(DAMAGED) from error
    header = {name: _header(parsed, name) for name in FIELDS}
    if not any(header.values()):
        raise Unreadable(NO_HEADER)
    message = Message(header)
    pictures: dict[str, tuple[str, bytes]] = {}  # pictures by the id with which the HTML refers to them
    for number, (part, choice) in enumerate(_parts(parsed)):
        if number >= MAX_PARTS:
            message.left_out.append(("further parts", TOO_MANY_PARTS))
            break
        kind = part.get_content_type()
        name = part.get_filename() or ""
        attached = part.get_content_disposition() == "attachment" or bool(name)
        if _add_special(message, part, kind, name):
            continue
        if attached or kind.startswith("image/"):
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
        # Leave out other texts in a group of alternatives: they repeat its plain text or HTML.
        elif not (choice and kind.startswith("text/")):
            message.attachments.append((f"attachment{mimetypes.guess_extension(kind) or ''}", _bytes(part)))
    message.html = "".join(text.text for text in message.texts if text.is_html)
    message.attachments += without_logos(pictures, message.html)
    return contents_of(message, limits, parts)


def _parsed(data: bytes) -> EmailMessage:
    # Some programs save messages with a byte order mark or blank lines before the header.
    parsed = email.message_from_bytes(data.removeprefix(codecs.BOM_UTF8).lstrip(), policy=POLICY)
    assert isinstance(parsed, EmailMessage)
    return parsed


def _add_special(message: Message, part: Any, kind: str, name: str) -> bool:
    """Add the part if it is a message, an invitation or winmail.dat; returns whether it is one of these."""
    if kind == "message/rfc822":
        _add_message(message, part, name)
    elif kind == "text/calendar" or name.lower().endswith(".ics"):
        message.calendars.append(_text(part))
    elif kind == "application/ms-tnef" or name.lower() == "winmail.dat":
        _add_tnef(message, name or "winmail.dat", _bytes(part))
    else:
        return False
    return True


def _add_message(message: Message, part: Any, name: str) -> None:
    """Add an attached message."""
    payload = part.get_payload()
    if isinstance(payload, list) and payload:
        inner, data = payload[0], payload[0].as_bytes()
        if _is_encoded(inner, str(part.get("Content-Transfer-Encoding", "")).strip().lower()):
            part.set_payload(data.decode("ascii", "surrogateescape"))
            data = _bytes(part)
            inner = _parsed(data)
        name = name or one_line(_header(inner, "Subject"), 100) or "message"
        name = name if name.lower().endswith(".eml") else f"{name}.eml"
        message.attachments.append((name, data))


def _is_encoded(inner: Any, encoding: str) -> bool:
    """Whether an attached message, which the library parses undecoded, really has the declared encoding.

    The standard forbids such an encoding, and some programs declare it without encoding the message. Encoded
    in base64, a message has no header; in quoted-printable, its boundary is not found.
    """
    return (encoding == "base64" and not inner.keys()) or (
        encoding == "quoted-printable" and not inner.is_multipart()
    )


def _add_tnef(message: Message, name: str, data: bytes) -> None:
    """Add the attachments in a file winmail.dat, and its text if the message has none."""
    try:
        found = tnef.opened(data)
    except ValueError:
        message.attachments.append((name, data))
        return
    message.attachments += found.attachments
    if any(text.text.strip() for text in message.texts):
        return
    if found.text.strip() or not found.html.strip():
        text = found.text if found.text.strip() else compressed_text(found.rich_text)
        message.texts.append(Text(0, False, text))
    else:
        message.texts.append(Text(0, True, found.html))


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
        # Try UTF-8 first: some programs declare a wrong encoding, and text in other encodings is rarely valid
        # UTF-8.
        if not data.isascii():
            return data.decode("utf-8")
    except UnicodeDecodeError:
        pass
    try:
        return data.decode(text_encoding(part.get_content_charset() or "ascii"))
    except (LookupError, UnicodeDecodeError):
        return decode(data)
