"""The file winmail.dat, in which Outlook sends text and attachments in a proprietary format (MS-OXTNEF)."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from ingestion.parsing.encodings import decode

SIGNATURE = 0x223E_9F78
HEADER_BYTES = 6
BODY, MESSAGE_PROPERTIES = 0x0002_800C, 0x0006_9003
BEGINS_ATTACHMENT, TITLE, DATA, PROPERTIES = 0x0006_9002, 0x0001_8010, 0x0006_800F, 0x0006_9005
CODE_PAGE = 0x0006_9007
HTML_ID, RICH_TEXT_ID, LONG_NAME_ID, SHOWN_NAME_ID, DATA_ID = 0x1013, 0x1009, 0x3707, 0x3001, 0x3701
NAMED_FROM = 0x8000
MULTIPLE = 0x1000
TEXT_8, TEXT, OBJECT, BINARY = 0x1E, 0x1F, 0x0D, 0x102
SIZES = {2: 4, 3: 4, 4: 4, 5: 8, 6: 8, 7: 8, 0xA: 4, 0xB: 4, 0x14: 8, 0x40: 8, 0x48: 16}
OBJECT_ID_BYTES = 16
MAX_ATTRIBUTES = 20_000
MAX_PROPERTIES = 20_000


@dataclass(slots=True)
class TnefContent:
    """The content of the file; `attachments` are (name, bytes), `rich_text` is compressed."""

    text: str = ""
    html: str = ""
    rich_text: bytes = b""
    attachments: list[tuple[str, bytes]] = field(default_factory=list)


def opened(data: bytes) -> TnefContent:
    """Read the intact part of the file. Raises ValueError if it has another format."""
    if _number(data, 0) != SIGNATURE:
        raise ValueError
    found = TnefContent()
    encoding = "cp1252"
    for kind, value in _attributes(data):
        if kind == CODE_PAGE:
            page = _number(value, 0)
            encoding = f"cp{page}" if 1250 <= page <= 1258 else "utf-8" if page == 65001 else "cp1252"
        elif kind == BODY:
            found.text = _text(value, encoding)
        elif kind == MESSAGE_PROPERTIES:
            for name, content, is_wide in _properties(value):
                if name == HTML_ID:
                    found.html = content.decode("utf-16-le", "replace") if is_wide else decode(content)
                elif name == RICH_TEXT_ID:
                    found.rich_text = content
        elif kind == BEGINS_ATTACHMENT:
            found.attachments.append(("attachment", b""))
        elif found.attachments:
            found.attachments[-1] = _with(found.attachments[-1], kind, value, encoding)
    found.attachments = [each for each in found.attachments if each[1]]
    return found


def _with(attachment: tuple[str, bytes], kind: int, value: bytes, encoding: str) -> tuple[str, bytes]:
    """The attachment with one more of its attributes."""
    name, data = attachment
    if kind == TITLE:
        name = _text(value, encoding) or name
    elif kind == DATA:
        data = value
    elif kind == PROPERTIES:
        texts = {}
        for number, content, is_wide in _properties(value):
            if number in (LONG_NAME_ID, SHOWN_NAME_ID):
                texts[number] = (
                    content.decode("utf-16-le", "replace") if is_wide else _text(content, encoding)
                )
            elif number == DATA_ID and content[OBJECT_ID_BYTES:].startswith(SIGNATURE.to_bytes(4, "little")):
                data = content[OBJECT_ID_BYTES:]
        name = texts.get(LONG_NAME_ID) or name or texts.get(SHOWN_NAME_ID, "")
    return name.rstrip("\x00"), data


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The attributes of the message and its attachments, in order."""
    place = HEADER_BYTES
    for _ in range(MAX_ATTRIBUTES):
        if place + 9 > len(data):
            return
        kind, size = _number(data, place + 1), _number(data, place + 5)
        if place + 9 + size > len(data):
            return
        yield kind, data[place + 9 : place + 9 + size]
        place += 9 + size + 2  # two bytes of checksum


def _properties(data: bytes) -> Iterator[tuple[int, bytes, bool]]:
    """Each text or binary value: the number of its property, its bytes, and whether it is UTF-16 text."""
    place = 4
    for _ in range(min(_number(data, 0), MAX_PROPERTIES)):
        kind, number = _number(data, place, 2), _number(data, place + 2, 2)
        place += 4
        if number >= NAMED_FROM:
            by_name = _number(data, place + 16)
            place += 24
            if by_name:
                place += _padded(_number(data, place - 4))
        count = 1
        plain = kind & ~MULTIPLE
        if kind & MULTIPLE or plain in (TEXT_8, TEXT, OBJECT, BINARY):
            count = _number(data, place)
            place += 4
        for _ in range(min(count, MAX_PROPERTIES)):
            if plain in SIZES:
                place += SIZES[plain]
                continue
            if plain not in (TEXT_8, TEXT, OBJECT, BINARY) or place + 4 > len(data):
                return
            size = _number(data, place)
            yield number, data[place + 4 : place + 4 + size], plain == TEXT
            place += 4 + _padded(size)
        if place > len(data):
            return


def _padded(size: int) -> int:
    return (size + 3) // 4 * 4


def _number(data: bytes, place: int, size: int = 4) -> int:
    return int.from_bytes(data[place : place + size], "little")


def _text(data: bytes, encoding: str) -> str:
    return data.decode(encoding, "replace").rstrip("\x00")
