"""Labels of documents in citations.

A label is the name, the path, or the name with digits of the id. A label has no square brackets, colon, # or
control character, so that a citation "[label#anchor]" can be found in an answer. A name that contains such
characters, `~` or a slash always gets digits, and only this module inserts `~` and `/`, so that the three
kinds of labels never collide.
"""

import functools
import re
import unicodedata
from dataclasses import dataclass
from urllib.parse import quote
from uuid import UUID

SHORT_DIGITS = 8
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)

_REPLACED = str.maketrans({"[": "(", "]": ")", ":": "-", "#": "-", "/": "-", "\\": "-", "~": "-"})
_NUMBERED = re.compile(r"~([0-9a-f]{8}|[0-9a-f]{32})(?:\.[^.~/]*)?\Z")


@dataclass(frozen=True, slots=True)
class Uniqueness:
    """Which identifiers of a document are unique among the documents that one reader may read."""

    name: bool
    path: bool
    prefix: bool


def source_name(name: str, folder: str, public_id: UUID, unique: Uniqueness) -> str:
    """The document's label for the reader for whom `unique` was computed."""
    if _is_plain(name):
        if unique.name:
            return name
        parts = folder.split("/")
        # A first folder that looks like an id would be treated as an id in a URL.
        if unique.path and folder and all(map(_is_plain, parts)) and not _UUID.fullmatch(parts[0]):
            return f"{folder}/{name}"
    cleaned = cleaned_label(name) or "document"
    stem, dot, ending = cleaned.rpartition(".")
    digits = public_id.hex[:SHORT_DIGITS] if unique.prefix else public_id.hex
    return f"{stem}~{digits}.{ending}" if dot and stem and ending else f"{cleaned}~{digits}"


@functools.lru_cache(maxsize=2_000)  # cached, because answers use the same names and anchors repeatedly
def cleaned_label(text: str) -> str:
    """`text` on one line, without characters that would break a citation."""
    visible = "".join(" " if unicodedata.category(letter)[0] in "CZ" else letter for letter in text)
    return " ".join(visible.translate(_REPLACED).split())


def public_id_of(address: str) -> UUID | None:
    """The id at the start of a URL below /content/: `<id>` or `<id>/<any name>`."""
    first = address.partition("/")[0]
    return UUID(first) if _UUID.fullmatch(first) else None


def content_address(public_id: UUID, name: str) -> str:
    """The permanent URL of a document's file.

    The name in it is only for people, and for programs that need an extension.
    """
    return f"/content/{public_id}/{quote(name, safe='')}"


def identifier_range(label: str) -> tuple[UUID, UUID] | None:
    """The lowest and highest document id that begin with the digits of `label`; None without digits."""
    found = _NUMBERED.search(label)
    if found is None:
        return None
    digits = found.group(1)
    return UUID(hex=digits.ljust(32, "0")), UUID(hex=digits.ljust(32, "f"))


def _is_plain(name: str) -> bool:
    """Whether `name` can be used unchanged in a label and in a URL."""
    return name == cleaned_label(name) and name.strip(".") != ""


def storable(text: str) -> str:
    """`text` without NUL characters and lone surrogates, which PostgreSQL cannot store."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")
