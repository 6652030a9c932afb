"""Does the content keep what the name promises, and is it safe to unpack?"""

import zipfile
from pathlib import Path

from .formats import Format
from .sections import Limits, Unreadable

HEAD_BYTES = 4_096
MEMBERS = 10_000
RATIO = 200  # unpacked to packed; XML rarely passes 50
RATIO_FROM_BYTES = 50_000_000
ENCRYPTED_FLAG = 0x1
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
MAIN_PARTS = {"word": "word/", "slides": "ppt/", "sheets": "xl/"}
SIGNATURES = {
    b"PK\x03\x04": "a ZIP archive or an Office file",
    OLE: "an old Office file",
    b"\x89PNG": "an image",
    b"\xff\xd8\xff": "an image",
    b"GIF8": "an image",
    b"\x1f\x8b": "a compressed file",
    b"\x7fELF": "a program",
    b"MZ\x90": "a program",
    b"{\\rtf": "a rich-text file",
}
DAMAGED = "The file is damaged or incomplete."
PASSWORD = "The file is password-protected. Save it without a password and add it again."  # noqa: S105


def check(path: Path, expected: Format, limits: Limits) -> None:
    """Raise Unreadable where the file is empty, not what its name says, protected, or a trap."""
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    if not head:
        raise Unreadable("The file is empty.")
    actual = _kind(head)
    if expected.family == "pdf":
        if b"%PDF-" not in head[:1_024]:
            raise _mislabelled(expected, actual)
    elif expected.family in MAIN_PARTS:
        _check_office(path, head, expected, actual, limits)
    elif actual or _binary(head):
        raise _mislabelled(expected, actual)


def _kind(head: bytes) -> str:
    if head.startswith(b"%PDF-"):
        return "a PDF"
    return next((words for start, words in SIGNATURES.items() if head.startswith(start)), "")


def _binary(head: bytes) -> bool:
    return b"\x00" in head and not head.startswith((b"\xff\xfe", b"\xfe\xff"))


def _mislabelled(expected: Format, actual: str) -> Unreadable:
    content = f"its content is {actual}" if actual else "its content is something else"
    return Unreadable(f"By its name the file is {expected.name}, but {content}.")


def _check_office(path: Path, head: bytes, expected: Format, actual: str, limits: Limits) -> None:
    if head.startswith(OLE):
        if "EncryptedPackage".encode("utf-16-le") in path.read_bytes():
            raise Unreadable(PASSWORD)
        raise Unreadable("The file is in an old Office format. Save it in the current one and add it again.")
    if not head.startswith(b"PK"):
        raise _mislabelled(expected, actual)
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError) as error:
        raise Unreadable(DAMAGED) from error
    _check_members(members, path.stat().st_size, limits)
    names = {member.filename for member in members}
    if "[Content_Types].xml" not in names or not any(
        name.startswith(MAIN_PARTS[expected.family]) for name in names
    ):
        raise _mislabelled(expected, "something else")


def _check_members(members: list[zipfile.ZipInfo], packed: int, limits: Limits) -> None:
    unpacked = sum(member.file_size for member in members)
    too_dense = unpacked > RATIO_FROM_BYTES and unpacked > packed * RATIO
    if len(members) > MEMBERS or unpacked > limits.unpacked_bytes or too_dense:
        raise Unreadable(
            f"The file unpacks to more than is allowed ({limits.unpacked_bytes / 1_000_000:g} MB),"
            " so it was not opened."
        )
    for member in members:
        if member.flag_bits & ENCRYPTED_FLAG:
            raise Unreadable(PASSWORD)
        parts = member.orig_filename.replace("\\", "/").split("/")
        if ".." in parts or parts[0] == "" or ":" in parts[0] or "\x00" in member.orig_filename:
            raise Unreadable("The file contains names that lead out of it, so it was not opened.")
