"""Messages saved by Outlook (.msg). Attached messages become parts, converted to MIME."""

import base64
import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import olefile

from ingestion.parsing.containers import NOT_A_FORMAT
from ingestion.parsing.encodings import decode
from ingestion.parsing.formats import DAMAGED
from ingestion.parsing.sections import Contents, Limits, Parts, Unreadable, one_line

from .compressed_rtf import compressed_text
from .message import (
    HEADER_CHARACTERS,
    NAME_CHARACTERS,
    NO_HEADER,
    Message,
    Text,
    contents_of,
    without_logos,
)

# Ids of properties (see MS-OXPROPS), in hexadecimal; the ids given as integers include the property's type.
SUBJECT, SENDER, SENDER_ADDRESS, TO, CC = "0037", "0C1A", "5D01", "0E04", "0E03"
BODY, HTML, RICH_TEXT = "1000", "1013", "1009"
DATA, LONG_NAME, SHORT_NAME, CONTENT_ID = "3701", "3707", "3704", "3712"
SHOWN_NAME = "3001"
SENT, CODE_PAGE, INTERNET_CODE_PAGE, LOCALE = 0x0039_0040, 0x3FFD_0003, 0x3FDE_0003, 0x3FF1_0003
PRIMARY_LANGUAGE = 0x3FF  # the bits of a locale's number that identify its language
TRADITIONAL_CHINESE = (0x404, 0xC04, 0x1404)
# Code pages by the number of a language (see MS-LCID). For others, `_encoding_of` uses the message's Internet
# code page.
LANGUAGES = {
    0x01: 1256, 0x02: 1251, 0x04: 936, 0x05: 1250, 0x07: 1252, 0x08: 1253, 0x0D: 1255, 0x0E: 1250, 0x11: 932,
    0x12: 949, 0x15: 1250, 0x18: 1250, 0x19: 1251, 0x1A: 1250, 0x1B: 1250, 0x1E: 874, 0x1F: 1254, 0x22: 1251,
    0x23: 1251, 0x24: 1250, 0x25: 1257, 0x26: 1257, 0x27: 1257, 0x29: 1256, 0x2A: 1258,
}  # fmt: skip
PROPERTIES = "__properties_version1.0"
ATTACHMENT = "__attach_version1.0_"
PROPERTY_BYTES = 16
PROPERTIES_AFTER = 32  # size of the header before a message's properties
PROPERTIES_AFTER_INNER = 24  # the same for a message within another
EPOCH = datetime(1601, 1, 1, tzinfo=UTC)
MAX_INNER = 20  # messages within messages, at all depths
MAX_DEPTH = 3
BOUNDARY = "part-of-a-message-saved-by-outlook"
WORD_CHARACTERS = 15


def read(path: Path, limits: Limits, parts: Parts) -> Contents:
    """A message saved by Outlook, with its attachments. Raises Unreadable."""
    try:
        with olefile.OleFileIO(path) as file:
            message = _Reader(file).message([])
    except (OSError, ValueError, IndexError, TypeError, AttributeError, RecursionError) as error:
        raise Unreadable(DAMAGED) from error
    if not any([*message.header.values(), *(text.text for text in message.texts)]):
        raise Unreadable(NO_HEADER)
    return contents_of(message, limits, parts)


class _Reader:
    """Reads the messages of a file; each is an OLE storage, identified by its path."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._inner = 0
        self._attachments: dict[tuple[str, ...], set[str]] = {}  # by the path of a message
        for entry in file.listdir():
            for depth, name in enumerate(entry[:-1]):
                if name.startswith(ATTACHMENT):
                    self._attachments.setdefault(tuple(entry[:depth]), set()).add(name)

    def message(self, at: list[str]) -> Message:
        numbers = dict(self._numbers(at))
        encoding = _encoding_of(numbers)
        sender, address = (self._text([*at, name], encoding) for name in (SENDER, SENDER_ADDRESS))
        if address and address != sender:
            sender = f"{sender} <{address}>".strip()
        sent = ""
        if SENT in numbers:
            with contextlib.suppress(OverflowError):
                sent = (EPOCH + timedelta(microseconds=numbers[SENT] // 10)).isoformat(" ", "minutes")
        message = Message(
            {
                "From": sender,
                "To": self._text([*at, TO], encoding),
                "Cc": self._text([*at, CC], encoding),
                "Date": sent,
                "Subject": self._text([*at, SUBJECT], encoding),
            }
        )
        html = self._stream([*at, f"__substg1.0_{HTML}0102"])
        message.html = _html(html, numbers) if html else self._text([*at, HTML], encoding)
        plain = self._text([*at, BODY], encoding)
        if not plain.strip() and not message.html.strip():
            plain = compressed_text(self._stream([*at, f"__substg1.0_{RICH_TEXT}0102"]))
        message.texts = [Text(1, False, plain), Text(1, True, message.html)]
        self._add_attachments(message, at, encoding)
        return message

    def _add_attachments(self, message: Message, at: list[str], encoding: str) -> None:
        pictures: dict[str, tuple[str, bytes]] = {}
        for folder in sorted(self._attachments.get(tuple(at), ())):
            place = [*at, folder]
            name = self._text([*place, LONG_NAME], encoding) or self._text([*place, SHORT_NAME], encoding)
            data = self._stream([*place, f"__substg1.0_{DATA}0102"])
            identifier = self._text([*place, CONTENT_ID], encoding)
            inner = [*place, f"__substg1.0_{DATA}000D"]
            if data and identifier:
                pictures[identifier] = name or "picture", data
            elif data:
                message.attachments.append((name or "attachment", data))
            elif (
                self._file.exists([*inner, PROPERTIES])
                and len(at) < MAX_DEPTH * 2
                and self._inner < MAX_INNER
            ):
                self._inner += 1
                attached = self.message(inner)
                subject = one_line(attached.header["Subject"], 100)
                name = (subject or self._text([*place, SHOWN_NAME], encoding) or "message") + ".eml"
                message.attachments.append((name, _mime(attached)))
            elif self._file.exists(inner):  # an embedded object
                name = name or self._text([*place, SHOWN_NAME], encoding) or "attachment"
                message.left_out.append((name, NOT_A_FORMAT))
        message.attachments += without_logos(pictures, message.html)

    def _numbers(self, at: list[str]) -> Iterator[tuple[int, int]]:
        """The ids, with types, and the values of the properties of fixed size."""
        properties = self._stream([*at, PROPERTIES])
        first = PROPERTIES_AFTER_INNER if at else PROPERTIES_AFTER
        for start in range(first, len(properties) - PROPERTY_BYTES + 1, PROPERTY_BYTES):
            property_id = int.from_bytes(properties[start : start + 4], "little")
            yield property_id, int.from_bytes(properties[start + 8 : start + PROPERTY_BYTES], "little")

    def _text(self, path: list[str], encoding: str) -> str:
        *folder, number = path
        for kind, used in (("001F", "utf-16-le"), ("001E", encoding)):
            if data := self._stream([*folder, f"__substg1.0_{number}{kind}"]):
                return data.decode(used, "replace").rstrip("\x00")
        return ""

    def _stream(self, path: list[str]) -> bytes:
        return bytes(self._file.openstream(path).read()) if self._file.exists(path) else b""


def _encoding_of(numbers: dict[int, int]) -> str:
    """The encoding of texts that are not in Unicode."""
    language = LANGUAGES.get(numbers.get(LOCALE, 0) & PRIMARY_LANGUAGE, 0)
    if numbers.get(LOCALE) in TRADITIONAL_CHINESE:
        language = 950
    return _encoding(numbers.get(CODE_PAGE) or language or numbers.get(INTERNET_CODE_PAGE, 0))


def _encoding(code_page: int) -> str:
    """Python's codec for a Windows code page; unknown pages are read as Western European."""
    is_known = 1250 <= code_page <= 1258 or code_page in (874, 932, 936, 949, 950)
    return f"cp{code_page}" if is_known else "cp1252"


def _html(data: bytes, numbers: dict[int, int]) -> str:
    encoding = _encoding(numbers.get(INTERNET_CODE_PAGE, 0))
    if encoding != "cp1252":
        with contextlib.suppress(UnicodeDecodeError):
            return data.decode(encoding)
    return decode(data)


def _mime(message: Message) -> bytes:
    """The message in MIME, written without the standard library, which is slow at folding long headers."""
    lines = [f"{name}: {_words(value)}" for name, value in message.header.items() if value.strip()]
    lines += ["MIME-Version: 1.0", f'Content-Type: multipart/mixed; boundary="{BOUNDARY}"', ""]
    plain, html = message.texts
    if plain.text.strip() or html.text.strip():
        kind, text = ("plain", plain.text) if plain.text.strip() else ("html", html.text)
        lines += _part(f"Content-Type: text/{kind}; charset=utf-8", text.encode("utf-8", "replace"))
    for name, data in message.attachments:
        quoted = quote(one_line(name, NAME_CHARACTERS).encode("utf-8", "replace"))
        disposition = f"Content-Disposition: attachment; filename*=utf-8''{quoted}"
        lines += _part(f"Content-Type: application/octet-stream\n{disposition}", data)
    return "\n".join([*lines, f"--{BOUNDARY}--", ""]).encode()


def _part(header: str, data: bytes) -> list[str]:
    content = base64.encodebytes(data).decode("ascii")
    return [f"--{BOUNDARY}", header, "Content-Transfer-Encoding: base64", "", content]


def _words(text: str) -> str:
    """The value of a header, as encoded words unless it is ASCII."""
    data = one_line(text, HEADER_CHARACTERS)
    pieces = (data[start : start + WORD_CHARACTERS] for start in range(0, len(data), WORD_CHARACTERS))
    encoded = (base64.b64encode(piece.encode("utf-8", "replace")).decode("ascii") for piece in pieces)
    return data if data.isascii() else "\n ".join(f"=?utf-8?b?{piece}?=" for piece in encoded)
