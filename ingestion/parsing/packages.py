"""ZIP packages of XML parts: Office files, OpenDocument, EPUB."""

import posixpath
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

from .formats import DAMAGED
from .sections import Unreadable

# Exceptions of damaged packages: broken archive, missing part, broken XML, unknown compression.
DAMAGE = (
    zipfile.BadZipFile,
    KeyError,
    ElementTree.ParseError,
    EOFError,
    ValueError,
    NotImplementedError,
)


@contextmanager
def open_package(
    path: Path, kind: Callable[[Path], zipfile.ZipFile] = zipfile.ZipFile
) -> Iterator[zipfile.ZipFile]:
    """Open a package within the block. Errors of the package or its parts become Unreadable."""
    try:
        with kind(path) as package:
            yield package
    except DAMAGE as error:
        raise Unreadable(DAMAGED) from error


def xml_part(package: zipfile.ZipFile, name: str) -> ElementTree.Element:
    """A part of the package. Raises KeyError if it is missing."""
    return ElementTree.fromstring(package.read(name))  # noqa: S314 - expat stops entity bombs; memory is limited


def optional_xml_part(package: zipfile.ZipFile, name: str) -> ElementTree.Element:
    """A part of the package; an empty element if it is missing."""
    return xml_part(package, name) if name in package.namelist() else ElementTree.Element("none")


def relations(archive: zipfile.ZipFile, part: str) -> dict[str, tuple[str, str]]:
    """Type and target of each relationship of an Office part, by id; without external targets."""
    folder, name = posixpath.split(part)
    rels = f"{folder}/_rels/{name}.rels"
    if rels not in archive.namelist():
        return {}
    return {
        element.get("Id", ""): (
            element.get("Type", ""),
            posixpath.normpath(posixpath.join("/", folder, element.get("Target", ""))).lstrip("/"),
        )
        for element in xml_part(archive, rels)
        if element.get("TargetMode") != "External"
    }
