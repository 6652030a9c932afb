"""Lists the files of a folder tree.

Symbolic links are not followed: they could lead to restricted files.
"""

import os
import stat
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path, PurePosixPath

PATH_CHARACTERS = 1000
RIGHTS_FILE = ".chatsite.toml"  # contains the rights of its folder and subfolders (see folder_rights.py)


@dataclass(frozen=True, slots=True)
class TreeFile:
    """A file below the root, by its relative path, with its modification time in nanoseconds."""

    path: str
    size: int
    modified_ns: int

    @property
    def folder(self) -> str:
        """The path of the file's folder; “” for the root."""
        return folder_above(self.path)

    @property
    def name(self) -> str:
        return PurePosixPath(self.path).name


@dataclass(slots=True)
class Tree:
    """Files to mirror; unreadable paths with reasons; and the number of skipped ones."""

    files: list[TreeFile] = field(default_factory=list)
    problems: list[tuple[str, str]] = field(default_factory=list)
    hidden: int = 0
    links: int = 0


def folder_above(path: str) -> str:
    """The parent folder of a path; the root is “”."""
    above = PurePosixPath(path).parent.as_posix()
    return "" if above == "." else above


def scan_tree(root: Path) -> Tree:
    """Scan everything below the root; files are ordered by path."""
    tree = Tree()

    def unreadable(error: OSError) -> None:
        tree.problems.append((_below(root, Path(error.filename)), f"It cannot be opened: {error.strerror}."))

    for folder, folders, names in os.walk(root, onerror=unreadable):
        tree.links += sum(Path(folder, name).is_symlink() for name in folders)
        # Stop at the greatest possible depth of a path, although a tree may be deeper.
        folders[:] = sorted(
            name
            for name in folders
            if not (name.startswith(".") or _too_long(tree, _below(root, Path(folder, name))))
        )
        for name in sorted(names):
            path = Path(folder, name)
            relative = _below(root, path)
            if name.startswith("."):
                tree.hidden += name != RIGHTS_FILE
                continue
            try:
                status = path.lstat()
                relative.encode()
            except OSError as error:
                tree.problems.append((relative, f"It cannot be opened: {error.strerror}."))
            except UnicodeEncodeError:
                tree.problems.append((relative, "Its name is not UTF-8."))
            else:
                if stat.S_ISLNK(status.st_mode):
                    tree.links += 1
                elif not _too_long(tree, relative) and stat.S_ISREG(status.st_mode):
                    tree.files.append(TreeFile(relative, status.st_size, status.st_mtime_ns))
    return tree


def open_below(root: Path, path: str) -> BufferedReader:
    """Open a regular file without following any link on its path. Raises OSError."""
    wanted = root / path
    # Non-blocking, because opening a pipe in the tree would wait forever.
    descriptor = os.open(wanted, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        if not regular or Path(f"/proc/self/fd/{descriptor}").readlink() != wanted:
            raise OSError(f"{path} is not a regular file of the tree.")
    except BaseException:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


def _too_long(tree: Tree, relative: str) -> bool:
    """Whether a path is too long, which is reported as a problem."""
    if len(relative) <= PATH_CHARACTERS:
        return False
    tree.problems.append((relative, f"Its path is longer than {PATH_CHARACTERS} characters."))
    return True


def _below(root: Path, path: Path) -> str:
    return path.relative_to(root).as_posix()
