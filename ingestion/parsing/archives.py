"""ZIP archives: the files in them, each cited by its path."""

from pathlib import Path

from .containers import Container
from .packages import open_package
from .sections import Contents, Limits, Progress, Unreadable

MAX_FILES = 1_000
# Files that programs add to a person's own files.
BOILERPLATE = ("__MACOSX/", ".DS_Store", "Thumbs.db", "desktop.ini")
NONE_READ = "None of the {count} files in the archive could be read: {reasons}."
REASONS = 3


def read(path: Path, limits: Limits, progress: Progress) -> Contents:
    """The files of an archive in the order of their paths. Raises Unreadable."""
    with open_package(path) as archive:
        members = [
            member
            for member in archive.infolist()
            if not member.is_dir()
            and not member.filename.startswith(BOILERPLATE[0])
            and Path(member.filename).name not in BOILERPLATE
        ]
        if len(members) > MAX_FILES:
            raise Unreadable(f"The archive holds {len(members):,} files; at most {MAX_FILES:,} are read.")
        container = Container(Contents(limits), limits, progress, "file")
        for number, member in enumerate(sorted(members, key=lambda member: member.filename), 1):
            container.add(member.filename, archive.read(member))
            progress(number, len(members))
    contents = container.contents
    if members and not contents.sections:
        reasons = "; ".join(container.left_out[:REASONS])
        raise Unreadable(NONE_READ.format(count=len(members), reasons=reasons))
    if container.left_out:
        contents.add("", None, "", "Not read: " + "; ".join(container.left_out))
    return contents
