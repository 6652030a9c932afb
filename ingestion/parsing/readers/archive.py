"""ZIP archives: extracts their files in the order of their paths."""

import zipfile
from collections.abc import Iterator
from pathlib import Path

from ingestion.parsing.containers import CHUNK_BYTES, MAX_FILES
from ingestion.parsing.formats import ENCRYPTED_FLAG
from ingestion.parsing.packages import open_package
from ingestion.parsing.sections import Contents, Limits, Parts, Progress, Unreadable

# Files that operating systems and programs add to archives.
BOILERPLATE_FOLDER = "__MACOSX/"
BOILERPLATE = (".DS_Store", "Thumbs.db", "desktop.ini")
UTF8_FLAG = 0x800
ENCRYPTED = "it is password-protected"
NONE_READ = "None of the {count} files in the archive could be read: {reasons}."
REASONS = 3


def read(path: Path, limits: Limits, progress: Progress, parts: Parts) -> Contents:
    """Extract the files of an archive, which has no text itself. Raises Unreadable."""
    with open_package(path) as archive:
        members = [
            (name, member)
            for member in archive.infolist()
            if not member.is_dir()
            and not (name := archive_name(member)).startswith(BOILERPLATE_FOLDER)
            and name.rpartition("/")[2] not in BOILERPLATE
        ]
        if len(members) > MAX_FILES:
            raise Unreadable(f"The archive holds {len(members):,} files; at most {MAX_FILES:,} are read.")
        for number, (name, member) in enumerate(sorted(members, key=lambda each: each[0]), 1):
            if member.flag_bits & ENCRYPTED_FLAG:
                parts.leave_out(name, ENCRYPTED)
            else:
                parts.add(name, _chunks(archive, member))
            progress(number, len(members))
    if members and len(parts.left_out) == len(members):
        reasons = "; ".join(parts.left_out[:REASONS])
        raise Unreadable(NONE_READ.format(count=len(members), reasons=reasons))
    return Contents(limits)


def archive_name(member: zipfile.ZipInfo) -> str:
    """The member's name.

    Without the flag for UTF-8, a name should be in cp437, but many programs write UTF-8 anyway.
    """
    if member.flag_bits & UTF8_FLAG or member.filename != member.orig_filename:
        return member.orig_filename if "\x00" in member.orig_filename else member.filename
    try:
        return member.orig_filename.encode("cp437").decode("utf-8")
    except UnicodeError:
        return member.orig_filename


def _chunks(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Iterator[bytes]:
    with archive.open(member) as file:
        while data := file.read(CHUNK_BYTES):
            yield data
