"""E-books: the chapters of an EPUB in reading order, by heading."""

import posixpath
from pathlib import Path
from urllib.parse import unquote

from ingestion.parsing.encodings import decode
from ingestion.parsing.formats import PASSWORD
from ingestion.parsing.packages import open_package, xml_part
from ingestion.parsing.sections import Contents, Limits, Unreadable

from .outline import Outline
from .web import chapter

CONTAINER = "{urn:oasis:names:tc:opendocument:xmlns:container}"
OPF = "{http://www.idpf.org/2007/opf}"
DC = "{http://purl.org/dc/elements/1.1/}"
ENCRYPTED = "{http://www.w3.org/2001/04/xmlenc#}EncryptedData"
FONTS = (
    "http://www.idpf.org/2008/embedding",
    "http://ns.adobe.com/pdf/enc#RC",
)  # obfuscated fonts are not copy protection
CHAPTERS = frozenset({"application/xhtml+xml", "text/html"})


def read(path: Path, limits: Limits) -> Contents:
    """The chapters of a book in reading order. Raises Unreadable."""
    with open_package(path) as archive:
        names = set(archive.namelist())
        if "META-INF/encryption.xml" in names:
            encrypted = xml_part(archive, "META-INF/encryption.xml").iter(ENCRYPTED)
            methods = (method.get("Algorithm", "") for data in encrypted for method in data)
            if any(method and method not in FONTS for method in methods):
                raise Unreadable(PASSWORD)
        root = next(xml_part(archive, "META-INF/container.xml").iter(f"{CONTAINER}rootfile"), None)
        main = root.get("full-path", "") if root is not None else ""
        package = xml_part(archive, main)
        folder = posixpath.dirname(main)
        items = {item.get("id", ""): item for item in package.iter(f"{OPF}item")}
        outline = Outline(limits)
        for reference in package.iter(f"{OPF}itemref"):
            item = items.get(reference.get("idref", ""))
            if (
                item is None
                or item.get("media-type") not in CHAPTERS
                or "nav" in item.get("properties", "").split()
            ):
                continue
            name = posixpath.normpath(posixpath.join(folder, unquote(item.get("href", "")))).lstrip("/")
            if name in names:
                chapter(decode(archive.read(name)), outline)
        return outline.titled(package.findtext(f".//{DC}title") or "")
