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


class FolderGone(OSError):
    """A folder of the tree was moved, or replaced by something else, after the tree was listed."""


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
    """What was found: files to mirror, and folders with a rights file.

    `problems` has paths that cannot be used, with reasons. `hidden` counts skipped hidden files, and `links`
    symbolic links.
    """

    files: list[TreeFile] = field(default_factory=list)
    with_rights: set[str] = field(default_factory=set)
    problems: list[tuple[str, str]] = field(default_factory=list)
    hidden: int = 0
    links: int = 0


def folder_above(path: str) -> str:
    """The parent folder of a path; the root is “”."""
    above = PurePosixPath(path).parent.as_posix()
    return "" if above == "." else above


def is_link(path: Path) -> bool:
    """Whether a path is a symbolic link; False if it cannot be looked up, which opening it will report."""
    try:
        return path.is_symlink()
    except OSError:
        return False


def scan_tree(root: Path) -> Tree:
    """Scan the tree without hidden folders.

    The files of a folder, sorted by name, come before those of its subfolders.
    """
    tree = Tree()

    def unreadable(error: OSError) -> None:
        tree.problems.append((_below(root, Path(error.filename)), f"It cannot be opened: {error.strerror}."))

    for folder, folders, names in os.walk(root, onerror=unreadable):
        tree.links += sum(is_link(Path(folder, name)) for name in folders)
        # Do not enter hidden folders, nor folders whose path is too long to store.
        folders[:] = sorted(
            name
            for name in folders
            if not (name.startswith(".") or _too_long(tree, _below(root, Path(folder, name))))
        )
        for name in sorted(names):
            path = Path(folder, name)
            relative = _below(root, path)
            if name == RIGHTS_FILE:
                tree.with_rights.add(folder_above(relative))
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
    """Open a regular file without following any link on its path. Raises OSError.

    Raises FolderGone if the folder of the file does not exist or was replaced, and FileNotFoundError if only
    the file does not exist.
    """
    wanted = root / path
    folder = _open_folder(wanted.parent)
    try:
        # Non-blocking, because opening a pipe in the tree would wait forever.
        descriptor = os.open(
            wanted.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder
        )
    finally:
        os.close(folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is not a regular file.")
    return os.fdopen(descriptor, "rb")


def _open_folder(folder: Path) -> int:
    """Open a folder step by step from the root of the file system, without following links.

    A single call would follow a link that has replaced a folder above. Raises FolderGone.
    """
    # With O_PATH, which only Linux has, a folder above need not be readable.
    step = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(folder.anchor, step)
    for name in folder.relative_to(folder.anchor).parts:
        above = descriptor
        try:
            descriptor = os.open(name, step, dir_fd=above)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise FolderGone(f"The folder {folder.name} was moved or replaced meanwhile") from error
        finally:
            os.close(above)
    return descriptor


def _too_long(tree: Tree, relative: str) -> bool:
    """Whether a path is too long, which is reported as a problem."""
    if len(relative) <= PATH_CHARACTERS:
        return False
    tree.problems.append((relative, f"Its path is longer than {PATH_CHARACTERS} characters."))
    return True


def _below(root: Path, path: Path) -> str:
    return path.relative_to(root).as_posix()
