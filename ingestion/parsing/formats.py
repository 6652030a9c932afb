"""The supported formats by file extension, and checks that a file matches its extension."""

import zipfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from .encodings import encoding_of
from .sections import (
    Limits,
    Unreadable,
)

Family = Literal[
    "pdf", "word", "slides", "sheets", "web", "markup", "csv", "json", "text", "image",
    "odt", "ods", "odp", "rtf", "epub", "old", "mail", "outlook", "calendar", "archive",
]  # fmt: skip
OPEN = "application/vnd.oasis.opendocument"
OFFICE = "application/vnd.openxmlformats-officedocument"


@dataclass(frozen=True, slots=True)
class Format:
    """A file format: `name` is shown to people."""

    family: Family
    name: str
    media_type: str


PDF = Format("pdf", "PDF", "application/pdf")
WORD = Format("word", "Word", f"{OFFICE}.wordprocessingml.document")
SLIDES = Format("slides", "PowerPoint", f"{OFFICE}.presentationml.presentation")
SHEETS = Format("sheets", "Excel", f"{OFFICE}.spreadsheetml.sheet")
WEB = Format("web", "HTML", "text/html")
MARKUP = Format("markup", "Markdown", "text/markdown")
CSV = Format("csv", "CSV", "text/csv")
TABS = Format("csv", "TSV", "text/tab-separated-values")
JSON = Format("json", "JSON", "application/json")
RECORDS = Format("json", "JSON", "application/x-ndjson")
TEXT = Format("text", "plain text", "text/plain")
PNG = Format("image", "image", "image/png")
JPEG = Format("image", "image", "image/jpeg")
TIFF = Format("image", "image", "image/tiff")
OPEN_TEXT = Format("odt", "OpenDocument text", f"{OPEN}.text")
OPEN_SHEETS = Format("ods", "OpenDocument spreadsheet", f"{OPEN}.spreadsheet")
OPEN_SLIDES = Format("odp", "OpenDocument presentation", f"{OPEN}.presentation")
RICH_TEXT = Format("rtf", "rich text", "application/rtf")
BOOK = Format("epub", "EPUB", "application/epub+zip")
OLD_WORD = Format("old", "Word 97", "application/msword")
OLD_SHEETS = Format("old", "Excel 97", "application/vnd.ms-excel")
OLD_SLIDES = Format("old", "PowerPoint 97", "application/vnd.ms-powerpoint")
MAIL = Format("mail", "e-mail", "message/rfc822")
OUTLOOK = Format("outlook", "Outlook message", "application/vnd.ms-outlook")
CALENDAR = Format("calendar", "calendar", "text/calendar")
ARCHIVE = Format("archive", "ZIP archive", "application/zip")

FORMATS = {
    ".pdf": PDF,
    ".docx": WORD,
    ".pptx": SLIDES,
    ".xlsx": SHEETS,
    ".html": WEB,
    ".htm": WEB,
    ".md": MARKUP,
    ".markdown": MARKUP,
    ".csv": CSV,
    ".tsv": TABS,
    ".json": JSON,
    ".jsonl": RECORDS,
    ".ndjson": RECORDS,
    ".txt": TEXT,
    ".png": PNG,
    ".jpg": JPEG,
    ".jpeg": JPEG,
    ".tif": TIFF,
    ".tiff": TIFF,
    ".odt": OPEN_TEXT,
    ".ods": OPEN_SHEETS,
    ".odp": OPEN_SLIDES,
    ".rtf": RICH_TEXT,
    ".epub": BOOK,
    ".doc": OLD_WORD,
    ".xls": OLD_SHEETS,
    ".ppt": OLD_SLIDES,
    ".eml": MAIL,
    ".msg": OUTLOOK,
    ".ics": CALENDAR,
    ".zip": ARCHIVE,
}
# Media types of files that contain other files, which become parts (see ingestion.indexing.parts).
CONTAINERS = frozenset({MAIL.media_type, OUTLOOK.media_type, ARCHIVE.media_type})
PAGED = frozenset({PDF.media_type})  # media types of files whose pages can be shown as images


def format_of(name: str) -> Format | None:
    """The format for a file name's extension, or None if it is not supported."""
    return FORMATS.get(PurePosixPath(name).suffix.lower())


def format_names() -> list[str]:
    """The distinct names of all formats, in the order in which they are shown."""
    return list(dict.fromkeys(kind.name for kind in FORMATS.values()))


def ending_of(name: str) -> str:
    return PurePosixPath(name).suffix.lower()


def ending_for(name: str, media_type: str) -> str:
    """The extension for reading a file of this media type.

    This is the extension of the name if it fits the media type, otherwise one that does. The name does not
    fit if it is already that of a replacement file in another format, which has not been read yet.
    """
    ending = ending_of(name)
    if ending in FORMATS and FORMATS[ending].media_type == media_type:
        return ending
    return next((each for each, kind in FORMATS.items() if kind.media_type == media_type), ending)


HEAD_BYTES = 4_096
MEMBERS = 10_000
RATIO = 200  # highest ratio of unpacked to packed size; XML rarely exceeds 50
RATIO_FROM_BYTES = 50_000_000
ENCRYPTED_FLAG = 0x1
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
MAIN_PARTS = {"word": "word/", "slides": "ppt/", "sheets": "xl/"}
OPEN_FAMILIES = frozenset(["odt", "ods", "odp"])
IMAGE = "an image"
SIGNATURES = {
    b"%PDF-": "a PDF",
    b"PK\x03\x04": "a ZIP archive or an Office file",
    OLE: "an old Office file",
    b"\x89PNG": IMAGE,
    b"\xff\xd8\xff": IMAGE,
    b"GIF8": IMAGE,
    b"II*\x00": IMAGE,
    b"MM\x00*": IMAGE,
    b"\x1f\x8b": "a compressed file",
    b"\x7fELF": "a program",
    b"MZ\x90": "a program",
    b"MZ\x00": "a program",
    b"Rar!": "a compressed file",
    b"7z\xbc\xaf": "a compressed file",
    b"{\\rtf": "a rich-text file",
}
UNOPENED = " It was not opened."
DAMAGED = "The file is damaged or incomplete."
PASSWORD = "The file is password-protected. Save it without a password and add it again."  # noqa: S105


def check(path: Path, expected: Format, limits: Limits) -> None:
    """Raise Unreadable if the file should not be read.

    This is the case if it is empty, damaged, protected or unsafe to unpack, or has the wrong extension.
    """
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    if not head:
        raise Unreadable("The file is empty.")
    actual = next((words for start, words in SIGNATURES.items() if head.startswith(start)), "")
    if expected.family == "pdf":
        if b"%PDF-" not in head[:1_024]:
            raise _mislabelled(expected, actual)
    elif expected.family in MAIN_PARTS:
        _check_office(path, head, expected, actual, limits)
    elif expected.family in OPEN_FAMILIES or expected in (BOOK, ARCHIVE):
        _check_package(path, head, expected, actual, limits)
    elif expected.family in ("old", "outlook"):
        if not head.startswith(OLE):
            raise _mislabelled(expected, actual)
    elif expected == RICH_TEXT:
        if not head.startswith(b"{\\rtf"):
            raise _mislabelled(expected, actual)
    elif expected.family == "image":
        if actual != IMAGE:
            raise _mislabelled(expected, actual)
    elif actual or _binary(head):
        raise _mislabelled(expected, actual)


def _binary(head: bytes) -> bool:
    """Whether a supposed text is binary: it has zero bytes and is neither UTF-16 nor UTF-32."""
    return b"\x00" in head and not encoding_of(head, whole=False).replace("_", "-").startswith(
        ("utf-16", "utf-32")
    )


def _mislabelled(expected: Format, actual: str) -> Unreadable:
    content = f"its content is {actual}" if actual else "its content is something else"
    return Unreadable(f"The name of the file says {expected.name}, but {content}.")


def _check_office(path: Path, head: bytes, expected: Format, actual: str, limits: Limits) -> None:
    if head.startswith(OLE):
        if "EncryptedPackage".encode("utf-16-le") in path.read_bytes():
            raise Unreadable(PASSWORD)
        raise Unreadable("The file is in an old Office format. Save it in the current one and add it again.")
    names = _checked_names(path, head, expected, actual, limits)
    if "[Content_Types].xml" not in names or not any(
        name.startswith(MAIN_PARTS[expected.family]) for name in names
    ):
        raise _mislabelled(expected, "something else")


def _check_package(path: Path, head: bytes, expected: Format, actual: str, limits: Limits) -> None:
    """Check an archive, and the declared type of OpenDocument files and e-books. Raises Unreadable."""
    names = _checked_names(path, head, expected, actual, limits)
    if expected == ARCHIVE:
        return
    kind = b""
    if "mimetype" in names:
        with zipfile.ZipFile(path) as archive, archive.open("mimetype") as part:
            kind = part.read(200)
    elif expected == BOOK and "META-INF/container.xml" in names:
        return
    if not kind.startswith(expected.media_type.encode()):
        raise _mislabelled(expected, "something else")


def _checked_names(path: Path, head: bytes, expected: Format, actual: str, limits: Limits) -> set[str]:
    """The names of an archive's members. Raises Unreadable if unpacking the archive is not safe."""
    if not head.startswith(b"PK"):
        raise _mislabelled(expected, actual)
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError) as error:
        raise Unreadable(DAMAGED) from error
    packed, unpacked = path.stat().st_size, sum(member.file_size for member in members)
    if len(members) > MEMBERS:
        raise Unreadable(f"The file holds {len(members):,} parts; at most {MEMBERS:,} are allowed.{UNOPENED}")
    if unpacked > limits.unpacked_bytes:
        most = f"{limits.unpacked_bytes / 1_000_000:g}"
        raise Unreadable(
            f"The file unpacks to {unpacked / 1_000_000:,.0f} MB; {most} MB are allowed.{UNOPENED}"
        )
    if unpacked > RATIO_FROM_BYTES and unpacked > packed * RATIO:
        times = unpacked // max(packed, 1)
        raise Unreadable(f"The file unpacks to {times:,} times its size; {RATIO} times is allowed.{UNOPENED}")
    # Files in a plain archive are checked one by one when they are read.
    for member in members if expected != ARCHIVE else ():
        if member.flag_bits & ENCRYPTED_FLAG:
            raise Unreadable(PASSWORD)
        parts = member.orig_filename.replace("\\", "/").split("/")
        if ".." in parts or parts[0] == "" or ":" in parts[0] or "\x00" in member.orig_filename:
            raise Unreadable("The file contains names that lead out of it, so it was not opened.")
    return {member.filename for member in members}
