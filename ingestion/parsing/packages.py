"""ZIP packages of XML parts: Office files, OpenDocument, EPUB."""

import zipfile
from collections.abc import Iterator
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
def open_package(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open a package within the block. Errors of the package or its parts become Unreadable."""
    try:
        with zipfile.ZipFile(path) as package:
            yield package
    except DAMAGE as error:
        raise Unreadable(DAMAGED) from error


def xml_part(package: zipfile.ZipFile, name: str) -> ElementTree.Element:
    """A part of the package. Raises KeyError if it is missing."""
    return ElementTree.fromstring(package.read(name))  # noqa: S314 - expat stops entity bombs; memory is limited


def optional_xml_part(package: zipfile.ZipFile, name: str) -> ElementTree.Element:
    """A part of the package; an empty element if it is missing."""
    return xml_part(package, name) if name in package.namelist() else ElementTree.Element("none")
